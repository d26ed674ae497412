"""What is due next in the whole workspace: a small tape, so that a start opens no conversation.

The tape is written ahead: it gets a schedule's new instant before the conversation's tape gets the
entry that makes it so. A kill in between leaves an instant at which nothing is due, which the
session's worker notices and corrects. Nothing is lost, because the command, turn or occurrence that
makes the change stays unacknowledged and is handled again.

Rule 1: of several instants of a schedule, the one written at the highest version of its
    conversation's tape counts, so that a process that was stopped for long overwrites nothing newer.
Rule 2: writers append without reading; only the scheduler folds the tape.
"""

from __future__ import annotations

import heapq
from datetime import UTC, datetime

from bot.core.clock import format_time, parse_time
from bot.core.errors import TapeNotFound
from bot.memory.session.scope.workspace_tape import WorkspaceTape
from bot.tape.entries import TapeEntry, event
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

DUE_TAPE = "workspace:schedules"
DUE_EVENT = "schedule.due"
"""Name of its events: ``{session, schedule, next, at}``; ``next`` is None if nothing is due any more,
``at`` the version of the conversation's tape."""

_OCCURRENCE = "schedule:"
_DIGITS = 15
_SLACK = 1_000
"""Outdated items that the queue may hold beyond twice the number of schedules."""

DueKey = tuple[str, str]
"""A session's key and a schedule's id."""


class DueFold:
    """The next instant of every schedule that has one."""

    def __init__(self) -> None:
        self._next: dict[DueKey, tuple[float, int]] = {}
        self._heap: list[tuple[float, DueKey]] = []

    def __len__(self) -> int:
        """Return the number of schedules that wait."""
        return len(self._next)

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry; a malformed one changes nothing."""
        data = entry.data
        session, schedule, at = data.get("session"), data.get("schedule"), data.get("at")
        if entry.name != DUE_EVENT or type(at) is not int:
            return
        if not isinstance(session, str) or not isinstance(schedule, str):
            return
        if " " in session or " " in schedule or "\n" in f"{session}{schedule}":
            return
        key = (session, schedule)
        if at < self._next.get(key, (0.0, 0))[1]:
            return
        moment = parse_time(data.get("next"))
        if moment is None:
            self._next.pop(key, None)
        else:
            self._add(key, moment.timestamp(), at)

    def __getstate__(self) -> dict[DueKey, tuple[float, int]]:
        """Return what is known; the queue lacks what was taken."""
        return self._next

    def __setstate__(self, known: dict[DueKey, tuple[float, int]]) -> None:
        self._next = known
        self._heap = [(seconds, key) for key, (seconds, _) in known.items()]
        heapq.heapify(self._heap)

    def instant(self, key: DueKey) -> datetime | None:
        """Return the next instant of a schedule; None if it has none."""
        found = self._next.get(key)
        return None if found is None else datetime.fromtimestamp(found[0], UTC)

    def take_due(self, now: datetime) -> list[tuple[DueKey, datetime]]:
        """Take the schedules that are due from the queue, earliest first; they stay known."""
        due = []
        while self._heap and self._heap[0][0] <= now.timestamp():
            seconds, key = heapq.heappop(self._heap)
            if self._is_current(seconds, key):
                due.append((key, datetime.fromtimestamp(seconds, UTC)))
        return due

    def put_back(self, key: DueKey, instant: datetime) -> None:
        """Put a schedule that was taken back into the queue."""
        if self._is_current(instant.timestamp(), key):
            heapq.heappush(self._heap, (instant.timestamp(), key))

    def earliest(self) -> datetime | None:
        """Return the earliest instant in the queue; None if it is empty."""
        while self._heap:
            seconds, key = self._heap[0]
            if self._is_current(seconds, key):
                return datetime.fromtimestamp(seconds, UTC)
            heapq.heappop(self._heap)
        return None

    def _is_current(self, seconds: float, key: DueKey) -> bool:
        found = self._next.get(key)
        return found is not None and found[0] == seconds

    def _add(self, key: DueKey, seconds: float, at: int) -> None:
        known = self._next.get(key)
        self._next[key] = (seconds, at)
        if known is None or known[0] != seconds:
            heapq.heappush(self._heap, (seconds, key))
            if len(self._heap) > 2 * len(self._next) + _SLACK:
                self._heap = [(when, one) for one, (when, _) in self._next.items()]
                heapq.heapify(self._heap)


def occurrence_id(schedule: str, instant: datetime) -> str:
    """Return the id of an occurrence's message on the bus: the same however often it is published."""
    return f"{_OCCURRENCE}{schedule}:{int(instant.timestamp() * 1000)}"


def is_occurrence_id(inbound: str) -> bool:
    """Say whether the id of a message is an occurrence's, not a platform's."""
    return inbound.startswith(_OCCURRENCE)


def parse_occurrence_id(inbound: str) -> tuple[str, datetime] | None:
    """Return an occurrence's schedule and instant; None if the id is malformed."""
    schedule, _, millis = inbound.removeprefix(_OCCURRENCE).rpartition(":")
    if not schedule or not millis.isdecimal() or len(millis) > _DIGITS:
        return None
    return schedule, datetime.fromtimestamp(int(millis) / 1000, UTC)


def open_due_tape(store: TapeStore) -> WorkspaceTape[DueFold]:
    """Return the tape of what is due, for the scheduler that folds it."""
    return WorkspaceTape(store, DUE_TAPE, DueFold())


async def write_due(
    store: TapeStore, session: str, schedule: str, instant: datetime | None, *, at: int
) -> None:
    """Write when a schedule is due next.

    Raises:
        TapeWriteError: The storage failed; nothing was written.
    """
    moment = None if instant is None else format_time(instant)
    data = {"session": session, "schedule": schedule, "next": moment, "at": at}
    tape = TapeService(store, DUE_TAPE)
    try:
        await tape.append(event(DUE_EVENT, data))
    except TapeNotFound:
        await tape.ensure_bootstrap_anchor()
        await tape.append(event(DUE_EVENT, data))
