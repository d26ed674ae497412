"""Permanent erasure on request: find what repeats a text or fact, ask, and write tombstones."""

__all__ = [
    "entry_matcher",
    "erasure_candidates",
    "erasure_messages",
    "erasure_plan",
    "erasure_query",
    "erasure_requests",
    "persons_entries",
    "text_matcher",
]
