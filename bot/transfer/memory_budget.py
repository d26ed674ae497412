"""Fit imported memory into the size limits and turn the rest into history events. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from bot.core.clock import format_time
from bot.memory.gate.memory_validation import MAX_MEMORY_BYTES, is_placeholder
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.records.fact import MAX_FACT_TEXT
from bot.memory.session.state.zone_snapshot import (
    MAX_NOTE_BYTES,
    DailyNote,
    MemorySnapshot,
)
from bot.tape.entries import TapeEntry, event
from bot.transfer.imported import ImportedMemory

_LONG_TERM_BYTES = MAX_MEMORY_BYTES // 2  # what is recommended: the bot needs room for more
_PIECE = 350  # characters; a passage is recalled up to 400


def fit_memory(
    memory: ImportedMemory, current: MemorySnapshot, now: datetime, retention_days: int
) -> tuple[MemorySnapshot, list[TapeEntry]]:
    """Return the next snapshot with what fits, and the rest as history events."""
    rest: list[TapeEntry] = []
    text = "" if is_placeholder(memory.long_term) else memory.long_term
    # Such lines are too long for a fact.
    endless = [line for line in text.split("\n") if len(line) > MAX_FACT_TEXT]
    text = "\n".join(line for line in text.split("\n") if len(line) <= MAX_FACT_TEXT)
    long_term, more = _split(text, _LONG_TERM_BYTES)
    rest += _pieces("From MEMORY.md", "\n".join([more, *endless]), format_time(now))  # for the tape
    oldest = (now - timedelta(days=retention_days)).date().isoformat()
    daily_notes: list[DailyNote] = []
    for day, note in sorted(memory.notes.items()):
        body, more = _split(note, MAX_NOTE_BYTES) if day >= oldest else ("", note)
        daily_notes += [DailyNote(day, body)] if body else []
        # for the tape
        rest += _pieces(f"Notes of {day}", more, min(f"{day}T12:00:00.000+00:00", format_time(now)))
    memory_snapshot = replace(
        current,
        version=current.version + 1,
        long_term=long_term,
        dailies=tuple(daily_notes),
        cleared=False,
    )
    return memory_snapshot, rest


def _split(text: str, room: int) -> tuple[str, str]:
    """Return the leading whole lines that fit into a number of bytes, and the rest."""
    lines = text.split("\n")
    taken = used = 0
    for line in lines:
        used += len(line.encode("utf-8", "backslashreplace")) + 1
        if used > room + 1:
            break
        taken += 1
    return "\n".join(lines[:taken]).strip(), "\n".join(lines[taken:]).strip()


def _pieces(head: str, text: str, moment: str) -> list[TapeEntry]:
    parts: list[str] = []
    for line in text.split("\n"):
        for at in range(0, len(line), _PIECE):
            part = line[at : at + _PIECE]
            if parts and len(parts[-1]) + len(part) < _PIECE:
                parts[-1] += f"\n{part}"
            else:
                parts.append(part)
    return [
        event(
            HISTORY_EVENT,
            {"entry": f"{head}: {part.strip()}", "from": moment, "to": moment},
            ts=moment,
        )
        for part in parts
        if part.strip()
    ]
