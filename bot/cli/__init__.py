"""The commands of ``tapebot``, one module each."""

__all__ = [
    "main",
]
