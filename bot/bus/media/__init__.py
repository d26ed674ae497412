"""Files that people send: fetched, kept, and read."""
