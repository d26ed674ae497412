"""Tools that the model can call."""

__all__ = [
    "code",
    "files",
    "registry",
    "web",
]
