"""Export, import, restore, verify and migrate tapes, and write memory to files."""
