"""Consolidation: a model condenses messages into history entries and facts."""

__all__ = [
    "claim_judge",
    "imported_tapes",
    "judge_trial",
    "policy",
    "runner",
]
