"""How the tests of a store's search say what is on the tapes, and ask for it.

A search may also give what stands right beside what fits: short turns are about each other. So most
messages here stand apart, each in a chapter of its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from tape_talk import TAPE, says

from bot.tape.entries import (
    TapeEntry,
    anchor,
)
from bot.tape.search import Hit, SearchQuery
from bot.tape.store import TapeStore

START = datetime(2026, 2, 10, 10, 0, tzinfo=UTC)
DAY = timedelta(days=1)
MESSAGES = frozenset({"message"})


def chapters(entries: Iterable[TapeEntry]) -> list[TapeEntry]:
    """Return entries with a boundary behind each."""
    return [one for entry in entries for one in (entry, anchor("chapter"))]


async def apart(store: TapeStore, *said: str | TapeEntry, tape: str = TAPE) -> list[TapeEntry]:
    """Append entries, or texts as messages, that do not stand beside each other; return them."""
    await store.create_tape(tape)
    entries = [says(one) if isinstance(one, str) else one for one in said]
    return (await store.append_many(tape, chapters(entries)))[::2]


async def ask(store: TapeStore, text: str = "", **filters: Any) -> list[Hit]:
    return await store.search(SearchQuery(text, **filters))


def said(hits: list[Hit]) -> list[str]:
    return [hit.entry.payload["content"] for hit in hits]


async def found(store: TapeStore, text: str = "", **filters: Any) -> list[str]:
    """Return the texts of messages that are found, best first."""
    return said(await ask(store, text, **{"kinds": MESSAGES, **filters}))


def invented(count: int, seed: int = 1) -> list[str]:
    """Return words of no language that nobody could take for each other."""
    rng = random.Random(seed)
    return ["".join(rng.choices("bdfgklmnprtvz", k=10)) for _ in range(count)]


def moment(days: int) -> str:
    """Return the time so many days after the first, as entries have it."""
    return (START + days * DAY).isoformat()


async def places(store: TapeStore, text: str = "tea", **filters: Any) -> set[int]:
    """Return the ids of entries that are found."""
    return {hit.entry.id for hit in await ask(store, text, **filters)}
