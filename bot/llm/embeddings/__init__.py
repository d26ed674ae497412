"""Embedding models: the port, adapters for litellm and an in-process model, and a factory."""

__all__ = [
    "base",
    "registry",
]
