"""Run blocking storage work in threads of its own, at a fraction of what a general thread pool costs.

A turn waits for the disk several times, one after the other. ``anyio.to_thread`` takes a token, switches tasks twice and
copies a context for each, which costs more CPU time than the write itself.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread

Job = Callable[[], None]
"""Tells its outcome itself, and raises nothing."""


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
        self._idle: list[SimpleQueue[Job]] = []
        self._waiting: deque[Job] = deque()

    def submit(self, job: Job) -> None:
        """Let a thread do a job; without any thread, which the system may refuse, do it here."""
        with self._lock:
            if self._idle:
                self._idle.pop().put(job)
                return
            self._waiting.append(job)
            if self._started == self._most:
                return
            self._started += 1
        try:
            # A daemon, because it waits for jobs until the process ends.
            Thread(target=self._work, name="storage", daemon=True).start()
        except RuntimeError:
            with self._lock:
                self._started -= 1
                alone = [] if self._started else [*self._waiting]
                self._waiting = self._waiting if self._started else deque()
            for one in alone:
                one()

    def _work(self) -> None:
        jobs: SimpleQueue[Job] = SimpleQueue()
        while True:
            with self._lock:
                job = self._waiting.popleft() if self._waiting else None
                if job is None:
                    self._idle.append(jobs)
            (job or jobs.get())()
            # An idle thread keeps nothing of what it wrote.
            del job
