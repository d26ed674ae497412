"""Search a tape's entries: words in the store's index, everything else by reading back.

Rule 1: a request reads back a bounded portion, and returns where to continue.
Rule 2: bookkeeping entries are in no index: a search by their categories reads back, and matches
    words in an entry's description.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

import anyio
import anyio.lowlevel
from fastapi import Query
from pydantic import Field

from bot.core.errors import InvalidSearch
from bot.inspector.parameters import EntryId
from bot.inspector.reading import ReadModel
from bot.inspector.reading.categories import INDEXED, Category
from bot.inspector.reading.entries import EntryModel, summarize_entry
from bot.inspector.reading.entry_text import describe
from bot.memory.records.transcript import sender_id, sender_name, sent_time
from bot.tape.entries import EntryKind, TapeEntry
from bot.tape.search import MAX_HITS, SearchQuery
from bot.tape.store import TapeStore

_SCANNED = 4_000
"""Entries per portion."""

_SECONDS = 0.25

_KINDS: dict[Category, tuple[EntryKind, ...]] = {
    "message": ("message",),
    "answer": ("message", "event"),
    "tool": ("tool_call", "tool_result"),
    "anchor": ("anchor",),
}
"""The kinds of entries in each indexed category."""

_INDEXED_KINDS: frozenset[EntryKind] = frozenset({"message", "tool_call", "tool_result", "anchor"})
"""Kinds of which the index holds every entry; of events, it holds answers alone."""


@dataclass(frozen=True, slots=True)
class EntryQuery:
    """A search on a tape; all criteria must match. Parameters of a route."""

    words: Annotated[str, Query(max_length=1_000)] = ""
    category: Annotated[list[Category] | None, Query(max_length=12)] = None
    kinds: Annotated[list[EntryKind] | None, Query(max_length=6)] = None
    sender: Annotated[str, Query(max_length=300, description="A name, an id, or `assistant`.")] = ""
    problem: Annotated[str, Query(max_length=100)] = ""
    since: Annotated[datetime | None, Query(description="With its zone.")] = None
    until: Annotated[datetime | None, Query(description="With its zone.")] = None
    before: EntryId | None = None
    limit: Annotated[int, Query(ge=1, le=200)] = 100

    @property
    def is_indexed(self) -> bool:
        """Whether the store's index holds all entries that may match."""
        if self.category:
            return INDEXED.issuperset(self.category)
        return _INDEXED_KINDS.issuperset(self.kinds or ())


class EntrySearchModel(ReadModel):
    """The result of a search on a tape."""

    entries: tuple[EntryModel, ...]
    ranked: bool = Field(description="Best matches first; otherwise newest first.")
    next: int | None = Field(description="Pass it as `before` to search further back.")


async def search_entries(store: TapeStore, tape: str, asked: EntryQuery) -> EntrySearchModel:
    """Search a tape: by words with the index, otherwise by reading back a portion.

    Bookkeeping is in no index: a search that includes it is answered by reading back.

    Raises:
        TapeNotFound: There is no such tape.
        InvalidSearch: The query is not valid.
    """
    if asked.words.strip() and asked.is_indexed:
        return await _searched(store, tape, asked)
    return await _scanned(store, tape, asked)


async def _searched(store: TapeStore, tape: str, asked: EntryQuery) -> EntrySearchModel:
    await store.version(tape)
    kinds = frozenset(asked.kinds or ())
    if asked.category:
        there = frozenset(kind for one in asked.category for kind in _KINDS[one])
        kinds = there & kinds if kinds else there
        if not kinds:
            return _result([], ranked=True)
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
    found: list[EntryModel] = []
    for limit in (asked.limit, MAX_HITS):
        hits = await store.search(replace(query, limit=limit))
        near = (summarize_entry(hit.entry) for hit in hits if hit.direct)
        found = [one for one in near if _is_of(one, asked.category)]
        # To the index, answers are messages: matches may rank below the other category's.
        if len(found) >= asked.limit or len(hits) < limit:
            break
    return _result(found[: asked.limit], ranked=True)


async def _scanned(store: TapeStore, tape: str, asked: EntryQuery) -> EntrySearchModel:
    for moment in (asked.since, asked.until):
        if moment is not None and moment.tzinfo is None:
            raise InvalidSearch("a time in a search needs its zone")
    words = asked.words.casefold().split()
    found: list[EntryModel] = []
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
                return _result(found, following=entry.id)
    return _result(found)


def _fits(entry: TapeEntry, one: EntryModel, asked: EntryQuery, words: Collection[str]) -> bool:
    if not _is_of(one, asked.category) or (asked.kinds and one.kind not in asked.kinds):
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
    # All of it, not the line that is shown.
    text = describe(entry).casefold() if words else ""
    return all(word in text for word in words)


def _names(entry: TapeEntry) -> tuple[str, ...]:
    if entry.kind == "message" and entry.payload.get("role") == "assistant":
        return ("assistant",)
    named = (sender_id(entry), sender_name(entry)) if "sender" in entry.meta else ()
    return tuple(name.casefold() for name in named if name)


def _is_of(one: EntryModel, categories: Collection[Category] | None) -> bool:
    return not categories or one.category in categories


def _result(
    entries: list[EntryModel], *, ranked: bool = False, following: int | None = None
) -> EntrySearchModel:
    return EntrySearchModel(entries=tuple(entries), ranked=ranked, next=following)
