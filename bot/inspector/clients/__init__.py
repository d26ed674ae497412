"""Client programs that use tapebot as their model: which session a conversation is, and its answers."""

__all__ = [
    "backend",
    "memory",
]
