"""Slash commands, the same in every channel; one module or package per command."""

__all__ = [
    "approvals",
    "builtin",
    "files",
    "language",
    "link",
    "login",
    "memory",
    "message_links",
    "pagination",
    "pair",
    "parser",
    "plain_words",
    "registry",
    "skills",
]
