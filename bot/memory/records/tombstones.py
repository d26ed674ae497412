"""Build the tombstone that replaces an erased entry and keeps its id, kind and links. Pure.

Rule 1: everything that folds and links need stays: ids, times, sender, turn, and numbers.
Rule 2: no text of anybody stays, except the sender's name.
"""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

from bot.memory.records.conversation_entries import QUESTION
from bot.memory.records.event_names import (
    COMMAND,
    FILE_EVENTS,
)
from bot.memory.records.turn_marks import END_META, START_META
from bot.tape.entries import TapeEntry

ERASED_TEXT = "[erased]"
"""Replaces an erased line, sentence or word."""

ERASED_MESSAGE_TEXT = "[erased at the user's request]"  # for the tape
"""Shown to a model for an erased message: some providers reject empty messages."""

ERASED_META_KEY = "erased"
"""Key in ``meta`` that marks an erased entry."""

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
        "cause",
        START_META,
        END_META,
    }
)
_TEXTS = frozenset({"text", "arguments", "instructions", "error", "entry"})
"""Keys with text in the data of replies, commands, sub-tasks, steps and the history."""

_FILE_TEXTS = _TEXTS | {"name", "place", "note"}
_DROPPED = frozenset({"own", "extra", "buttons", "files"})


def is_erased(entry: TapeEntry) -> bool:
    """Return whether an entry is erased."""
    return entry.meta.get(ERASED_META_KEY) is True


def written_at(entry: TapeEntry) -> str:
    """Return when an entry was written, as the tape says it."""
    return str(entry.meta.get("ts", ""))


def kept_meta(meta: dict[str, Any]) -> dict[str, Any]:
    """Return the part of ``meta`` that stays: links, and booleans and numbers."""
    return {
        key: value
        for key, value in meta.items()
        if key in _KEPT or isinstance(value, (bool, int, float))
    }


def tombstone(entry: TapeEntry) -> TapeEntry:
    """Return the tombstone of a message, tool call, tool result, reply or command."""
    payload = dict(entry.payload)
    if entry.kind == "tool_call":
        payload["content"] = ""
        payload.pop("reasoning", None)
        payload["calls"] = [
            {"id": call.get("id"), "name": call.get("name"), "arguments": "{}"}
            for call in entry.calls
        ]
    elif entry.kind == "event":
        # Any word behind a slash becomes a command's name, so the name may be a person's text.
        texts = _TEXTS | {"name"} if entry.name == COMMAND else _TEXTS
        if entry.name in FILE_EVENTS:
            texts = _FILE_TEXTS
        payload["data"] = {
            key: ERASED_TEXT if key in texts else value
            for key, value in entry.data.items()
            if key not in _DROPPED
        }
    else:
        payload["content"] = ""
        for key in (QUESTION, "buttons", "files"):
            payload.pop(key, None)
    return replace(entry, payload=payload, meta={**kept_meta(entry.meta), ERASED_META_KEY: True})


def entry_digest(entry: TapeEntry) -> str:
    """Return what tells whether an entry is as an erasure left it."""
    told = json.dumps([entry.kind, entry.payload, entry.meta], sort_keys=True)
    return sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]
