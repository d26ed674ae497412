"""Serve a tape store over HTTP: the tape server."""

__all__ = [
    "server",
    "tokens",
]
