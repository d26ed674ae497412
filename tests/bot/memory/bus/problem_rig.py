"""A session's tape written as its worker writes it, for what its problems need."""

from __future__ import annotations

import itertools

from bot.memory.records.conversation_entries import TURN_END, TURN_START
from bot.memory.records.episodes import with_problem
from bot.memory.session.bus.memory_bus import MemoryBus
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.zone import MemoryZone
from bot.tape.entries import event, message
from bot.tape.service import TapeService
from bot.tape.store import TapeStore
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import ManualClock

HOUR = 3_600
BOUNDS = {"max_messages": 40, "max_tokens": 4_000}


class Talk:
    """One session, opened on a store; its state, its memory bus and its tape."""

    fold: SessionFold
    bus: MemoryBus
    tape: TapeService

    def __init__(self, store: TapeStore | None = None, *, hours: float = 2.0) -> None:
        self.clock = ManualClock()
        self.store = store or InMemoryTapeStore(clock=self.clock)
        self._hours = hours
        self._numbers = itertools.count(1)

    async def open(self) -> Talk:
        """Open it from the tail of its tape, as after a restart."""
        self.tape = tape = TapeService(self.store, "fake:1")
        await tape.ensure_bootstrap_anchor()
        self.fold = await load_fold(tape)
        window = self.fold.window
        window.max_messages, window.max_tokens = BOUNDS.values()
        tape.observe(self.fold.apply)
        tape.stamp = lambda entry: with_problem(entry, self.fold.problem)
        zone = MemoryZone(tape, retention_days=30, fold=self.fold.zone, clock=self.clock)
        await zone.load_or_create()
        scopes = ScopeRegistry(self.store, self.clock)
        memory = LongTermMemory(tape, self.fold, zone, scopes, hours=self._hours)
        await memory.open()
        self.bus = memory.bus
        return self

    async def begin(self, text: str) -> str:
        """Begin a turn with a person's message; return its id."""
        turn = f"turn-{next(self._numbers)}"
        said = message("user", text, inbound=f"m-{turn}")
        data = {"turn": turn, "inbound": [f"m-{turn}"], "bounds": [*BOUNDS.values()]}
        await self.tape.append_many([said, event(TURN_START, data)])
        return turn

    async def end(self, turn: str, text: str) -> None:
        data = {"turn": turn, "answered": True, "inbound": [f"m-{turn}"]}
        await self.tape.append_many([message("assistant", text), event(TURN_END, data)])

    async def say(self, text: str) -> None:
        await self.end(await self.begin(text), f"re: {text}")

    async def problem(self, name: str) -> str:
        """Make a problem and work on it; return its id."""
        made = await self.bus.problems.create(name)
        assert await self.bus.problems.switch_to(made.problem_id)
        return made.problem_id

    def view(self) -> list[str]:
        return [str(entry.payload.get("content")) for entry in self.fold.window.conversation()]
