"""Permanent erasure on request: find what repeats a text or fact, ask, and write tombstones."""
