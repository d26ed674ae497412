"""Names that imported conversations have on tapes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

IMPORTED_EVENT = "imported"
"""Event that describes an import, identified by its ``digest``."""

SESSION_IMPORTED = "session/imported"
"""Boundary after the imported entries. If a person's conversation was imported, its state has
``conversation``: ``{for, since, until, messages, last}``, the last being the id of the last message."""

ASSISTANTS: Mapping[str, str] = {
    "chatgpt": "ChatGPT",
    "claude": "Claude",
    "openclaw": "OpenClaw",
}
"""Display names of the assistants whose conversations get sessions of their own, by channel."""


def assistant_of(tape: str) -> str:
    """Return the display name of the assistant that a tape was imported from; empty if none."""
    return ASSISTANTS.get(tape.partition(":")[0], "")
