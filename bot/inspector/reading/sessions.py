"""List conversations with a summary of each, cached in memory.

Rule 1: what is returned is each tape's current state; only the order among many may lag.
Rule 2: no text is cached except names: what is erased from a tape is gone from here, too.
Rule 3: a request reads for a bounded time; later requests read the rest.
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
from bot.memory.records.fact_fold import fold_entries
from bot.memory.records.transcript import sender_name
from bot.memory.session.linking.scope_registry import (
    PERSON_SCOPE_PREFIX,
    WORKSPACE_SCOPE,
    ScopeRegistry,
)
from bot.memory.session.scope.scope_memory import load_fact_entries
from bot.memory.session.view.fold_loader import load_fold
from bot.memory.session.view.session_fold import SessionFold
from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL_PROBLEM
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

BUDGET = 0.05
"""Seconds that a request may read conversations it does not return, to sort them."""

PAGE_SECONDS = 0.03
"""Seconds that it may read those it returns that are not cached yet."""

_MOST_KEPT = 20_000
_NAMES = 4
_NEWEST = 64
"""Entries that are searched for names if the view has none."""

_PROGRAM = "workspace:"
"""Prefix of the names of tapes that hold no conversation."""


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A summary of a conversation.

    Attributes:
        tape: Key of the conversation.
        version: Id of its last entry.
        erasures: The store's count of erasures on it.
        people: Names of the most recent senders, newest first.
        last_turn: When a turn last began, ISO 8601; empty if none did.
        waiting: Messages that are not consolidated yet.
        turns: Turns that ended.
        usage: Usage of all turns and consolidations.
        problem: Id of the active problem.
        facts: Id of the last entry that changed the tape's own facts; 0 for none.
        home: Tape of the conversation's home scope.
        state: ``answering``, ``undelivered``, ``unconsolidated`` (the last attempt failed),
            ``damaged`` (it cannot be read) or ``idle``.
        title: The title that people gave it; empty without one. Never cached.
        problem_name: Name of the active problem. Never cached.
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
        """The channel's name."""
        return self.tape.partition(":")[0]

    @property
    def sort_key(self) -> tuple[str, str]:
        """The key by which conversations are sorted: the most recently used first."""
        return self.last_turn, self.tape


@dataclass(frozen=True, slots=True)
class SessionPage:
    """A page of conversations, in order.

    Attributes:
        sessions: The page's conversations.
        total: How many conversations match.
        unread: How many of those were not read yet, so that their position is unknown.
        next: Sort key of the page's last conversation; None at the end.
        channels: The channels of all conversations.
    """

    sessions: tuple[SessionSummary, ...]
    total: int
    unread: int
    next: tuple[str, str] | None
    channels: tuple[str, ...]


class SessionDirectory:
    """Summaries of conversations, cached in memory up to a limit.

    Args:
        store: Holds the tapes.
        view_messages: The most messages in a fold's view.
        view_tokens: The most tokens in a fold's view.
    """

    def __init__(self, store: TapeStore, view_messages: int, view_tokens: int) -> None:
        self._store = store
        self._bounds = (view_messages, view_tokens)
        # Ordered by when they were read: the first is the next to read again.
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
        """Return conversations, the most recently used first.

        Args:
            words: Words that the key, title and people must contain, all of them.
            channel: Only those of this channel.
            after: Only those after this sort key.
            limit: The most to return; fewer if most were not read yet.
            budget: Seconds to read conversations that are not returned.
            tapes: Names of all tapes, if the caller has them.
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
            # Unread ones are last; the next page or request begins with them.
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
        """Return a conversation's current summary; None if it does not exist."""
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
                    # A boundary cut the view; the senders of the last commands are still known.
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
        """Read conversations for a while: new ones first, then the least recently read."""
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
    """Return whether a tape is a conversation, not a person's scope or the program's own."""
    return not tape.startswith((PERSON_SCOPE_PREFIX, _PROGRAM))


def session_directory(connection: HTTPConnection) -> SessionDirectory:
    """Return the application's session directory; a FastAPI dependency."""
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
    """Return the memory tapes of people and of the workspace, each with its identities."""
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
