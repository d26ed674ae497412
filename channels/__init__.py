"""Adapters between chat platforms and the message bus; they do not use tapes or models."""

__all__ = [
    "api",
    "base",
    "console",
    "registry",
    "web",
]
