"""Entries of a tape as evidence. Pure."""

from __future__ import annotations

from bot.clock import iso
from bot.memory.facts.fact import LONGEST_QUOTE, Evidence, Origin
from bot.memory.transcript import said_at, speaker
from bot.tape.entries import TapeEntry

MEMORY_PAUSED = "paused"
"""In the meta of a message that was said while nothing was to be learned."""


def cite(tape: str, entry: TapeEntry, quote: str | None = None) -> Evidence:
    """Return an entry as evidence.

    Args:
        tape: That holds it.
        entry: A message, a command or a tool's result.
        quote: The words of it that count; by default all.
    """
    said = str(entry.payload.get("content") or entry.data.get("arguments") or "")
    words = " ".join((quote if quote is not None else said).split())
    moment, sender = said_at(entry), entry.meta.get("sender")
    origin = origin_of(entry)
    return Evidence(
        tape=tape,
        entry=entry.id,
        quote=words if len(words) <= LONGEST_QUOTE else f"{words[: LONGEST_QUOTE - 1]}…",
        who=speaker(entry) if origin in ("person", "member") else origin,
        when=iso(moment) if moment is not None else "",
        origin=origin,
        sender=str(sender["id"]) if isinstance(sender, dict) and "id" in sender else "",
        inbound=str(entry.meta.get("inbound") or ""),
    )


def origin_of(entry: TapeEntry) -> Origin:
    """Return whose words an entry holds, quotations in it aside."""
    command = entry.kind == "event" and "sender" in entry.meta
    if command or (entry.kind == "message" and entry.payload.get("role") == "user"):
        return "person" if entry.meta.get("private", True) else "member"
    return "tool" if entry.kind == "tool_result" else "assistant"


def is_own(entry: TapeEntry) -> bool:
    """Say whether an entry holds a person's own words that may be learned from."""
    return origin_of(entry) in ("person", "member") and entry.meta.get(MEMORY_PAUSED) is not True
