"""Detect a blocked event loop, log where it is blocked, and let the process be stopped.

Rule 1: a task on the loop beats every second; a thread checks it.
Rule 2: only time in which this process could run counts. What stopped the whole process (SIGSTOP, a
    suspended or starved machine) stopped the thread as well, and used no processor time.
Rule 3: C code such as ``re`` may hold the interpreter's lock without end, and then no thread runs;
    but it runs signal handlers. A timer of processor time sends such a signal: its handler records
    what the loop was doing, and lets the threads run.
Rule 4: while this process has nearly used up memory there is a mark in the home folder: the kernel
    may kill it at any moment, without notice.
Rule 5: a blocked process ends when it is asked to stop, since nothing on the loop can stop it, and
    it ends by itself when it is blocked for long: its supervisor starts it again. The record of its
    work stays behind.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import anyio

from bot.core.telemetry.active_work import LOW_MEMORY, ActiveWork, current_work, record_work

_OF_LIMIT = 0.9
_OF_MACHINE = 0.5
_LEFT = 0.03
_KILOBYTE = 1_024


def memory_is_low(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> bool:
    """Return whether this process has nearly used up memory.

    That is, it uses nine tenths of its control group's limit, or half of a machine that has hardly
    any left. If the system reports nothing, memory is not low.

    Args:
        proc: The proc file system.
        groups: The cgroup file system.
    """
    held = _lines(proc / "self" / "status").get("VmRSS", 0)
    limit = _limit(proc, groups)
    if limit and held > _OF_LIMIT * limit:
        return True
    machine = _lines(proc / "meminfo")
    total = machine.get("MemTotal", 0)
    return held > _OF_MACHINE * total > 0 and machine.get("MemAvailable", total) < _LEFT * total


def _lines(path: Path) -> dict[str, int]:
    """Return the values of a file with lines such as ``VmRSS:  12 kB``, in bytes."""
    found: dict[str, int] = {}
    with suppress(OSError):
        for line in path.read_text("ascii", "replace").splitlines():
            name, _, rest = line.partition(":")
            words = rest.split()
            if len(words) == 2 and words[0].isdecimal() and words[1] == "kB":
                found[name] = int(words[0]) * _KILOBYTE
    return found


def _limit(proc: Path, groups: Path) -> int:
    """Return the memory limit of the process's cgroup (v1 or v2) in bytes; 0 without one."""
    own = ""
    with suppress(OSError):
        for line in (proc / "self" / "cgroup").read_text("utf-8", "replace").splitlines():
            if line.startswith("0::/"):
                own = line.removeprefix("0::/").strip()
    for path in (
        groups / own / "memory.max",
        groups / "memory.max",
        groups / "memory" / "memory.limit_in_bytes",
    ):
        with suppress(OSError):
            told = path.read_text("ascii", "replace").strip()
            if told.isdecimal():
                return int(told)
    return 0


logger = logging.getLogger(__name__)

STALLED = 5.0
"""Seconds without a beat after which the loop counts as blocked."""

ENDED = 60.0
"""Seconds without a beat after which the process ends by itself."""

RECORD = "hang.json"
"""File in the home folder with the work of a blocked process."""

_BEAT = 1.0
_LOOK = 0.25
_LATE = 1.0
"""Seconds between two checks beyond which only used processor time counts."""

_PROCESSOR = 2.0
"""Seconds of processor time without a beat after which the signal is sent."""

_YIELDED = 0.05
_LOGGED = 2.0
_FAILED = 70


class Watchdog:
    """Watches the event loop of the main thread.

    Args:
        folder: The folder for the record of a hang; None writes none.
        stalled: Seconds without a beat after which the loop counts as blocked.
        ended: Seconds after which the process ends by itself.
        low_memory: Returns whether the process has nearly used up memory.
    """

    def __init__(
        self,
        folder: Path | None,
        *,
        stalled: float = STALLED,
        ended: float = ENDED,
        low_memory: Callable[[], bool] = memory_is_low,
    ) -> None:
        self._folder = folder
        self._record = None if folder is None else folder / RECORD
        self._memory_is_low = low_memory
        self._low = False
        self._stalled, self._ended = stalled, ended
        self._beats, self._beat_at = 0, time.monotonic()
        self._done = threading.Event()
        self._loop_thread = threading.main_thread()
        self._reported = self._recorded = self._ending = False
        self._stopped_at: int | None = None
        self._doing: tuple[int, ActiveWork | None] | None = None

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Watch the loop while the context is open."""
        self._loop_thread = threading.current_thread()
        with ExitStack() as stack:
            if self._folder is not None:
                stack.enter_context(record_work(self._folder))
            before = self._install()
            thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
            thread.start()
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._heartbeat)
                    try:
                        yield
                    finally:
                        tasks.cancel_scope.cancel()
            finally:
                self._done.set()
                thread.join()
                if before is not None:
                    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
                    signal.signal(signal.SIGVTALRM, before)

    def handle_signals(self, *signals: signal.Signals) -> None:
        """Notice signals for asyncio even while the loop is blocked.

        asyncio gets them through its wake-up descriptor; the handler only notes the stop.
        """
        for one in signals:
            signal.signal(one, self._on_stop)
            signal.siginterrupt(one, False)

    # On the loop.

    def _install(self) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return None
        before = signal.signal(signal.SIGVTALRM, self._on_processor)
        signal.siginterrupt(signal.SIGVTALRM, False)
        return before

    async def _heartbeat(self) -> None:
        while True:
            self._beats, self._beat_at = self._beats + 1, time.monotonic()
            if threading.current_thread() is threading.main_thread():
                signal.setitimer(signal.ITIMER_VIRTUAL, _PROCESSOR, _BEAT)
            await anyio.sleep(_BEAT)

    # In signal handlers, which interrupt the loop's thread.

    def _on_processor(self, _: int, __: FrameType | None) -> None:
        self._doing = self._beats, current_work()
        if time.monotonic() - self._beat_at > _PROCESSOR:
            time.sleep(_YIELDED)
        while self._ending:
            time.sleep(_YIELDED)

    def _on_stop(self, _: int, __: FrameType | None) -> None:
        if self._stopped_at is None:
            self._stopped_at = self._beats

    # In the thread.

    def _watch(self) -> None:
        beats, stalled_for = self._beats, 0.0
        moment, used = time.monotonic(), time.process_time()
        while not self._done.wait(_LOOK):
            self._look_at_memory()
            now, used_now = time.monotonic(), time.process_time()
            passed = now - moment
            ran = passed if passed <= _LATE else min(passed, used_now - used)
            moment, used = now, used_now
            if self._beats != beats:
                if self._reported:
                    self._on_recovery(stalled_for)
                beats, stalled_for = self._beats, 0.0
                continue
            stalled_for += ran
            if stalled_for >= self._stalled:
                self._on_stall(stalled_for)
                stopping = self._stopped_at is not None
                if stopping or stalled_for >= self._ended:
                    self._end(stalled_for, 128 + signal.SIGTERM if stopping else _FAILED)

    def _look_at_memory(self) -> None:
        low = self._memory_is_low()
        if low == self._low:
            return
        self._low = low
        logger.log(
            logging.ERROR if low else logging.WARNING,
            "memory is nearly used up" if low else "memory is available again",
        )
        if self._folder is None:
            return
        low_memory_file = self._folder / LOW_MEMORY
        with suppress(OSError):
            if low:
                low_memory_file.touch(0o600)
            else:
                low_memory_file.unlink(missing_ok=True)

    def _on_stall(self, stalled_for: float) -> None:
        if not self._reported:
            self._reported = True
            logger.error(
                "the event loop has been blocked for %.0f s, here:\n%s",
                stalled_for,
                self._stack(),
            )
            if self._loop_thread is threading.main_thread():
                # The timer does not run while code waits: send the signal to learn its work.
                signal.pthread_kill(self._loop_thread.ident or 0, signal.SIGVTALRM)
        if not self._recorded and self._doing is not None and self._doing[0] == self._beats:
            self._recorded = True
            self._write(self._doing[1])

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._loop_thread.ident or 0)  # noqa: SLF001 (there is no other way)
        return "".join(traceback.format_stack(frame)).rstrip() if frame is not None else "(nowhere)"

    def _write(self, work: ActiveWork | None) -> None:
        if self._record is None or work is None:
            logger.error("no message is being handled")
            return
        messages = list(work.messages())
        logger.error("handling session %s, messages %s", work.session, messages or "(none)")
        # Not synced: the file outlives the process, and a power loss is no message's fault.
        line = json.dumps({"session": work.session, "messages": messages, "at": time.time()})
        try:
            descriptor = os.open(self._record, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 (a descriptor has no path)
                file.write(line)
        except OSError as error:
            logger.warning("the hang could not be recorded: %s", error)

    def _on_recovery(self, stalled_for: float) -> None:
        logger.warning("the event loop runs again; it was blocked for %.1f s", stalled_for)
        if self._recorded and self._record is not None:
            with suppress(OSError):
                self._record.unlink(missing_ok=True)
        self._reported = self._recorded = False

    def _end(self, stalled_for: float, code: int) -> None:
        why = (
            "it was asked to stop" if self._stopped_at is not None else "it does not end by itself"
        )
        logger.critical(
            "ending the process: nothing has run for %.0f s, and %s",
            stalled_for,
            why,
        )
        self._ending = True
        _flush_log(_LOGGED)
        os._exit(code)


def _flush_log(seconds: float) -> None:
    """Give the logging thread time to write what is queued."""
    until = time.monotonic() + seconds
    waiting = [
        one.queue
        for one in logging.getLogger().handlers
        if isinstance(one, logging.handlers.QueueHandler) and isinstance(one.queue, queue.Queue)
    ]
    while time.monotonic() < until and not all(one.empty() for one in waiting):
        time.sleep(_YIELDED)
    time.sleep(2 * _YIELDED)
