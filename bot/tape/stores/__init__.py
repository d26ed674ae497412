"""Implement ``TapeStore`` in memory, in files, in PostgreSQL and over HTTP."""

__all__ = [
    "file",
    "folder",
    "folder_verification",
    "in_memory",
    "postgres",
    "remote",
]
