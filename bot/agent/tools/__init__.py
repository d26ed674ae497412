"""Tools that the model can call."""

__all__ = [
    "registry",
    "web",
]
