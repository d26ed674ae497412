"""Read entries of a tape: ranges, one entry and what relates to it, chapters, and new entries.

Rule 1: the cost is that of the entries returned, not of the tape's length.
Rule 2: an id without an entry is a gap: a reset dropped it, or its line is damaged.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import anyio
from pydantic import Field

from bot.core.errors import TapeNotFound
from bot.core.i18n import _
from bot.inspector.dependencies import WebContext
from bot.inspector.reading import ReadModel
from bot.inspector.reading.categories import Category, author_name, category, turn_id
from bot.inspector.reading.entry_text import (
    decisions,
    entry_line,
    entry_time,
    evidence,
    full_text,
    is_markdown,
    strip_control_characters,
)
from bot.inspector.reading.facts import load_session_fold
from bot.inspector.rendering import render_markdown
from bot.memory.records.boundaries import boundary_summary
from bot.memory.records.conversation_entries import LOOP_STEP, TURN_END, TURN_START
from bot.memory.records.tombstones import is_erased
from bot.memory.records.turn_marks import unfold
from bot.memory.session.scope.identities import is_shared_scope
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.entries import MEMORY_OPEN, MEMORY_SEAL, TapeEntry
from bot.tape.search import problem_of
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

MOST = 500
"""Entries per response."""

_TURN_WITHIN = 100
"""Entries after a message that are searched for the turn that took it in."""

_TITLE = 120
"""Characters of a chapter's title."""

_NEAR = 8
"""Ids that are probed together, since a damaged line does not mean the end."""


class EntryModel(ReadModel):
    """A summary of an entry."""

    id: int = Field(description="Its position on the tape, from 1.")
    kind: str = Field(
        description="`message`, `tool_call`, `tool_result`, `anchor`, `event`, `system`."
    )
    name: str = Field(description="Name of an event or anchor; empty for others.")
    time: str = Field(description="When it was said or recorded, ISO 8601; empty if unknown.")
    who: str = Field(description="Its author; empty if it has none.")
    turn: str = Field(description="The turn that it belongs to; empty if none.")
    problem: str = Field(description="The problem that it belongs to.")
    category: Category = Field(description="Its kind, for people.")
    text: str = Field(description="One line of plain text, at most 300 characters.")
    boundary: bool = Field(description="It is a boundary of the context.")
    erased: bool = Field(description="Its text was erased on request.")


class EntriesModel(ReadModel):
    """Entries of a tape; missing ids were dropped by a reset, or are damaged."""

    entries: tuple[EntryModel, ...] = Field(description="Oldest first.")
    version: int = Field(description="Id of the tape's last entry.")


class ChapterModel(ReadModel):
    """An anchor of a tape: the start of a chapter, or a consolidation."""

    name: str
    id: int = Field(description="Id of the anchor itself.")
    entry: int = Field(description="Id of the entry that it points at; usually its own.")
    time: str
    title: str = Field(description="Its text, shortened.")
    boundary: bool = Field(description="It is a boundary of the context.")


class ChaptersModel(ReadModel):
    """The newest anchors of a tape, oldest first."""

    anchors: tuple[ChapterModel, ...]
    total: int = Field(description="Number of results.")
    first: int = Field(description="Id of the oldest entry.")
    version: int = Field(description="Id of the last entry.")


class EntryRef(ReadModel):
    """A reference to an entry of any tape."""

    tape: str
    entry: int


class CitingFact(ReadModel):
    """A fact that cites the entry as evidence."""

    tape: str = Field(description="The tape that contains it.")
    number: int = Field(description="Its number on that tape.")
    text: str
    status: str


class EntryDetail(EntryModel):
    """An entry in full."""

    payload: dict[str, Any] = Field(description="As it is on the tape.")
    meta: dict[str, Any] = Field(description="As it is on the tape.")
    full: str = Field(description="Its full text, or a description; plain text.")
    html: str | None = Field(description="For an answer: its Markdown as safe HTML.")
    decisions: tuple[str, ...] = Field(description="Decisions of the write gate, a line each.")
    evidence: tuple[EntryRef, ...] = Field(description="Its evidence.")
    facts: tuple[CitingFact, ...] = Field(description="Facts from this entry.")


def summarize_entry(entry: TapeEntry) -> EntryModel:
    """Return a summary of an entry."""
    return EntryModel(
        id=entry.id,
        kind=entry.kind,
        name=entry.name or "",
        time=entry_time(entry),
        who=author_name(entry),
        turn=turn_id(entry),
        problem=problem_of(entry),
        category=category(entry),
        text=entry_line(entry),
        boundary=entry.is_boundary,
        erased=is_erased(entry),
    )


async def read_range(store: TapeStore, tape: str, first: int, last: int) -> list[EntryModel]:
    """Return the entries of an id range, both ends included, at most ``MOST``.

    Raises:
        TapeNotFound: There is no such tape.
    """
    return [
        summarize_entry(entry)
        for entry in await store.read(tape, first, min(last, first + MOST - 1))
    ]


async def first_id(store: TapeStore, tape: str) -> int:
    """Return the id of the oldest entry that exists; a reset may have dropped earlier ones.

    Raises:
        TapeNotFound: There is no such tape.
    """
    version = await store.version(tape)
    if there := await store.read(tape, 1, _NEAR):
        return there[0].id
    segments = await store.segments(tape)
    if segments:
        return segments[0].first_id
    low, high = 1, version
    while high - low > _NEAR:
        middle = (low + high) // 2
        if await store.read(tape, middle, middle + _NEAR - 1):
            high = middle
        else:
            low = middle
    there = await store.read(tape, low, high + _NEAR)
    return there[0].id if there else version


async def list_chapters(store: TapeStore, tape: str, limit: int) -> ChaptersModel:
    """Return the newest anchors, oldest first; those of memory zones do not count.

    Raises:
        TapeNotFound: There is no such tape.
    """
    anchors = await store.list_anchors(tape)
    marks = [anchor for anchor in anchors if anchor.name not in (MEMORY_OPEN, MEMORY_SEAL)]
    chapter_models = tuple(
        ChapterModel(
            name=strip_control_characters(anchor.name),
            id=anchor.at,
            entry=anchor.entry_id,
            time=anchor.ts,
            title=_title(anchor.state),
            boundary=anchor.is_boundary,
        )
        for anchor in marks[-limit:]
    )
    first, version = await first_id(store, tape), await store.version(tape)
    return ChaptersModel(anchors=chapter_models, total=len(marks), first=first, version=version)


async def wait_for_entries(
    store: TapeStore, tape: str, after: int, seconds: float
) -> list[EntryModel]:
    """Return the entries after an id; wait for them, and return none after a timeout.

    Raises:
        TapeNotFound: There is no such tape.
    """
    version = await store.version(tape)
    if version <= after:
        with anyio.move_on_after(seconds):
            async with aclosing(store.follow(tape, after)) as entries:
                async for entry in entries:
                    version = entry.id
                    break
    return await read_range(store, tape, after + 1, version) if version > after else []


async def entry_detail(web: WebContext, tape: str, number: int) -> EntryDetail:
    """Return one entry in full.

    Raises:
        TapeNotFound: There is no such tape or entry.
    """
    read = await web.store.read(tape, number, number)
    if not read:
        raise TapeNotFound(
            _(
                "tape {tape} has no entry {number}: a reset removed it, it is damaged, or it never existed",
                tape=tape,
                number=number,
            )
        )
    [entry] = read
    words = full_text(entry)
    summary = summarize_entry(entry).model_dump()
    return EntryDetail(
        **{**summary, "turn": await _turn_with(web.store, tape, entry)},
        payload=entry.payload,
        meta=entry.meta,
        full=words,
        html=render_markdown(words) if is_markdown(entry) else None,
        decisions=tuple(map(strip_control_characters, decisions(entry))),
        evidence=tuple(EntryRef(tape=name, entry=one) for name, one in evidence(entry)),
        facts=tuple(await _citing(web, tape, number)),
    )


async def _turn_with(store: TapeStore, tape: str, entry: TapeEntry) -> str:
    """Return the turn of an entry, or the one that took it in; empty if none is near."""
    inbound = entry.meta.get("inbound")
    if (turn := turn_id(entry)) or not isinstance(inbound, str):
        return turn
    for entry_behind in await store.read(tape, entry.id + 1, entry.id + _TURN_WITHIN):
        other = unfold(entry_behind)[-1]
        taken = (
            other.data.get("inbound") if other.name in (TURN_START, LOOP_STEP, TURN_END) else None
        )
        if isinstance(taken, list) and inbound in taken:
            return turn_id(other)
    return ""


async def _citing(web: WebContext, tape: str, number: int) -> list[CitingFact]:
    """Return the facts of a conversation's scope and the workspace that cite an entry."""
    citing_facts: list[CitingFact] = []
    for scope in await _scopes(web, tape):
        await scope.open()
        citing_facts += [
            CitingFact(tape=scope.name, number=fact.id, text=fact.text, status=fact.status)
            for fact in scope.fold.facts.values()
            if fact.text and any(e.tape == tape and e.entry == number for e in fact.evidence)
        ]
    return citing_facts


async def _scopes(web: WebContext, tape: str) -> list[ScopeMemory]:
    if is_shared_scope(tape):
        return []
    fold = await load_session_fold(web, tape)
    home = web.scopes.home(TapeService(web.store, tape), fold.facts, fold.home_scope)
    return [home, web.scopes.workspace()]


def _title(state: dict[str, Any]) -> str:
    told = state.get("title") or state.get("name") or boundary_summary(state)
    line = " ".join(strip_control_characters(str(told)).split())
    return line if len(line) <= _TITLE else line[: _TITLE - 1].rstrip() + "…"
