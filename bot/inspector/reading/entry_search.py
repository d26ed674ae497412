"""Finding entries of a tape: words in the index, all else by reading back.

Rule 1: a request reads back a portion at most, and says where to go on.
Rule 2: bookkeeping is in no index: where it is asked for, words are looked for in its telling.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime

import anyio
import anyio.lowlevel

from bot.core.errors import InvalidSearch
from bot.inspector.reading.categories import INDEXED, Category
from bot.inspector.reading.entries import EntrySummary, summarize_entry
from bot.memory.transcript import sender_id, sender_name, sent_time
from bot.tape.entries import EntryKind, TapeEntry
from bot.tape.search import MAX_HITS, SearchQuery
from bot.tape.store import TapeStore

_SCANNED = 4_000
"""Entries of a portion."""

_SECONDS = 0.25

_KINDS: dict[Category, tuple[EntryKind, ...]] = {
    "message": ("message",),
    "answer": ("message", "event"),
    "tool": ("tool_call", "tool_result"),
    "anchor": ("anchor",),
}
"""Kinds of the entries of a category that is in the index."""


@dataclass(frozen=True, slots=True)
class EntryQuery:
    """What is looked for on a tape; all that is given must hold.

    Attributes:
        words: In the entry's words.
        categories: One of these.
        kinds: One of these.
        sender: Said by this one: an id or a shown name, in any case; ``assistant`` for the bot.
        problem: Belongs to this one.
        since: Said at this time or later; aware.
        until: Said before this time; aware.
        before: An id before this one.
        limit: So many at most.
    """

    words: str = ""
    categories: frozenset[Category] = frozenset()
    kinds: frozenset[str] = frozenset()
    sender: str = ""
    problem: str = ""
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class EntrySearchResult:
    """What was found.

    Attributes:
        entries: Of a search by words the best first, else the newest first.
        ranked: They are the best first.
        next: Give it as ``before`` to look further back; None where nothing is left.
    """

    entries: list[EntrySummary] = field(default_factory=list)
    ranked: bool = False
    next: int | None = None


async def search_entries(store: TapeStore, tape: str, asked: EntryQuery) -> EntrySearchResult:
    """Return what is looked for, by words from the index, else by reading back a portion.

    Bookkeeping is in no index: where it is asked for, words are looked for in what is read back.

    Raises:
        TapeNotFound: There is no such tape.
        InvalidSearch: It cannot be answered as it is asked.
    """
    if asked.words.strip() and (not asked.categories or asked.categories <= INDEXED):
        return await _searched(store, tape, asked)
    return await _scanned(store, tape, asked)


async def _searched(store: TapeStore, tape: str, asked: EntryQuery) -> EntrySearchResult:
    await store.version(tape)
    kinds = asked.kinds
    if asked.categories:
        there = frozenset(kind for one in asked.categories for kind in _KINDS[one])
        kinds = there & asked.kinds if asked.kinds else there
        if not kinds:
            return EntrySearchResult(ranked=True)
    query = SearchQuery(
        text=asked.words,
        tapes=(tape,),
        kinds=kinds or None,
        senders=frozenset({asked.sender}) if asked.sender else None,
        problem=asked.problem or None,
        since=asked.since,
        until=asked.until,
        last=asked.before - 1 if asked.before is not None else None,
        limit=asked.limit,
    )
    query.validate()
    found: list[EntrySummary] = []
    for limit in (asked.limit, MAX_HITS):
        hits = await store.search(replace(query, limit=limit))
        near = (summarize_entry(hit.entry) for hit in hits if hit.direct)
        found = [one for one in near if _is_of(one, asked.categories)]
        # Answers are messages to the index: what was asked for may stand behind all that was not.
        if len(found) >= asked.limit or len(hits) < limit:
            break
    return EntrySearchResult(found[: asked.limit], ranked=True)


async def _scanned(store: TapeStore, tape: str, asked: EntryQuery) -> EntrySearchResult:
    for moment in (asked.since, asked.until):
        if moment is not None and moment.tzinfo is None:
            raise InvalidSearch("a time in a search needs its zone")
    words = asked.words.casefold().split()
    found: list[EntrySummary] = []
    looked, until = 0, anyio.current_time() + _SECONDS
    async with aclosing(store.read_back(tape, asked.before)) as entries:
        async for entry in entries:
            one = summarize_entry(entry)
            if _fits(entry, one, asked, words):
                found.append(one)
            looked += 1
            if not looked % 200:
                await anyio.lowlevel.checkpoint()
            spent = looked >= _SCANNED or anyio.current_time() > until
            if len(found) >= asked.limit or spent:
                return EntrySearchResult(found, next=entry.id)
    return EntrySearchResult(found)


def _fits(entry: TapeEntry, one: EntrySummary, asked: EntryQuery, words: Collection[str]) -> bool:
    if not _is_of(one, asked.categories) or (asked.kinds and one.kind not in asked.kinds):
        return False
    if asked.problem and one.problem != asked.problem:
        return False
    if asked.sender and asked.sender.casefold() not in _names(entry):
        return False
    said = sent_time(entry)
    if asked.since is not None and (said is None or said < asked.since):
        return False
    if asked.until is not None and (said is None or said >= asked.until):
        return False
    text = one.text.casefold()
    return all(word in text for word in words)


def _names(entry: TapeEntry) -> tuple[str, ...]:
    if entry.kind == "message" and entry.payload.get("role") == "assistant":
        return ("assistant",)
    named = (sender_id(entry), sender_name(entry)) if "sender" in entry.meta else ()
    return tuple(name.casefold() for name in named if name)


def _is_of(one: EntrySummary, categories: Collection[Category]) -> bool:
    return not categories or one.category in categories
