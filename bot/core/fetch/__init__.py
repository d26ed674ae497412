"""Fetch files from the internet: only from public addresses, within limits."""

__all__ = [
    "fetched_file",
    "fetcher",
]
