"""What is said on a tape in PostgreSQL, what is left where it was erased, and how long a test waits."""

from __future__ import annotations

from dataclasses import replace

from bot.tape.entries import TapeEntry, message

TAPE = "telegram:42"
PATIENCE = 30


def says(text: str) -> TapeEntry:
    return message("user", text)


def texts(entries: list[TapeEntry]) -> list[str]:
    return [entry.payload["content"] for entry in entries if entry.kind == "message"]


def gone(entry: TapeEntry) -> TapeEntry:
    return replace(entry, payload={"role": "user", "content": ""}, meta={})
