"""List conversations with a summary of each, cached in memory.

Rule 1: what is returned is each tape's current state; only the order among many may lag.
Rule 2: no text is cached except names: what is erased from a tape is gone from here, too.
Rule 3: a request reads for a bounded time; later requests read the rest.
"""

from __future__ import annotations

import base64
import binascii
import heapq
import json
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import anyio
from fastapi import Depends
from pydantic import Field
from starlette.requests import HTTPConnection

from bot.core.clock import format_time
from bot.core.errors import HttpError, TapeError, TapeNotFound
from bot.inspector.reading import ReadModel
from bot.memory.records.files import FILES_PREFIX
from bot.memory.records.transcript import sender_name
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE, ScopeRegistry
from bot.memory.session.scope.identities import PERSON_SCOPE_PREFIX
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.session_fold import SessionFold
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


SessionState = Literal["answering", "undelivered", "unconsolidated", "damaged", "idle"]


class SessionModel(ReadModel):
    """A summary of a conversation."""

    tape: str = Field(description="The conversation's key.")
    channel: str = Field(description="Its channel.")
    title: str = Field(description="Its title; empty if it has none.")
    people: tuple[str, ...] = Field(description="The last speakers, newest first; at most four.")
    last_turn: str | None = Field(description="When a turn last began, ISO 8601.")
    entries: int = Field(description="Id of the last entry.")
    waiting: int = Field(description="Messages that are not consolidated yet.")
    turns: int = Field(description="Turns that ended, commands not counted.")
    prompt_tokens: int = Field(description="Tokens of all requests to the model.")
    cached_tokens: int = Field(description="How many of them came from the provider's cache.")
    completion_tokens: int = Field(description="Tokens of the model's answers.")
    cost: float | None = Field(description="US dollars; null if a price is unknown.")
    problem: str = Field(description="Id of the active problem.")
    problem_name: str = Field(description="Its name; empty for `general`.")
    model: str = Field(description="Name of the model preset that it chose; empty for the default.")
    home: str = Field(description="The tape of the facts that are learned here.")
    state: SessionState = Field(
        description="A turn is running; an answer has no receipt; the last consolidation failed; "
        "the tape cannot be read; none of these."
    )


class SessionsModel(ReadModel):
    """Conversations, the most recently used first."""

    sessions: tuple[SessionModel, ...]
    total: int = Field(description="Number of matching conversations.")
    unread: int = Field(
        description="Number of conversations that have not been read yet since the start; they are "
        "listed last. Each request reads some."
    )
    next: str | None = Field(description="Pass it as `cursor` for the next page.")
    channels: tuple[str, ...] = Field(description="Channels of all conversations.")


class MemoryModel(ReadModel):
    """The tape of a person's memory, or of the memory that everybody reads."""

    tape: str = Field(description="Its key, for `tape`.")
    identities: tuple[str, ...] = Field(
        description="Identities of the owner; none for shared memory."
    )


@dataclass(frozen=True, slots=True)
class _Known:
    """What is cached of a conversation.

    Attributes:
        version: Id of its last entry.
        erasures: The store's count of erasures on it.
        session: Its summary, without title.
    """

    version: int
    erasures: int
    session: SessionModel


class SessionDirectory:
    """Summaries of conversations, cached in memory up to a limit."""

    def __init__(self, store: TapeStore) -> None:
        self._store = store
        # Ordered by when they were read: the first is the next to read again.
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._reading = anyio.Lock()

    async def newest(
        self,
        *,
        words: str = "",
        channel: str = "",
        cursor: str = "",
        limit: int = 50,
        budget: float = BUDGET,
        tapes: Sequence[str] | None = None,
    ) -> SessionsModel:
        """Return conversations, the most recently used first.

        Raises:
            HttpError: 422 if it is no cursor.
        """
        after = _decode_cursor(cursor)
        there = await self._store.list_tapes() if tapes is None else tapes
        names = [name for name in there if is_conversation(name)]
        channels = tuple(sorted({_channel(name) for name in names}))
        if channel:
            names = [name for name in names if _channel(name) == channel]
        await self._read_some(names, budget)
        wanted = words.casefold().split()
        if wanted:
            names = [name for name in names if await self._fits(name, wanted)]
        keys = map(self._sort_key, names)
        behind = [key for key in keys if after is None or key < after]
        session_models, looked = await self._page(heapq.nlargest(limit, behind))
        return SessionsModel(
            sessions=tuple(session_models),
            total=len(names),
            unread=sum(name not in self._known for name in names),
            next=_encode_cursor(looked[-1]) if looked and len(behind) > len(looked) else None,
            channels=channels,
        )

    async def _page(
        self, keys: Iterable[tuple[str, str]]
    ) -> tuple[list[SessionModel], list[tuple[str, str]]]:
        """Return conversations in order, as far as time allows, and the keys that were read."""
        looked: list[tuple[str, str]] = []
        session_models: list[SessionModel] = []
        until = anyio.current_time() + PAGE_SECONDS
        for key in keys:
            # Unread ones are last; the next page or request begins with them.
            if looked and key[1] not in self._known and anyio.current_time() >= until:
                break
            looked.append(key)
            if (now := await self.get(key[1])) is not None:
                session_models.append(now)
        session_models.sort(
            key=lambda session_model: (session_model.last_turn or "", session_model.tape),
            reverse=True,
        )
        return session_models, looked

    def _sort_key(self, tape: str) -> tuple[str, str]:
        known = self._known.get(tape)
        return (known.session.last_turn or "") if known is not None else "", tape

    async def get(self, tape: str) -> SessionModel | None:
        """Return a conversation's current summary; None if it does not exist."""
        try:
            version = await self._store.version(tape)
            erasures = await self._store.erasures(tape)
            known = self._known.get(tape)
            if known is None or (known.version, known.erasures) != (version, erasures):
                known = await self._read(tape, erasures)
            self._keep(tape, known)
            return known.session.model_copy(update={"title": await self._title(tape)})
        except TapeNotFound:
            self._known.pop(tape, None)
            return None
        except TapeError:
            # One damaged tape must not hide the others.
            broken = _damaged(tape)
            self._keep(tape, _Known(0, 0, broken))
            return broken

    async def _read(self, tape: str, erasures: int) -> _Known:
        fold = await load_fold(TapeService(self._store, tape))
        people = _people(fold.window.entries)
        if not people:
            # A boundary cut the view; the senders of the last commands are still known.
            newest = await self._store.read(tape, max(fold.version - _NEWEST, 1), fold.version)
            people = _people(newest)
        problem, general = fold.compartments.problem(fold.problem), fold.problem == GENERAL_PROBLEM
        used, usage = fold.compartments.last_used, fold.turns.usage
        session = SessionModel(
            tape=tape,
            channel=_channel(tape),
            title="",
            people=people,
            last_turn=format_time(used) if used is not None else None,
            entries=fold.version,
            waiting=fold.window.unconsolidated,
            turns=fold.turns.turn_count,
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            completion_tokens=usage.completion_tokens,
            cost=usage.cost,
            problem=fold.problem,
            problem_name=problem.name if problem is not None and not general else "",
            model=fold.chosen_preset,
            home=fold.home_scope or tape,
            state=_state(fold),
        )
        return _Known(fold.version, erasures, session)

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
        known = self._known.get(tape)
        people = known.session.people if known is not None else ()
        text = " ".join((tape, await self._title(tape), *people)).casefold()
        return all(word in text for word in words)

    async def _title(self, tape: str) -> str:
        try:
            return await self._store.get_title(tape) or ""
        except TapeError:
            return ""

    def _keep(self, tape: str, known: _Known) -> None:
        self._known[tape] = known
        self._known.move_to_end(tape)
        while len(self._known) > _MOST_KEPT:
            self._known.popitem(last=False)


def is_conversation(tape: str) -> bool:
    """Return whether a tape is a conversation, not a person's scope or the program's own."""
    return not tape.startswith((PERSON_SCOPE_PREFIX, FILES_PREFIX, _PROGRAM))


def session_directory(connection: HTTPConnection) -> SessionDirectory:
    """Return the application's session directory; a FastAPI dependency."""
    state = connection.app.state
    if not hasattr(state, "directory"):
        web = state.web
        state.directory = SessionDirectory(web.store)
    found = state.directory
    assert isinstance(found, SessionDirectory)
    return found


DirectoryDep = Annotated[SessionDirectory, Depends(session_directory)]
"""Route parameter: the directory of conversations."""


async def memories(tapes: Iterable[str], scopes: ScopeRegistry) -> list[MemoryModel]:
    """Return the memory tapes of people and of the workspace."""
    await scopes.identity_linker.open()
    memory_models: list[MemoryModel] = []
    for name in tapes:
        if name == WORKSPACE_SCOPE:
            memory_models.insert(0, MemoryModel(tape=name, identities=()))
        elif identities := scopes.identities(name):
            memory_models.append(MemoryModel(tape=name, identities=identities))
    return memory_models


def _channel(tape: str) -> str:
    return tape.partition(":")[0]


def _damaged(tape: str) -> SessionModel:
    return SessionModel(
        tape=tape, channel=_channel(tape), title="", people=(), last_turn=None, entries=0, waiting=0, turns=0,
        prompt_tokens=0, cached_tokens=0, completion_tokens=0, cost=0.0, problem=GENERAL_PROBLEM,
        problem_name="", model="", home="", state="damaged",
    )  # fmt: skip


def _people(entries: Sequence[TapeEntry]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for entry in reversed(entries):
        if "sender" in entry.meta and len(names) < _NAMES:
            names.setdefault(sender_name(entry))
    return tuple(names)


def _state(fold: SessionFold) -> SessionState:
    if fold.turns.open_turn is not None:
        return "answering"
    if fold.turns.undelivered:
        return "undelivered"
    return "unconsolidated" if fold.consolidation_failure is not None else "idle"


def _encode_cursor(place: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def _decode_cursor(cursor: str) -> tuple[str, str] | None:
    """Decode a cursor to its position in the list; None for the beginning.

    Raises:
        HttpError: 422 if it is no cursor.
    """
    if not cursor:
        return None
    try:
        used, tape = json.loads(base64.urlsafe_b64decode(cursor.encode()))
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        # for programs
        raise HttpError(422, "invalid_request", "cursor: pass `next` of an answer") from error
    if not (isinstance(used, str) and isinstance(tape, str)):
        raise HttpError(422, "invalid_request", "cursor: pass `next` of an answer")  # for programs
    return used, tape
