"""Work that must be done in order within a chat, and side by side between chats."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable

from anyio.abc import TaskGroup

logger = logging.getLogger(__name__)

Job = Callable[[], Awaitable[None]]


class KeyedExecutor:
    """Runs what each chat has, one after the other.

    One piece of work that breaks down costs itself alone: a platform would send an update that ends
    the channel again at every start.

    Args:
        tasks: Owns the lanes.
    """

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._lanes: dict[str, deque[Job]] = {}

    def is_busy(self, lane: str) -> bool:
        """Return whether a lane has work, running or waiting."""
        return lane in self._lanes

    def submit(self, lane: str, work: Job) -> None:
        """Add work to the end of a lane; returns at once."""
        waiting = self._lanes.get(lane)
        if waiting is None:
            self._lanes[lane] = deque([work])
            self._tasks.start_soon(self._run, lane)
        else:
            waiting.append(work)

    async def _run(self, lane: str) -> None:
        waiting = self._lanes[lane]
        while waiting:
            await self._contained(waiting[0])
            waiting.popleft()
        # A lane that was cut off keeps its place: what still comes must not overtake what it held.
        del self._lanes[lane]

    async def _contained(self, work: Job) -> None:
        try:
            await work()
        except Exception:  # whatever it is, other chats go on
            logger.exception("something that a platform sent could not be handled")
