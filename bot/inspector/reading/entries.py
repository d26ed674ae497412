"""Read entries of a tape: ranges, one entry and what relates to it, chapters, and new entries.

Rule 1: the cost is that of the entries returned, not of the tape's length.
Rule 2: an id without an entry is a gap: a reset dropped it, or its line is damaged.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, replace

import anyio

from bot.core.errors import TapeNotFound
from bot.inspector.dependencies import WebContext
from bot.inspector.reading.categories import Category, author_name, category, turn_id
from bot.inspector.reading.entry_text import entry_line, entry_time
from bot.inspector.reading.facts import load_session_fold
from bot.memory.records.conversation_entries import LOOP_STEP, TURN_END, TURN_START
from bot.memory.records.fact import Fact
from bot.memory.records.tombstones import is_erased
from bot.memory.session.linking.scope_registry import is_shared_scope
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.entries import MEMORY_OPEN, MEMORY_SEAL, TapeEntry
from bot.tape.search import problem_of
from bot.tape.service import TapeService
from bot.tape.store import Anchor, TapeStore

MOST = 500
"""Entries per response."""

_TURN_WITHIN = 100
"""Entries after a message that are searched for the turn that took it in."""

_NEAR = 8
"""Ids that are probed together, since a damaged line does not mean the end."""


@dataclass(frozen=True, slots=True)
class EntrySummary:
    """A summary of an entry.

    Attributes:
        id: The entry's id on the tape.
        kind: The entry's kind.
        name: The name of an event or anchor; empty for other kinds.
        time: When it was sent, else recorded, ISO 8601; empty if unknown.
        who: The author's display name; empty if there is none.
        turn: Id of the turn that it names; empty if it names none.
        problem: Id of the problem that it belongs to.
        category: The category for display.
        text: The entry on one line.
        boundary: Whether it cuts the context.
        erased: Whether its words were erased.
    """

    id: int
    kind: str
    name: str
    time: str
    who: str
    turn: str
    problem: str
    category: Category
    text: str
    boundary: bool
    erased: bool


def summarize_entry(entry: TapeEntry) -> EntrySummary:
    """Return a summary of an entry."""
    return EntrySummary(
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


async def read_range(store: TapeStore, tape: str, first: int, last: int) -> list[EntrySummary]:
    """Return the entries of an id range, both ends included, at most ``MOST``.

    Raises:
        TapeNotFound: There is no such tape.
    """
    return [
        summarize_entry(one) for one in await store.read(tape, first, min(last, first + MOST - 1))
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


async def chapters(store: TapeStore, tape: str, limit: int) -> tuple[list[Anchor], int]:
    """Return the newest anchors, oldest first, and how many there are; zone anchors do not count.

    Raises:
        TapeNotFound: There is no such tape.
    """
    anchors = await store.list_anchors(tape)
    marks = [one for one in anchors if one.name not in (MEMORY_OPEN, MEMORY_SEAL)]
    return marks[-limit:], len(marks)


async def wait_for_entries(
    store: TapeStore, tape: str, after: int, seconds: float
) -> list[EntrySummary]:
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


async def one_entry(store: TapeStore, tape: str, number: int) -> TapeEntry:
    """Return one entry.

    Raises:
        TapeNotFound: There is no such tape or entry.
    """
    found = await store.read(tape, number, number)
    if not found:
        raise TapeNotFound(
            f"tape {tape} has no entry {number}: it was dropped by a reset, is damaged, or was never there"
        )
    return found[0]


async def turn_with(store: TapeStore, tape: str, entry: TapeEntry) -> str:
    """Return the turn of an entry, or the one that took it in; empty if none is near."""
    inbound = entry.meta.get("inbound")
    if (turn := turn_id(entry)) or not isinstance(inbound, str):
        return turn
    for one in await store.read(tape, entry.id + 1, entry.id + _TURN_WITHIN):
        taken = one.data.get("inbound") if one.name in (TURN_START, LOOP_STEP, TURN_END) else None
        if isinstance(taken, list) and inbound in taken:
            return turn_id(one)
    return ""


async def citing(web: WebContext, tape: str, number: int) -> list[tuple[str, Fact]]:
    """Return the facts that cite an entry, each with its scope's tape; none for a scope's entry.

    Searches the conversation's home scope and the workspace.
    """
    found: list[tuple[str, Fact]] = []
    for scope in await _scopes(web, tape):
        await scope.open()
        found += [
            (scope.name, replace(fact))
            for fact in scope.fold.facts.values()
            if fact.text and any(e.tape == tape and e.entry == number for e in fact.evidence)
        ]
    return found


async def _scopes(web: WebContext, tape: str) -> list[ScopeMemory]:
    if is_shared_scope(tape):
        return []
    fold = await load_session_fold(web, tape)
    home = web.scopes.home(TapeService(web.store, tape), fold.facts, fold.home_scope)
    return [home, web.scopes.workspace()]
