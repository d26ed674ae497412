"""Find the session that a client's conversation is, and fork it where the client goes on otherwise.

Rule 1: sessions of a person's clients are numbered: ``api:local:7``; those of a client that has sessions
    of its own are ``api:local:NAME-7``. The number of a new one, and the id of a new message, follow
    from the tapes alone, so a request that is repeated after a kill is the same message to the bus.
Rule 2: a request that the tape holds already counts as repeated until its answer has reached the
    client; from then on it asks for another answer, in a fork.
Rule 3: what is held in memory is read from tapes, and read anew after an erasure.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import anyio.to_thread

from bot.bus import (
    API_CHANNEL,
    Address,
    ClientHistory,
    ClientMessage,
    ClientPlace,
    Transcript,
    TranscriptMessage,
    WebUser,
    client_topic,
)
from bot.core.errors import TapeNotFound
from bot.inspector.clients.matching import Match, flat, is_same, is_unasked, match
from bot.memory.records.turn_marks import turn_end
from bot.memory.session.state.turn_fold import DELIVERY
from bot.tape.service import TapeService
from bot.tape.store import HEADER_EVENT, TapeStore

MOST_SESSIONS = 1_000
"""The newest sessions of a person among which a conversation is looked for."""

MOST_HELD = 2_000
"""Sessions whose messages are held in memory."""

_ALWAYS_READ = 20
"""The newest sessions, which are looked at whatever they begin with: a client may have cut that off."""

_AFTER = 256
"""Entries after an answer among which its turn's end and its receipt are."""


@dataclass(slots=True)
class _Told:
    """The messages of a tape, as far as they were read, each with a ``flat`` text."""

    version: int = 0
    erasures: str = ""
    messages: list[TranscriptMessage] = field(default_factory=list)


class ClientConversations:
    """Finds sessions by what was said in them."""

    def __init__(self, store: TapeStore, transcript: Transcript) -> None:
        self._store = store
        self._transcript = transcript
        self._told: OrderedDict[str, _Told] = OrderedDict()
        self._delivered: OrderedDict[tuple[str, str], None] = OrderedDict()

    async def locate(self, user: WebUser, history: ClientHistory) -> ClientPlace:
        """Return where a request belongs; see ``ClientBackend.locate``.

        Raises:
            TapeError: The storage failed.
        """
        given, history = history, await anyio.to_thread.run_sync(_flat, history)
        numbers = await self._numbers(user)
        new = await self._new(user, max(numbers, default=0))
        best: tuple[tuple[int, bool, int], str, list[TranscriptMessage], Match] | None = None
        for place, number in enumerate(sorted(numbers, reverse=True)[:MOST_SESSIONS]):
            session = _address(user, number).session
            if place >= _ALWAYS_READ and not self._may_be(session, history):
                continue
            told = await self.messages(session)
            found = match(history.past, told)
            if not history.past and not await self._repeats(session, told, 0, history):
                continue
            if not found.told and history.past:
                continue
            ends = found.past == len(history.past) and _ends(told, found.told, history)
            rank = (found.past, ends, number)
            if best is None or rank > best[0]:
                best = rank, session, told, found
        if best is None:
            return ClientPlace(new, "after-0", given.past, pairs=False)
        located = await self._place(*best[1:], history, new)
        return replace(located, unknown=given.past[len(given.past) - len(located.unknown) :])

    async def messages(self, session: str) -> list[TranscriptMessage]:
        """Return the messages of a tape; empty if there is none."""
        try:
            version = await self._store.version(session)
        except TapeNotFound:
            return []
        erasures = await self._transcript.erasure_version(session)
        told = self._told.setdefault(session, _Told())
        self._told.move_to_end(session)
        while len(self._told) > MOST_HELD:
            self._told.popitem(last=False)
        if told.erasures != erasures:
            told.messages, told.version, told.erasures = [], 0, erasures
        if told.version != version:
            last = told.messages[-1].position if told.messages else 0
            newer = await self._transcript.since(session, last)
            told.messages = told.messages + [replace(one, text=flat(one.text)) for one in newer]
            told.version = version
        return told.messages

    def mark_delivered(self, session: str, answer: str) -> None:
        """Remember that an answer reached its client, where no receipt can say so."""
        self._delivered[session, answer] = None
        while len(self._delivered) > MOST_HELD:
            self._delivered.popitem(last=False)

    async def _new(self, user: WebUser, newest: int) -> Address:
        """Return the address of a new session: the newest one if a kill left it without a message."""
        address = _address(user, newest)
        if newest and not await self.messages(address.session):
            return address
        return _address(user, newest + 1)

    async def _numbers(self, user: WebUser) -> list[int]:
        begin = f"{Address(API_CHANNEL, user.id).session}:{client_topic(user.client, '')}"
        tapes = await self._store.list_tapes()
        rests = (tape.removeprefix(begin) for tape in tapes if tape.startswith(begin))
        return [int(rest) for rest in rests if rest.isascii() and rest.isdecimal()]

    def _may_be(self, session: str, history: ClientHistory) -> bool:
        """Return whether a session may begin as a conversation does, by what was read of it before.

        A beginning never changes but by an erasure, so most sessions need not be looked at again.
        """
        told = self._told.get(session)
        first = history.past[0] if history.past else history.new
        if told is None or not told.messages or first is None:
            return True
        return is_same(first, told.messages[0])

    async def _place(
        self,
        session: str,
        told: list[TranscriptMessage],
        found: Match,
        history: ClientHistory,
        new: Address,
    ) -> ClientPlace:
        address, whole = Address.parse(session), found.past == len(history.past)
        if whole and (again := await self._repeats(session, told, found.told, history)):
            return again
        last = told[found.told - 1]
        if whole and _ends(told, found.told, history):
            await self._complete_copy(session)
            return ClientPlace(address, _after(told[-1], history))
        child = await TapeService(self._store, session).fork_through(
            new.session, await self._end_of(session, last)
        )
        unknown = history.past[found.past :]
        return ClientPlace(Address.parse(child.name), _after(last, history), unknown, pairs=whole)

    async def _repeats(
        self, session: str, told: Sequence[TranscriptMessage], at: int, history: ClientHistory
    ) -> ClientPlace | None:
        """Return the place of a request that the tape holds, if its answer is still to be had."""
        rest = told[at:]
        if history.new is not None:
            if not rest or not is_same(history.new, rest[0]):
                return None
            asked, answers = rest[0].id, rest[1:]
        elif rest:
            asked, answers = _after(told[at - 1], history), rest
        else:
            return None
        if len(answers) > 1:
            return None
        if (
            not answers
            and rest
            and rest[0].position <= (await self._parent(session)).get("last", 0)
        ):
            # A fork has it from its parent: here nobody asks it, so no answer would come.
            return None
        answer = answers[0].id if answers else None
        if answers and not history.repeated and await self._is_delivered(session, answers[0]):
            return None
        return ClientPlace(Address.parse(session), asked, asked=asked, answer=answer)

    async def _is_delivered(self, session: str, answer: TranscriptMessage) -> bool:
        if (session, answer.id) in self._delivered:
            return True
        entries = await self._store.read(session, answer.position, answer.position + _AFTER)
        return any(
            entry.name == DELIVERY
            and entry.data.get("turn") == answer.id
            and entry.data.get("delivered") is True
            for entry in entries
        )

    async def _end_of(self, session: str, last: TranscriptMessage) -> int:
        """Return the id of the last entry that belongs to a message."""
        if last.author == "person":
            return last.position
        entries = await self._store.read(session, last.position, last.position + _AFTER)
        marks = filter(None, map(turn_end, entries))
        ends = (mark.id for mark in marks if mark.data.get("turn") == last.id)
        return next(ends, last.position)

    async def _complete_copy(self, session: str) -> None:
        """Append the boundary of a fork that a kill left without it."""
        parent = await self._parent(session)
        if parent.get("last") == await self._store.version(session):
            tape = TapeService(self._store, str(parent.get("tape")))
            await tape.fork_through(session, int(parent["last"]))

    async def _parent(self, session: str) -> dict[str, Any]:
        """Return which tape a fork is of, up to which entry; empty if it is none."""
        head = (await self._store.read(session, 1, 1))[:1]
        parent = head[0].data.get("parent") if head and head[0].name == HEADER_EVENT else None
        return parent if isinstance(parent, dict) else {}


def _flat(history: ClientHistory) -> ClientHistory:
    past = [replace(one, text=flat(one.text)) for one in history.past]
    new = history.new and replace(history.new, text=flat(history.new.text))
    return replace(history, past=tuple(past), new=new)


def _address(user: WebUser, number: int) -> Address:
    return Address(API_CHANNEL, user.id, client_topic(user.client, str(number)))


def _ends(told: Sequence[TranscriptMessage], at: int, history: ClientHistory) -> bool:
    """Return whether a tape has nothing more than unasked messages from a place on."""
    if history.new is None:
        return at == len(told)
    return all(is_unasked(told, place) for place in range(at, len(told)))


def _after(last: TranscriptMessage, history: ClientHistory) -> str:
    """Return the id of a request that follows a message."""
    return f"{'after' if history.new is not None else 'results'}-{last.position}"


def find_answer(told: Sequence[TranscriptMessage], inbound: str) -> str | None:
    """Return the id of the answer to a message or to results; None if there is none yet."""
    kind, _, place = inbound.partition("-")
    if kind == "results":
        after = next((one.position for one in told if str(one.position) == place), None)
    else:
        after = next((one.position for one in told if one.id == inbound), None)
    if after is None:
        return None
    return next((one.id for one in told if one.author == "bot" and one.position > after), None)


def as_past(told: Sequence[TranscriptMessage], answer: str) -> tuple[ClientMessage, ...]:
    """Return a tape's messages up to an answer, as a client would send them."""
    place = next(at for at, one in enumerate(told) if one.id == answer)
    return tuple(ClientMessage(one.author, one.text) for one in told[: place + 1])
