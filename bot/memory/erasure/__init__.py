"""Permanent erasure on request: find what holds some words or made a fact, ask, and write tombstones."""

__all__ = [
    "closure",
    "entry_eraser",
    "erasure_candidates",
    "erasure_messages",
    "erasure_query",
    "erasure_requests",
    "persons_entries",
    "text_matcher",
]
