"""Context builders: strategies for rendering a tape as a model's context."""

__all__ = [
    "automatic_recall",
    "exact",
    "passage_selection",
    "registry",
    "summaries",
]
