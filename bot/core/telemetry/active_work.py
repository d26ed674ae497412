"""Record which messages are being handled, so that a crash can be attributed to them.

Rule 1: the file is rewritten whenever work with messages begins or ends. It is not synced: the file
    outlives the process, and a power loss is no message's fault.
Rule 2: it is evidence only together with a sign that the process caused its own death: the stack
    that ``faulthandler`` writes at a crash in C, or the mark that memory was nearly used up. A kill
    from outside leaves no such sign.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)

WORK = "work.json"
"""File in the home folder with the current work."""

CRASH = "crash.log"
"""File in the home folder with the stack of a crash in C."""

LOW_MEMORY = "memory.low"
"""File in the home folder that exists while the process has nearly used up memory."""

_LONGEST_STACK = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class ActiveWork:
    """A task's work.

    Attributes:
        session: The session's key.
        messages: Returns the platform ids of the messages; none for work on the session itself.
    """

    session: str
    messages: Callable[[], Sequence[str]]


@dataclass(frozen=True, slots=True)
class CrashRecord:
    """How the previous process died, and its work at that time.

    Attributes:
        at: When work last began or ended, in seconds since 1970.
        work: Sessions with the platform ids of messages; none for work on the session itself.
    """

    at: float
    work: tuple[tuple[str, tuple[str, ...]], ...]


_current: ContextVar[ActiveWork | None] = ContextVar("work", default=None)
_in_work: set[ActiveWork] = set()
_descriptor = -1


def current_work() -> ActiveWork | None:
    """Return this task's work; None without any."""
    return _current.get()


@contextmanager
def track_work(
    session: str, messages: Callable[[], Sequence[str]], *, waits: bool = False
) -> Iterator[None]:
    """Record the work of this task, and of the tasks that it starts.

    Args:
        session: The session's key.
        messages: Returns the platform ids of the messages; none for work on the session itself.
        waits: Whether the task mostly waits, so that a crash meanwhile is not its fault.
    """
    work = ActiveWork(session, messages)
    token = _current.set(work)
    if not waits:
        _in_work.add(work)
        _write()
    try:
        yield
    finally:
        _current.reset(token)
        if not waits:
            _in_work.discard(work)
            _write()


@contextmanager
def record_work(folder: Path) -> Iterator[None]:
    """Record current work and crash stacks in a folder, while the context is open."""
    global _descriptor  # noqa: PLW0603 (there is one for the process, like the handler of crashes)
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    opened: list[int] = []
    enabled = faulthandler.is_enabled()
    try:
        opened = [os.open(folder / name, flags, 0o600) for name in (WORK, CRASH)]
    except OSError as error:
        logger.warning("active work cannot be recorded: %s", error)
        yield
        return
    _descriptor = opened[0]
    faulthandler.enable(opened[1])
    try:
        yield
    finally:
        faulthandler.disable()
        if enabled:
            faulthandler.enable()
        _descriptor = -1
        for one in opened:
            os.close(one)
        _remove(folder)


def take_crash_record(folder: Path) -> CrashRecord | None:
    """Return how the previous process caused its own death; None if it did not.

    The record is removed.
    """
    try:
        crash = (folder / CRASH).read_text("utf-8", "replace")[:_LONGEST_STACK].strip()
    except OSError:
        crash = ""
    try:
        if not crash and not (folder / LOW_MEMORY).exists():
            return None
        how = f"crashed:\n{crash}" if crash else "had used nearly all memory, and was killed"
        found = _read(folder / WORK)
        logger.error("the process before %s\nit worked for %s", how, _named(found))
        return found
    finally:
        _remove(folder)


def _named(death: CrashRecord | None) -> str:
    if death is None or not death.work:
        return "no message"
    told = (f"session {one}, messages {list(ids) or '(none)'}" for one, ids in death.work)
    return "; ".join(told)


def _read(path: Path) -> CrashRecord | None:
    try:
        record = json.loads(path.read_bytes().partition(b"\n")[0])
        work = tuple((str(one), tuple(map(str, ids))) for one, ids in record["work"])
        return CrashRecord(float(record["at"]), work)
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("%s cannot be read: %s", path.name, error)
        return None


def _remove(folder: Path) -> None:
    for name in (WORK, CRASH, LOW_MEMORY):
        with suppress(OSError):
            (folder / name).unlink(missing_ok=True)


def _write() -> None:
    if _descriptor < 0:
        return
    work = [[one.session, list(one.messages())] for one in _in_work]
    line = json.dumps({"at": time.time(), "work": work}) + "\n"
    # A full disk must not stop the work; without a record there is no evidence.
    with suppress(OSError):
        os.pwrite(_descriptor, line.encode("utf-8", "backslashreplace"), 0)
