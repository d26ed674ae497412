"""Search the web and read pages: engines, page texts, and the check of what goes out."""

__all__ = [
    "search_engines",
]
