"""Run jobs in order per key, and concurrently between keys."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable

from anyio.abc import TaskGroup

logger = logging.getLogger(__name__)

Job = Callable[[], Awaitable[None]]


class KeyedExecutor:
    """Run each lane's jobs one after the other.

    An exception in a job is logged and ends only that job. Otherwise the platform would send the
    same update again, and it would end the channel at every start.
    """

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._lanes: dict[str, deque[Job]] = {}

    def is_busy(self, lane: str) -> bool:
        """Return whether a lane has a job, running or waiting."""
        return lane in self._lanes

    def submit(self, lane: str, work: Job) -> None:
        """Add a job to the end of a lane without waiting."""
        waiting = self._lanes.get(lane)
        if waiting is None:
            self._lanes[lane] = deque([work])
            self._tasks.start_soon(self._run, lane)
        else:
            waiting.append(work)

    async def _run(self, lane: str) -> None:
        waiting = self._lanes[lane]
        while waiting:
            await self._run_logged(waiting[0])
            waiting.popleft()
        # A cancelled lane stays registered, so that later jobs do not overtake its waiting ones.
        del self._lanes[lane]

    async def _run_logged(self, work: Job) -> None:
        try:
            await work()
        except Exception:  # one job's failure must not stop the other chats
            logger.exception("an event from a platform could not be handled")
