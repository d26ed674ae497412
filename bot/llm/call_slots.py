"""Limit concurrent model calls: fair over sessions, and people before background work.

Rule 1: a free slot goes to a waiting person before any background work.
Rule 2: among people, the session with the fewest running calls is next; then who waits longest.
Rule 3: background work holds at most half of the slots, so that it cannot lock people out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import anyio

OnWait = Callable[[bool], Awaitable[None]]
"""Called with True when a call begins to wait for a slot, and with False when it got one."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes the model calls of a task.

    Attributes:
        session: The session's key; empty outside of sessions.
        background: Whether nobody waits for the result.
        on_wait: Told when a call waits; None tells nobody.
    """

    session: str = ""
    background: bool = False
    on_wait: OnWait | None = None


_caller: ContextVar[Caller] = ContextVar("caller", default=Caller())  # noqa: B039 (frozen)


@contextmanager
def calling_for(caller: Caller) -> Iterator[None]:
    """Make the model calls in the block, and in tasks started there, count as this caller's."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


@dataclass(slots=True, eq=False)
class _Waiter:
    caller: Caller
    granted: anyio.Event = field(default_factory=anyio.Event)


class CallSlots:
    """A number of slots for model calls, shared by all models of a process.

    Args:
        total: The number of slots.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._running: Counter[str] = Counter()
        self._background = 0
        self._waiters: list[_Waiter] = []

    def statistics(self) -> dict[str, int]:
        """Return how many calls run and wait, and how many of the running are background work."""
        return {
            "running": self._running.total(),
            "background": self._background,
            "waiting": len(self._waiters),
        }

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot in the block; wait for it if none is free."""
        waiter = _Waiter(_caller.get())
        self._waiters.append(waiter)
        self._grant()
        try:
            if not waiter.granted.is_set():
                await self._wait(waiter)
            yield
        finally:
            if waiter.granted.is_set():
                self._release(waiter.caller)
            else:
                self._waiters.remove(waiter)

    async def _wait(self, waiter: _Waiter) -> None:
        told = waiter.caller.on_wait
        if told is not None:
            await told(True)
        await waiter.granted.wait()
        if told is not None:
            await told(False)

    def _grant(self) -> None:
        """Give free slots to those who are next."""
        while self._running.total() < self._total:
            allowed = [one for one in self._waiters if self._may_run(one.caller)]
            if not allowed:
                return
            chosen = min(
                allowed,
                key=lambda one: (one.caller.background, self._running[one.caller.session]),
            )
            self._waiters.remove(chosen)
            self._running[chosen.caller.session] += 1
            self._background += chosen.caller.background
            chosen.granted.set()

    def _may_run(self, caller: Caller) -> bool:
        return not caller.background or self._background < max(1, self._total // 2)

    def _release(self, caller: Caller) -> None:
        self._running[caller.session] -= 1
        if not self._running[caller.session]:
            del self._running[caller.session]
        self._background -= caller.background
        self._grant()
