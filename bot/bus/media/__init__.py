"""Fetch, store and read the files that people send."""

__all__ = [
    "attachments",
    "blobs",
    "documents",
    "media_types",
    "postgres_blobs",
]
