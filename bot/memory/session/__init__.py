"""A conversation's memory: its zone and window, long-term memory, compartments, and recall."""
