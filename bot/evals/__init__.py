"""Evaluations with labelled data: search recall, claims that memory believes, and answers."""

__all__ = [
    "answer_eval",
    "claim_eval",
    "dataset",
    "labels",
    "metrics",
    "recall_eval",
]
