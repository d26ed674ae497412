"""Audit memory: unsupported, stale, secret or contradictory facts, and inconsistent records."""
