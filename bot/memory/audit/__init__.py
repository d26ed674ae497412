"""Audit memory: unsupported, stale, secret or contradictory facts, and inconsistent records."""

__all__ = [
    "audit_reader",
    "findings",
    "rules",
]
