"""Read the data of pages and API from tapes, at the cost of what is returned."""
