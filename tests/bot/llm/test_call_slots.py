"""Slots for model calls: fair over sessions, people before background work, nothing lost."""

from __future__ import annotations

import anyio

from bot.llm.call_slots import Caller, CallSlots, calling_for


class Calls:
    """Starts calls that hold a slot until they are told to end, in the order of starting."""

    def __init__(self, slots: CallSlots, tasks: anyio.abc.TaskGroup) -> None:
        self.slots = slots
        self.running: list[str] = []
        self._tasks = tasks
        self._ends: dict[str, anyio.Event] = {}

    async def start(self, name: str, caller: Caller) -> None:
        self._ends[name] = anyio.Event()
        self._tasks.start_soon(self._call, name, caller)
        await anyio.wait_all_tasks_blocked()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await anyio.wait_all_tasks_blocked()

    async def _call(self, name: str, caller: Caller) -> None:
        with calling_for(caller):
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
