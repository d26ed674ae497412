"""Checks between a proposed claim and long-term memory: evidence, conflicts, secrets, orders."""

__all__ = [
    "alignment",
    "batch_decision",
    "belief_updates",
    "cited_sentences",
    "claim_support",
    "evidence_status",
    "fact_similarity",
    "instruction_detection",
    "memory_validation",
    "reference_values",
    "remember_requests",
    "secret_detection",
    "write_gate",
    "write_result",
    "write_support",
]
