"""Run blocking storage work in threads of its own, at a fraction of what a general thread pool costs.

A turn waits for the disk several times, one after the other. ``anyio.to_thread`` takes a token, switches tasks twice and
copies a context for each, which costs more CPU time than the write itself.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import NamedTuple


class _Job(NamedTuple):
    function: Callable[[bytes], None]
    data: bytes
    done: asyncio.Future[None]
    loop: asyncio.AbstractEventLoop


class StorageThreads:
    """Threads that wait for the disk. They are started as they are needed, and stay.

    Of those that are idle, the one that worked last gets the next job: its memory is still in the processor's caches.

    Args:
        most: The most threads. A disk takes several syncs at once; what comes when all wait for it, waits too.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._begin()
        # The child of a fork has none of its parent's threads.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lock = Lock()
        self._started = 0
        self._idle: list[SimpleQueue[_Job]] = []
        self._waiting: deque[_Job] = deque()

    async def run(self, function: Callable[[bytes], None], data: bytes) -> None:
        """Call a function with data in a thread; return when it returns, or raise what it raises.

        Cancelling the caller does not stop the call; who must know its outcome is shielded.

        Raises:
            OSError: The system has no thread for it; the function was not called.
        """
        loop = asyncio.get_running_loop()
        job = _Job(function, data, loop.create_future(), loop)
        with self._lock:
            lacks = not self._idle and self._started < self._most
            self._started += lacks
            if not lacks:
                self._assign(job)
        if lacks:
            self._start(job)
        await job.done

    def _assign(self, job: _Job) -> None:
        """Give a job to an idle thread, or to the first that will be."""
        if self._idle:
            self._idle.pop().put(job)
        else:
            self._waiting.append(job)

    def _start(self, job: _Job) -> None:
        # A daemon, because it waits for jobs until the process ends.
        thread = Thread(target=self._work, args=(job,), name="storage", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            # The system has no more threads now. The others do the work; without any, the next call tries again.
            with self._lock:
                self._started -= 1
                if self._started:
                    self._assign(job)
                    return
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error

    def _work(self, job: _Job) -> None:
        jobs: SimpleQueue[_Job] = SimpleQueue()
        while True:
            following = self._do(job, jobs)
            # An idle thread keeps nothing of what it wrote.
            del job
            job = jobs.get() if following is None else following

    def _do(self, job: _Job, jobs: SimpleQueue[_Job]) -> _Job | None:
        """Do a job; return one that waits, or take a place among the idle."""
        error = _call(job)
        with self._lock:
            following = self._waiting.popleft() if self._waiting else None
            if following is None:
                # Before the caller is told, who may have the next job.
                self._idle.append(jobs)
        # If its event loop is closed, nobody waits.
        with suppress(RuntimeError):
            job.loop.call_soon_threadsafe(_finish, job.done, error)
        return following


def _call(job: _Job) -> BaseException | None:
    try:
        job.function(job.data)
    except BaseException as error:  # noqa: BLE001 (the caller gets it)
        return error
    return None


def _finish(done: asyncio.Future[None], error: BaseException | None) -> None:
    if done.cancelled():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
