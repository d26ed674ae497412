"""Append-only tapes, one per conversation, with their stores, search index and HTTP server."""

__all__ = [
    "batches",
    "codec",
    "entries",
    "folding",
    "http_protocol",
    "index",
    "search",
    "server",
    "service",
    "state_reads",
    "store",
    "stores",
    "verification",
]
