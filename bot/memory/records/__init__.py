"""Records of facts, compartments and episodes, their JSON and their folds; almost all pure."""

__all__ = [
    "attachments",
    "compartment_records",
    "compartments",
    "compression",
    "conversation_entries",
    "episodes",
    "event_names",
    "evidence",
    "fact",
    "fact_fold",
    "fact_slot",
    "fact_undo",
    "pasted_text",
    "problem_lookup",
    "problem_notes",
    "prompt_escaping",
    "proposals",
    "stemming",
    "tombstones",
    "transcript",
]
