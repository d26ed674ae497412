"""Context builders: strategies for rendering a tape as a model's context."""

__all__ = [
    "automatic_recall",
    "exact",
    "registry",
    "summaries",
]
