"""A conversation's memory: its zone and window, long-term memory, compartments, and recall."""

__all__ = [
    "archive_summary",
    "bus",
    "file_folder",
    "linking",
    "long_term_memory",
    "memory_clear",
    "outdated_entries",
    "recall",
    "scope",
    "state",
    "vector_index",
]
