"""What a session worker does with a message, given what runs. Pure.

Rule 1: at most one job runs at a time: a turn or ``/new``.
Rule 2: messages are handled in order of arrival: behind a deferred message all others are deferred.
Rule 3: ``/stop`` and reminders are never deferred, and only the first ``/stop`` cancels the running job.
Rule 4: no message is dropped: each gets one action, now or when the running job has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Generic, TypeVar

ItemT = TypeVar("ItemT")


class Job(Enum):
    """What a worker is busy with."""

    TURN = auto()
    NEW_SESSION = auto()


class MessageKind(Enum):
    """What a message asks for."""

    MESSAGE = auto()
    """An answer."""
    SILENT = auto()
    """Nothing: it was overheard in a group."""
    EDIT = auto()
    """Another message is to be replaced."""
    COMMAND = auto()
    """A command that may run beside a turn."""
    TURN_COMMAND = auto()
    """A command that must wait for the turn."""
    RETRY = auto()
    APPROVE = auto()
    """A tool call that waits may act."""
    NEW_SESSION = auto()
    OCCURRENCE = auto()
    """A scheduled task is due."""
    REMINDER = auto()
    """A reminder is due, which needs no model."""
    STOP = auto()


class Action(Enum):
    """What the worker does with a message."""

    START_TURN = auto()
    JOIN_TURN = auto()
    """Record it; the running turn takes it in at its next step."""
    RECORD = auto()
    """Record it; it gets no answer."""
    EDIT = auto()
    RUN_COMMAND = auto()
    RETRY = auto()
    APPROVE = auto()
    NEW_SESSION = auto()
    FIRE = auto()
    """Do what the schedule says."""
    CANCEL_JOB = auto()
    REPLY_IDLE = auto()
    """Say that nothing is running."""
    REPLY_STOPPING = auto()
    """Say that the job is being stopped already."""
    DEFER = auto()
    """Handle it when the running job has ended."""


_TRANSITIONS: Mapping[MessageKind, Mapping[Job | None, Action]] = {
    MessageKind.MESSAGE: {None: Action.START_TURN, Job.TURN: Action.JOIN_TURN},
    MessageKind.SILENT: {None: Action.RECORD, Job.TURN: Action.RECORD},
    MessageKind.EDIT: {None: Action.EDIT, Job.TURN: Action.EDIT},
    MessageKind.COMMAND: dict.fromkeys((None, *Job), Action.RUN_COMMAND),
    MessageKind.TURN_COMMAND: {None: Action.RUN_COMMAND},
    MessageKind.RETRY: {None: Action.RETRY},
    MessageKind.APPROVE: {None: Action.APPROVE},
    MessageKind.NEW_SESSION: {None: Action.NEW_SESSION},
    MessageKind.OCCURRENCE: {None: Action.FIRE},
    MessageKind.REMINDER: dict.fromkeys((None, *Job), Action.FIRE),
}
"""The action for a message while a job runs, or none; what is not listed is deferred."""


class WorkerState(Generic[ItemT]):
    """State of one worker.

    Attributes:
        job: What runs; None if the worker is idle.
        stop: The ``/stop`` that the running job was cancelled for, until it is answered.
        deferred: Messages that wait for the job to end, oldest first.
    """

    def __init__(self) -> None:
        self.job: Job | None = None
        self.stop: ItemT | None = None
        self.deferred: list[ItemT] = []

    def action(self, kind: MessageKind) -> Action:
        """Return what to do with a message that no other waits before."""
        return _TRANSITIONS[kind].get(self.job, Action.DEFER)

    def receive(self, item: ItemT, kind: MessageKind) -> Action:
        """Return what to do with a new message; keep it if it is deferred."""
        if kind is MessageKind.STOP:
            return self._receive_stop(item)
        waits = self.deferred and kind is not MessageKind.REMINDER
        action = Action.DEFER if waits else self.action(kind)
        if action is Action.DEFER:
            self.deferred.append(item)
        return action

    def next_deferred(self, kind_of: Callable[[ItemT], MessageKind]) -> tuple[ItemT, Action] | None:
        """Take the oldest deferred message, with its action; None if there is none or it must wait."""
        if not self.deferred:
            return None
        action = self.action(kind_of(self.deferred[0]))
        return None if action is Action.DEFER else (self.deferred.pop(0), action)

    def start(self, job: Job) -> None:
        """Start a job.

        Raises:
            AssertionError: One is running.
        """
        if self.job is not None:
            raise AssertionError(f"{self.job} is running")
        self.job = job

    def end(self) -> None:
        """End the running job."""
        self.job = None

    def take_stop(self) -> ItemT | None:
        """Return the ``/stop`` to answer, once."""
        stop, self.stop = self.stop, None
        return stop

    def _receive_stop(self, item: ItemT) -> Action:
        if self.job is None:
            return Action.REPLY_IDLE
        if self.stop is not None:
            return Action.REPLY_STOPPING
        self.stop = item
        return Action.CANCEL_JOB
