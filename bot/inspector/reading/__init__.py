"""What pages and the API show, read from tapes at the cost of what is shown."""
