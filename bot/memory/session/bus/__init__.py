"""The memory bus: four compartments behind one write gate, each a fold over tapes."""

__all__ = [
    "belief_reader",
    "episodic_trace",
    "problem_registry",
    "shared_reference",
    "working_set",
]
