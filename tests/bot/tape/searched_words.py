"""Tapes in memory of a few words to search, and the words of what is found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bot.tape.entries import TapeEntry, message
from bot.tape.search import Hit
from bot.tape.stores.in_memory import InMemoryTapeStore

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def said(words: str, hour: int = 0) -> TapeEntry:
    moment = (BEGIN + timedelta(hours=hour)).isoformat()
    return message("user", words, ts=moment, sender={"id": str(hour), "name": ""})


async def stored(**tapes: list[TapeEntry]) -> InMemoryTapeStore:
    store = InMemoryTapeStore()
    for tape, entries in tapes.items():
        await store.create_tape(tape)
        await store.append_many(tape, entries)
    return store


def words_of(hits: list[Hit]) -> list[str]:
    return [hit.entry.payload["content"] for hit in hits]
