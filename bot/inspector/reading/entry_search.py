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


async def search_entries(store: TapeStore, tape: str, entry_query: EntryQuery) -> EntrySearchModel:
    """Search a tape: by words with the index, otherwise by reading back a portion.

    Bookkeeping is in no index: a search that includes it is answered by reading back.

    Raises:
        TapeNotFound: There is no such tape.
        InvalidSearch: The query is not valid.
    """
    if entry_query.words.strip() and entry_query.is_indexed:
        return await _searched(store, tape, entry_query)
    return await _scanned(store, tape, entry_query)


async def _searched(store: TapeStore, tape: str, entry_query: EntryQuery) -> EntrySearchModel:
    await store.version(tape)
    kinds = frozenset(entry_query.kinds or ())
    if entry_query.category:
        there = frozenset(kind for category in entry_query.category for kind in _KINDS[category])
        kinds = there & kinds if kinds else there
        if not kinds:
            return _result([], ranked=True)
    query = SearchQuery(
        text=entry_query.words,
        tapes=(tape,),
        kinds=kinds or None,
        senders=frozenset({entry_query.sender}) if entry_query.sender else None,
        problem=entry_query.problem or None,
        since=entry_query.since,
        until=entry_query.until,
        last=entry_query.before - 1 if entry_query.before is not None else None,
        limit=entry_query.limit,
    )
    query.validate()
    entry_models: list[EntryModel] = []
    for limit in (entry_query.limit, MAX_HITS):
        hits = await store.search(replace(query, limit=limit))
        near = (summarize_entry(hit.entry) for hit in hits if hit.direct)
        entry_models = [
            entry_model for entry_model in near if _is_of(entry_model, entry_query.category)
        ]
        # To the index, answers are messages: matches may rank below the other category's.
        if len(entry_models) >= entry_query.limit or len(hits) < limit:
            break
    return _result(entry_models[: entry_query.limit], ranked=True)


async def _scanned(store: TapeStore, tape: str, entry_query: EntryQuery) -> EntrySearchModel:
    for moment in (entry_query.since, entry_query.until):
        if moment is not None and moment.tzinfo is None:
            raise InvalidSearch("a time in a search needs its zone")  # for programs
    words = entry_query.words.casefold().split()
    entry_models: list[EntryModel] = []
    looked, until = 0, anyio.current_time() + _SECONDS
    async with aclosing(store.read_back(tape, entry_query.before)) as entries:
        async for entry in entries:
            entry_model = summarize_entry(entry)
            if _fits(entry, entry_model, entry_query, words):
                entry_models.append(entry_model)
            looked += 1
            if not looked % 200:
                await anyio.lowlevel.checkpoint()
            spent = looked >= _SCANNED or anyio.current_time() > until
            if len(entry_models) >= entry_query.limit or spent:
                return _result(entry_models, following=entry.id)
    return _result(entry_models)


def _fits(
    entry: TapeEntry, entry_model: EntryModel, entry_query: EntryQuery, words: Collection[str]
) -> bool:
    if not _is_of(entry_model, entry_query.category) or (
        entry_query.kinds and entry_model.kind not in entry_query.kinds
    ):
        return False
    if entry_query.problem and entry_model.problem != entry_query.problem:
        return False
    if entry_query.sender and entry_query.sender.casefold() not in _names(entry):
        return False
    moment = sent_time(entry)
    if entry_query.since is not None and (moment is None or moment < entry_query.since):
        return False
    if entry_query.until is not None and (moment is None or moment >= entry_query.until):
        return False
    # All of it, not the line that is shown.
    text = describe(entry).casefold() if words else ""
    return all(word in text for word in words)


def _names(entry: TapeEntry) -> tuple[str, ...]:
    if entry.kind == "message" and entry.payload.get("role") == "assistant":
        return ("assistant",)
    named = (sender_id(entry), sender_name(entry)) if "sender" in entry.meta else ()
    return tuple(name.casefold() for name in named if name)


def _is_of(entry_model: EntryModel, categories: Collection[Category] | None) -> bool:
    return not categories or entry_model.category in categories


def _result(
    entries: list[EntryModel], *, ranked: bool = False, following: int | None = None
) -> EntrySearchModel:
    return EntrySearchModel(entries=tuple(entries), ranked=ranked, next=following)
