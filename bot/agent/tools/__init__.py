"""Tools that the model can call."""

__all__ = [
    "code",
    "registry",
    "web",
]
