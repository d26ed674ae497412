"""Run blocking storage work in threads of its own, at a fraction of what a general thread pool costs.

A turn waits for the disk several times, one after the other. ``anyio.to_thread`` takes a token, switches tasks twice and
copies a context for each, which costs more CPU time than the write itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread

Job = Callable[[], None]
"""Tells its outcome itself, and raises nothing."""


class StorageThreads:
    """Threads that wait for the disk. They are started as they are needed, and stay.

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
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._started = 0
        # Threads without a job, less the jobs without a thread.
        self._idle = 0

    def submit(self, job: Job) -> None:
        """Let a thread do a job; without any thread, which the system may refuse, do it here."""
        with self._lock:
            lacks = self._idle <= 0 and self._started < self._most
            self._started += lacks
            self._idle -= not lacks
        # A daemon, because it waits for jobs until the process ends.
        thread = Thread(target=self._work, name="storage", daemon=True) if lacks else None
        try:
            if thread is not None:
                thread.start()
        except RuntimeError:
            with self._lock:
                self._started -= 1
                self._idle -= 1
                alone = not self._started
                self._idle += alone
            if alone:
                job()
                return
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            self._jobs.get()()
            with self._lock:
                self._idle += 1
