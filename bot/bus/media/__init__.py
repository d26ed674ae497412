"""Fetch, store and read the files that people send."""

__all__ = [
    "attachments",
    "blobs",
    "documents",
    "postgres_blobs",
]
