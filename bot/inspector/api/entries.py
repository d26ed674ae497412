"""API routes of entries: read a tape's ranges, search it, list its anchors, show one entry."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from bot.core.errors import HttpError
from bot.inspector.api import API
from bot.inspector.api.parameters import EntryId, TapeName
from bot.inspector.dependencies import Owner, WebContext, WebContextDep
from bot.inspector.reading import entries as reading
from bot.inspector.reading.categories import Category
from bot.inspector.reading.entry_search import EntryQuery, search_entries
from bot.inspector.reading.entry_text import (
    decisions,
    evidence,
    full_text,
    is_markdown,
    strip_control_characters,
)
from bot.inspector.rendering import render_markdown
from bot.tape.entries import EntryKind

router = APIRouter(prefix=API, tags=["entries"])

_TITLE = 120


class EntryModel(BaseModel):
    """A summary of an entry."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    id: int = Field(description="Its place on the tape, from 1.")
    kind: str = Field(
        description="`message`, `tool_call`, `tool_result`, `anchor`, `event`, `system`."
    )
    name: str = Field(description="Of an event or anchor; empty for others.")
    time: str = Field(description="When it was said, else recorded, ISO 8601; empty where unknown.")
    who: str = Field(description="Whose it is; empty where it is nobody's.")
    turn: str = Field(description="The turn that it belongs to; empty where it says none.")
    problem: str = Field(description="The problem that it belongs to.")
    category: Category = Field(description="What it is to people.")
    text: str = Field(description="One line of plain text, at most 300 characters.")
    boundary: bool = Field(description="It cuts the context: a chapter begins.")
    erased: bool = Field(description="Its words are gone: somebody wanted them forgotten.")


class EntriesModel(BaseModel):
    """Entries of a tape; missing ids were dropped by a reset, or are damaged."""

    model_config = ConfigDict(frozen=True)

    entries: tuple[EntryModel, ...] = Field(description="Oldest first.")
    version: int = Field(description="Id of the tape's last entry.")


class EntrySearchModel(BaseModel):
    """The result of a search on a tape."""

    model_config = ConfigDict(frozen=True)

    entries: tuple[EntryModel, ...]
    ranked: bool = Field(description="The best stand first; else the newest.")
    next: int | None = Field(description="Give it as `before` to look further back.")


class ChapterModel(BaseModel):
    """An anchor of a tape: the start of a chapter, or a consolidation."""

    model_config = ConfigDict(frozen=True)

    name: str
    id: int = Field(description="Id of the anchor itself.")
    entry: int = Field(description="Id of the entry that it points at; mostly its own.")
    time: str
    title: str = Field(description="What it says, cut where it is long.")
    boundary: bool = Field(description="It cuts the context.")


class ChaptersModel(BaseModel):
    """The newest anchors of a tape, oldest first."""

    model_config = ConfigDict(frozen=True)

    anchors: tuple[ChapterModel, ...]
    total: int = Field(description="How many there are.")
    first: int = Field(description="Id of the oldest entry that is there.")
    version: int = Field(description="Id of the last entry.")


class EntryRef(BaseModel):
    """A reference to an entry of any tape."""

    model_config = ConfigDict(frozen=True)

    tape: str
    entry: int


class CitingFact(BaseModel):
    """A fact that cites the entry as evidence."""

    model_config = ConfigDict(frozen=True)

    tape: str = Field(description="The tape that it is remembered on.")
    number: int = Field(description="Its number there.")
    text: str
    status: str


class EntryDetail(EntryModel):
    """An entry in full."""

    payload: dict[str, Any] = Field(description="As it is on the tape.")
    meta: dict[str, Any] = Field(description="As it is on the tape.")
    full: str = Field(description="All its words, or what it says in words; plain text.")
    html: str | None = Field(description="Of an answer: its Markdown as safe HTML.")
    decisions: tuple[str, ...] = Field(description="What the write gate decided here, a line each.")
    evidence: tuple[EntryRef, ...] = Field(description="What it rests on.")
    facts: tuple[CitingFact, ...] = Field(description="What is remembered because of it.")


@router.get("/entries")
async def entries(
    web: WebContextDep,
    visitor: Owner,  # noqa: ARG001
    tape: TapeName,
    first: EntryId,
    last: EntryId,
) -> EntriesModel:
    """Return the entries of an id range, both ends included: 500 ids at most."""
    if not first <= last < first + reading.MOST:
        raise HttpError(422, "invalid_request", f"last: give first to first + {reading.MOST - 1}")
    found = await reading.read_range(web.store, tape, first, last)
    return EntriesModel(entries=models(found), version=await web.store.version(tape))


@router.get("/entry")
async def entry(
    web: WebContextDep,
    visitor: Owner,  # noqa: ARG001
    tape: TapeName,
    id: EntryId,  # noqa: A002 (as entries call it)
) -> EntryDetail:
    """Return one entry in full, with its evidence and the facts that cite it."""
    return await detail(web, tape, id)


async def detail(web: WebContext, tape: str, number: int) -> EntryDetail:
    """Return one entry in full.

    Raises:
        TapeNotFound: There is no such tape or entry.
    """
    found = await reading.one_entry(web.store, tape, number)
    words = full_text(found)
    told = EntryModel.model_validate(reading.summarize_entry(found)).model_dump()
    return EntryDetail(
        **{**told, "turn": await reading.turn_with(web.store, tape, found)},
        payload=found.payload,
        meta=found.meta,
        full=words,
        html=render_markdown(words) if is_markdown(found) else None,
        decisions=tuple(map(strip_control_characters, decisions(found))),
        evidence=tuple(EntryRef(tape=name, entry=one) for name, one in evidence(found)),
        facts=tuple(
            CitingFact(tape=scope, number=fact.id, text=fact.text, status=fact.status)
            for scope, fact in await reading.citing(web, tape, number)
        ),
    )


@router.get("/entries/found")
async def found(
    web: WebContextDep,
    visitor: Owner,  # noqa: ARG001
    tape: TapeName,
    *,
    words: Annotated[str, Query(max_length=1_000)] = "",
    category: Annotated[list[Category] | None, Query(max_length=12)] = None,
    kinds: Annotated[list[EntryKind] | None, Query(max_length=6)] = None,
    sender: Annotated[
        str, Query(max_length=300, description="A name, an id, or `assistant`.")
    ] = "",
    problem: Annotated[str, Query(max_length=100)] = "",
    since: Annotated[datetime | None, Query(description="With its zone.")] = None,
    until: Annotated[datetime | None, Query(description="With its zone.")] = None,
    before: EntryId | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 100,
) -> EntrySearchModel:
    """Search entries by words, category, kind, person, problem and time.

    A search for words alone, or in messages, answers, tools and anchors, uses the index, best match
    first. Any other search reads the tape back, a portion per request: a response may be empty and
    have a `next`.
    """
    asked = EntryQuery(
        words=words,
        categories=frozenset(category or ()),
        kinds=frozenset(kinds or ()),
        sender=sender,
        problem=problem,
        since=since,
        until=until,
        before=before,
        limit=limit,
    )
    result = await search_entries(web.store, tape, asked)
    return EntrySearchModel(entries=models(result.entries), ranked=result.ranked, next=result.next)


@router.get("/entries/anchors")
async def anchors(
    web: WebContextDep,
    visitor: Owner,  # noqa: ARG001
    tape: TapeName,
    limit: Annotated[int, Query(ge=1, le=2_000)] = 500,
) -> ChaptersModel:
    """Return anchors, oldest first, and the ids of the tape's first and last entries."""
    marks, total = await reading.chapters(web.store, tape, limit)
    shown = tuple(
        ChapterModel(
            name=strip_control_characters(one.name),
            id=one.at,
            entry=one.entry_id,
            time=one.ts,
            title=_title(one.state),
            boundary=one.is_boundary,
        )
        for one in marks
    )
    first, version = await reading.first_id(web.store, tape), await web.store.version(tape)
    return ChaptersModel(anchors=shown, total=total, first=first, version=version)


def models(found: list[reading.EntrySummary]) -> tuple[EntryModel, ...]:
    """Convert entry summaries to API models."""
    return tuple(EntryModel.model_validate(one) for one in found)


def _title(state: dict[str, Any]) -> str:
    told = next((state[key] for key in ("title", "name", "summary") if state.get(key)), "")
    line = " ".join(strip_control_characters(str(told)).split())
    return line if len(line) <= _TITLE else line[: _TITLE - 1].rstrip() + "…"
