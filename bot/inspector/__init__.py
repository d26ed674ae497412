"""The web site: chat in the browser, and an inspector for tapes, prompts and memory."""

__all__ = [
    "access",
    "clients",
    "dependencies",
    "reading",
    "site",
    "transcript",
]
