"""Whose a private chat is, while its person joins another channel, or leaves it, in the middle of a message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from datetime import UTC, datetime

import anyio
import pytest
from sampling import some

from bot.bus import Address, Inbound, Sender
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.scope.identities import LinkClaim, LinkParty, ScopeMove
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.session_fold import SCOPE_EVENT, SessionFold
from bot.memory.session.state.zone import MemoryZone
from bot.runtime.sessions.entries import message_entry
from bot.runtime.sessions.fact_scope import update_fact_scope
from bot.tape.service import TapeService
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import ManualClock

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

HERE = Address("other", "9")
ADA, ELSE = LinkParty("fake:7", "Ada", "fake:7"), LinkParty("other:9", "Ada", HERE.session)

_watched: ContextVar[bool] = ContextVar("_watched", default=False)


class Interrupted(InMemoryTapeStore):
    """A store at whose calls, of the one task that is watched, something else happens first.

    Attributes:
        calls: How many the watched task has made.
        meanwhile: What happens before which of them.
    """

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock=clock)
        self.calls = 0
        self.meanwhile: dict[int, list[Callable[[], Awaitable[None]]]] = {}

    async def version(self, tape):
        await self._call()
        return await super().version(tape)

    async def read(self, tape, first=None, last=None):
        await self._call()
        return await super().read(tape, first, last)

    async def read_back(self, tape, before=None):
        await self._call()
        async for entry in super().read_back(tape, before):
            yield entry

    async def append_many(self, tape, entries, *, expect=None):
        await self._call()
        return await super().append_many(tape, entries, expect=expect)

    async def _call(self) -> None:
        if _watched.get():
            self.calls += 1
            for one in self.meanwhile.get(self.calls, ()):
                await one()


class Chat:
    """ELSE's private chat, and what ADA does in hers."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = Interrupted(self.clock)
        self.scopes = ScopeRegistry(self.store, self.clock)
        self.tape = TapeService(self.store, HERE.session)
        self.fold: SessionFold
        self.memory: LongTermMemory

    async def open(self, *, spoken: bool = True) -> None:
        await self.tape.ensure_bootstrap_anchor()
        self.fold = await load_fold(self.tape, max_messages=100, max_tokens=10_000)
        self.tape.observe(self.fold.apply)
        zone = MemoryZone(self.tape, fold=self.fold.zone, clock=self.clock)
        await zone.load_or_create()
        self.memory = LongTermMemory(self.tape, self.fold, zone, self.scopes)
        await self.memory.open()
        if spoken:
            said = self.said("m1")
            await update_fact_scope(said, self.memory, self.fold)
            await self.tape.append(message_entry(said, "UTC"))

    def said(self, message_id: str) -> Inbound:
        return Inbound(
            HERE, message_id, Sender("9", "Ada"), "hi", datetime(2026, 2, 10, tzinfo=UTC)
        )

    async def asked(self) -> LinkClaim:
        await self.scopes.identity_linker.offer(ADA, "code")
        claim = await self.scopes.identity_linker.claim(ELSE, "code", "claim")
        assert isinstance(claim, LinkClaim)
        return claim

    async def join(self) -> ScopeMove | None:
        return await self.scopes.identity_linker.confirm(ADA.identity, None, "confirm")

    async def part(self) -> ScopeMove | None:
        return await self.scopes.identity_linker.unlink(ADA.identity, "unlink")

    async def homes(self) -> list[str]:
        return [
            one.data["home"] for one in await self.tape.read_entries() if one.name == SCOPE_EVENT
        ]


async def message_with(
    chat: Chat, step: Callable[[], Awaitable[ScopeMove | None]], at: int, then: int
) -> tuple[int, bool]:
    """Let ELSE write, and ADA's step be decided before one call of the store, and followed before another.

    Returns:
        How many calls there were, and whether the step was decided when the message's home was settled.
    """
    decided, done = anyio.Event(), anyio.Event()
    moves: list[ScopeMove | None] = []

    async def decide() -> None:
        _watched.set(False)
        moves.append(await step())
        decided.set()

    async def follow() -> None:
        # As ``Scopes.carry_out`` has sessions with a worker follow.
        _watched.set(False)
        await decided.wait()
        [move] = moves
        assert move is not None
        await chat.memory.update_home()
        await chat.scopes.identity_linker.apply_move(move)
        await chat.memory.update_home()
        done.set()

    async with anyio.create_task_group() as tasks:

        def begin(what: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
            async def begun() -> None:
                tasks.start_soon(what)
                # Whatever it needs and has to wait for is in the hands of the message's task.
                await anyio.wait_all_tasks_blocked()

            return begun

        chat.store.meanwhile.setdefault(at, []).append(begin(decide))
        chat.store.meanwhile.setdefault(then, []).append(begin(follow))
        token = _watched.set(True)
        await update_fact_scope(chat.said("m2"), chat.memory, chat.fold)
        _watched.reset(token)
        calls, in_time = chat.store.calls, decided.is_set()
        for number, late in ((at, decide), (then, follow)):
            if number > calls:
                tasks.start_soon(late)
        with anyio.fail_after(30):
            await done.wait()
    return calls, in_time


async def at_every_moment(
    prepared: Callable[[], Awaitable[Chat]], step: str, wanted: str, *, before: bool = False
) -> None:
    """Take a step of ADA's at every two moments of a message, and look at the chat's home after it.

    Args:
        prepared: Makes the chat.
        step: What she does.
        wanted: The home.
        before: Only where she did it before that was settled.
    """
    at, calls = 1, 1
    while at <= calls + 1:
        for then in some(range(at, calls + 2)):
            chat = await prepared()
            made, in_time = await message_with(chat, getattr(chat, step), at, then)
            calls = max(calls, made)
            homes = await chat.homes()
            assert HERE.session not in homes, (at, then)
            if in_time or not before:
                assert homes[-1] == chat.fold.home_scope == wanted, (at, then)
        at += 1
    assert calls > 5


async def test_whoever_is_joined_while_they_write_is_no_stranger_in_their_own_chat():
    """A chat in which somebody else turns up is a group for good: that must not be by such a moment."""

    async def prepared() -> Chat:
        chat = Chat()
        await chat.open()
        await chat.asked()
        return chat

    await at_every_moment(prepared, "join", "person:fake:7")


async def test_whoever_is_parted_while_they_write_is_no_stranger_in_their_own_chat():
    async def prepared() -> Chat:
        chat = Chat()
        await chat.open()
        await chat.asked()
        move = await chat.join()
        assert move is not None
        await chat.memory.update_home()
        await chat.scopes.identity_linker.apply_move(move)
        await chat.memory.update_home()
        return chat

    await at_every_moment(prepared, "part", "person:other:9")


async def test_whoever_is_joined_while_they_write_for_the_first_time_is_known_at_once():
    async def prepared() -> Chat:
        chat = Chat()
        await chat.open(spoken=False)
        await chat.asked()
        return chat

    # Where it is over, nobody spoke here yet: the next message says whose chat it is.
    await at_every_moment(prepared, "join", "person:fake:7", before=True)
