"""Consolidation: a model condenses messages into history entries and facts."""

__all__ = [
    "claim_judge",
    "imported_tapes",
    "policy",
    "runner",
]
