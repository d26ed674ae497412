"""Fetch, store and read the files that people send."""
