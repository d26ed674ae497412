"""The conversations that there are, each in short.

Rule 1: what is shown is what is on the tape at that moment; only the order among many may be of a moment ago.
Rule 2: no word of anybody is kept here, but for names: what is erased from a tape is gone from here, too.
Rule 3: a request reads for a bounded time; what is left over is read by the next ones.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import anyio
from starlette.requests import HTTPConnection

from bot.core.clock import format_time
from bot.core.errors import TapeError, TapeNotFound
from bot.llm.base import Usage
from bot.memory.facts.fact_fold import fold_entries
from bot.memory.fold_loader import load_fold
from bot.memory.scope_memory import load_fact_entries
from bot.memory.scope_registry import PERSON_SCOPE_PREFIX, WORKSPACE_SCOPE, ScopeRegistry
from bot.memory.session_fold import SessionFold
from bot.memory.transcript import sender_name
from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL_PROBLEM
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

BUDGET = 0.05
"""Seconds that a request reads conversations that it does not show, to put them in order."""

PAGE_SECONDS = 0.03
"""Seconds that it reads those that it shows, of which nothing is known yet."""

_MOST_KEPT = 20_000
_NAMES = 4
_NEWEST = 64
"""Entries among which names are looked for where nothing is in view."""

_PROGRAM = "workspace:"
"""Begins the names of tapes that hold no conversation."""


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A conversation in short.

    Attributes:
        tape: Its key.
        version: Id of its last entry.
        erasures: How often something was erased from it, as far as its store tells.
        people: Names of those who spoke last, the newest first.
        last_turn: When a turn last began, ISO 8601; empty where none did.
        waiting: Messages that are not consolidated yet.
        turns: Turns ended.
        usage: Of all turns and consolidations.
        problem: Id of the problem that is worked on.
        facts: Id of the last entry that changed what the tape itself remembers, 0 where none did.
        home: The tape that what is learned here belongs to.
        state: ``answering``, ``undelivered``, ``unconsolidated`` (the last try failed), ``damaged``
            (it cannot be read) or ``idle``.
        title: As people named it; empty where nobody did.
        problem_name: What people call that problem; both are read anew each time.
    """

    tape: str
    version: int = 0
    erasures: int = 0
    people: tuple[str, ...] = ()
    last_turn: str = ""
    waiting: int = 0
    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    problem: str = GENERAL_PROBLEM
    facts: int = 0
    home: str = ""
    state: str = "idle"
    title: str = ""
    problem_name: str = ""

    @property
    def channel(self) -> str:
        """Where it takes place."""
        return self.tape.partition(":")[0]

    @property
    def sort_key(self) -> tuple[str, str]:
        """Its place in the order: what was used last stands first."""
        return self.last_turn, self.tape


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Some of the conversations, in order.

    Attributes:
        sessions: These.
        total: How many there are of those asked for.
        unread: How many were not read yet, so that their place is not known.
        next: The place behind the last one; None where nothing follows.
        channels: Of all conversations.
    """

    sessions: tuple[SessionSummary, ...]
    total: int
    unread: int
    next: tuple[str, str] | None
    channels: tuple[str, ...]


class SessionDirectory:
    """Knows conversations in short, as many as are kept in memory.

    Args:
        store: Holds their tapes.
        view_messages: Bound on messages in a fold's view.
        view_tokens: Bound on their tokens.
    """

    def __init__(self, store: TapeStore, view_messages: int, view_tokens: int) -> None:
        self._store = store
        self._bounds = (view_messages, view_tokens)
        # In the order in which they were looked at: the first is to be looked at next.
        self._known: OrderedDict[str, SessionSummary] = OrderedDict()
        self._reading = anyio.Lock()

    async def newest(
        self,
        *,
        words: str = "",
        channel: str = "",
        after: tuple[str, str] | None = None,
        limit: int = 50,
        budget: float = BUDGET,
        tapes: Sequence[str] | None = None,
    ) -> SessionPage:
        """Return conversations, what was used last first.

        Args:
            words: Only those whose key, title or people hold all of these words.
            channel: Only those of this channel.
            after: Only those behind this place.
            limit: So many at most; fewer where most were not read yet.
            budget: Seconds to read what is not shown.
            tapes: Names of all tapes, where they were asked for already.
        """
        there = await self._store.list_tapes() if tapes is None else tapes
        names = [name for name in there if is_conversation(name)]
        channels = tuple(sorted({name.partition(":")[0] for name in names}))
        if channel:
            names = [name for name in names if name.partition(":")[0] == channel]
        await self._read_some(names, budget)
        wanted = words.casefold().split()
        if wanted:
            names = [name for name in names if await self._fits(name, wanted)]
        known = [self._known.get(name) or SessionSummary(name) for name in names]
        behind = known if after is None else [one for one in known if one.sort_key < after]
        first = heapq.nlargest(limit, behind, key=lambda one: one.sort_key)
        looked, until = 0, anyio.current_time() + PAGE_SECONDS
        shown: list[SessionSummary] = []
        for one in first:
            # Those not read yet stand last: the next page, or the next request, begins with them.
            if looked and one.tape not in self._known and anyio.current_time() >= until:
                break
            looked += 1
            if (now := await self.get(one.tape)) is not None:
                shown.append(now)
        shown.sort(key=lambda one: one.sort_key, reverse=True)
        more, first = len(behind) > looked, first[:looked]
        unread = sum(name not in self._known for name in names)
        following = first[-1].sort_key if more and first else None
        return SessionPage(tuple(shown), len(names), unread, following, channels)

    async def get(self, tape: str) -> SessionSummary | None:
        """Return one as it is now; None where it is gone."""
        try:
            version = await self._store.version(tape)
            erasures = await self._store.erasures(tape)
            seen = self._known.get(tape)
            if seen is None or (seen.version, seen.erasures) != (version, erasures):
                service = TapeService(self._store, tape)
                messages, tokens = self._bounds
                fold = await load_fold(service, max_messages=messages, max_tokens=tokens)
                seen = _summed(tape, fold, erasures)
                if not seen.people:
                    # A boundary cut the view: who gave the last commands is known all the same.
                    newest = await self._store.read(tape, max(version - _NEWEST, 1), version)
                    seen = replace(seen, people=_people(newest))
            self._keep(seen)
            return await self._with_words(seen)
        except TapeNotFound:
            self._known.pop(tape, None)
            return None
        except TapeError:
            # One damaged tape must not hide the others.
            broken = SessionSummary(tape, state="damaged")
            self._keep(broken)
            return broken

    async def _read_some(self, names: Iterable[str], budget: float) -> None:
        """Look at conversations for a while: those never seen first, then the longest ago."""
        if self._reading.statistics().locked:
            return
        async with self._reading:
            until = anyio.current_time() + budget
            there = set(names)
            unseen = [name for name in there if name not in self._known]
            for name in (*unseen, *[one for one in self._known if one in there]):
                if anyio.current_time() >= until:
                    break
                await self.get(name)

    async def _fits(self, tape: str, words: list[str]) -> bool:
        seen = self._known.get(tape)
        title = await self._title(tape)
        text = " ".join((tape, title, *(seen.people if seen else ()))).casefold()
        return all(word in text for word in words)

    async def _title(self, tape: str) -> str:
        try:
            return await self._store.get_title(tape) or ""
        except TapeError:
            return ""

    async def _with_words(self, seen: SessionSummary) -> SessionSummary:
        name = ""
        if seen.problem != GENERAL_PROBLEM and seen.facts:
            facts = fold_entries(
                await load_fact_entries(TapeService(self._store, seen.tape), seen.facts)
            )
            found = facts.compartments.problem(seen.problem)
            name = found.name if found is not None else ""
        return replace(seen, title=await self._title(seen.tape), problem_name=name)

    def _keep(self, seen: SessionSummary) -> None:
        self._known[seen.tape] = replace(seen, title="", problem_name="")
        self._known.move_to_end(seen.tape)
        while len(self._known) > _MOST_KEPT:
            self._known.popitem(last=False)


def is_conversation(tape: str) -> bool:
    """Say whether a tape holds a conversation, and not what is known of somebody, or of the program."""
    return not tape.startswith((PERSON_SCOPE_PREFIX, _PROGRAM))


def session_directory(connection: HTTPConnection) -> SessionDirectory:
    """Return the application's directory, for a route's parameter."""
    state = connection.app.state
    if not hasattr(state, "directory"):
        web = state.web
        state.directory = SessionDirectory(web.store, web.view_messages, web.view_tokens)
    found = state.directory
    assert isinstance(found, SessionDirectory)
    return found


async def memories(
    tapes: Iterable[str], scopes: ScopeRegistry
) -> list[tuple[str, tuple[str, ...]]]:
    """Return those tapes that memory of people, or of all, is on, each with the identities it is of."""
    await scopes.identity_linker.open()
    found: list[tuple[str, tuple[str, ...]]] = []
    for name in tapes:
        if name == WORKSPACE_SCOPE:
            found.insert(0, (name, ()))
        elif identities := scopes.identities(name):
            found.append((name, identities))
    return found


def _summed(tape: str, fold: SessionFold, erasures: int) -> SessionSummary:
    used = fold.compartments.last_used
    return SessionSummary(
        tape=tape,
        version=fold.version,
        erasures=erasures,
        people=_people(fold.window.entries),
        last_turn=format_time(used) if used is not None else "",
        waiting=fold.window.unconsolidated,
        turns=fold.turns.turn_count,
        usage=fold.turns.usage,
        problem=fold.problem,
        facts=fold.facts.last_entry_id,
        home=fold.home_scope or tape,
        state=_state(fold),
    )


def _people(entries: Sequence[TapeEntry]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for entry in reversed(entries):
        if "sender" in entry.meta and len(names) < _NAMES:
            names.setdefault(sender_name(entry))
    return tuple(names)


def _state(fold: SessionFold) -> str:
    if fold.turns.open_turn is not None:
        return "answering"
    if fold.turns.undelivered:
        return "undelivered"
    return "unconsolidated" if fold.consolidation_failure is not None else "idle"
