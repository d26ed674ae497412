"""What stands in the place of an entry that is erased: its id, its kind and its links. Pure.

Rule 1: what folds and links go by stays: ids, times, who spoke, which turn, and numbers.
Rule 2: no word of anybody stays, but for the name of who spoke.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bot.memory.turn_fold import COMMAND
from bot.tape.entries import TapeEntry

ERASED_TEXT = "[erased]"
"""Stands in the place of a line or a sentence."""

ERASED_MESSAGE_TEXT = "[erased at the user's request]"
"""What a model is shown of a message that is erased: some take none that is empty."""

ERASED_META_KEY = "erased"
"""In the meta of an entry whose words are gone."""

_KEPT = frozenset(
    {
        "ts",
        "sender",
        "inbound",
        "via",
        "turn",
        "sent",
        "tz",
        "edits",
        "status",
        "hash",
        "origin",
        "problem",
        "supersedes",
    }
)
_TEXTS = frozenset({"text", "arguments", "instructions", "error"})
"""In the data of replies, commands, sub-tasks and steps."""

_DROPPED = frozenset({"extra", "buttons"})


def is_erased(entry: TapeEntry) -> bool:
    """Say whether an entry's words are gone."""
    return entry.meta.get(ERASED_META_KEY) is True


def kept_meta(meta: dict[str, Any]) -> dict[str, Any]:
    """Return of an entry's meta what stays: links, and what is no text."""
    return {
        key: value
        for key, value in meta.items()
        if key in _KEPT or isinstance(value, (bool, int, float))
    }


def tombstone(entry: TapeEntry) -> TapeEntry:
    """Return what stands in the place of something said, called, answered or commanded."""
    payload = dict(entry.payload)
    if entry.kind == "tool_call":
        payload["content"] = ""
        payload["calls"] = [
            {"id": call.get("id"), "name": call.get("name"), "arguments": "{}"}
            for call in entry.calls
        ]
    elif entry.kind == "event":
        # Whatever somebody writes behind a slash is heard as the name of a command.
        texts = _TEXTS | {"name"} if entry.name == COMMAND else _TEXTS
        payload["data"] = {
            key: ERASED_TEXT if key in texts else value
            for key, value in entry.data.items()
            if key not in _DROPPED
        }
    else:
        payload["content"] = ""
    return replace(entry, payload=payload, meta={**kept_meta(entry.meta), ERASED_META_KEY: True})
