"""Slots for model calls: fair over sessions, people before background work, nothing lost."""

from __future__ import annotations

import anyio
import anyio.lowlevel
from hypothesis import given
from hypothesis import strategies as st

from bot.llm.call_slots import Caller, CallSlots, calling_for


async def settled() -> None:
    """Let each task go on as far as it can; ``wait_all_tasks_blocked`` may sleep for it."""
    for _ in range(10):
        await anyio.lowlevel.checkpoint()


class Calls:
    """Starts calls that hold a slot until they are told to end, in the order of starting."""

    def __init__(self, slots: CallSlots, tasks: anyio.abc.TaskGroup) -> None:
        self.slots = slots
        self.running: list[str] = []
        self.scopes: dict[str, anyio.CancelScope] = {}
        self._tasks = tasks
        self._ends: dict[str, anyio.Event] = {}

    async def start(self, name: str, caller: Caller) -> None:
        self._ends[name] = anyio.Event()
        self._tasks.start_soon(self._call, name, caller)
        await settled()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await settled()

    async def _call(self, name: str, caller: Caller) -> None:
        with anyio.CancelScope() as self.scopes[name], calling_for(caller):
            async with self.slots.slot():
                self.running.append(name)
                await self._ends[name].wait()
                self.running.remove(name)


async def test_people_come_before_background_work_which_holds_at_most_half():
    async with anyio.create_task_group() as tasks:
        calls = Calls(CallSlots(4), tasks)
        for number in range(4):
            await calls.start(f"b{number}", Caller(f"b{number}", background=True))
        assert calls.running == ["b0", "b1"]
        for number in range(3):
            await calls.start(f"p{number}", Caller(f"p{number}"))
        assert calls.running == ["b0", "b1", "p0", "p1"]
        await calls.end("b0")
        assert calls.running == ["b1", "p0", "p1", "p2"]
        for name in ("b1", "p0", "p1", "p2", "b2", "b3"):
            await calls.end(name)
        assert calls.slots.statistics() == {"running": 0, "background": 0, "waiting": 0}


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.booleans()), max_size=12))
def test_no_slot_is_lost_however_calls_end(plan):
    """Each call waits or runs, then ends or is cancelled; in the end all slots are free."""

    async def run() -> None:
        slots = CallSlots(3)
        async with anyio.create_task_group() as tasks:
            calls = Calls(slots, tasks)
            for number, (session, background, _) in enumerate(plan):
                await calls.start(str(number), Caller(str(session), background))
                assert slots.statistics()["running"] <= 3
            for number, (_, _, cancelled) in enumerate(plan):
                if cancelled:
                    calls.scopes[str(number)].cancel()
                    await settled()
            for number in range(len(plan)):
                await calls.end(str(number))
            tasks.cancel_scope.cancel()
        assert slots.statistics() == {"running": 0, "background": 0, "waiting": 0}

    anyio.run(run)
