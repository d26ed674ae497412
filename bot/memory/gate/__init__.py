"""Checks between a proposal and long-term memory: provenance, verdicts, secrets."""

__all__ = [
    "batch_decision",
    "belief_updates",
    "evidence_status",
    "instruction_detection",
    "memory_validation",
    "reference_values",
    "secret_detection",
    "write_gate",
    "write_result",
    "write_support",
]
