"""One scope's facts on its tape, and the links between a person's identities."""

__all__ = [
    "identities",
    "scope_memory",
    "workspace_tape",
]
