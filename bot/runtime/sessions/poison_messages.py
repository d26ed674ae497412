"""Detect poison messages from recorded hangs, crashes and worker errors.

Rule 1: evidence is a hang that the watchdog recorded and that ended the process, a death by a crash
    in C or by using up memory, and an error of the session's worker that no disk, database or
    provider raised. Stops, kills from outside and power losses are none.
Rule 2: evidence names the messages that were being handled, and no others of the session.
Rule 3: a message with evidence is a suspect: it is tried alone, after the others.
Rule 4: a message that hung the process twice, or crashed it or failed three times, is not retried
    unasked.
Rule 5: of several messages handled at a crash, those that were already suspects are blamed, else
    all; they are tried one after the other.
Rule 6: evidence is dropped after an hour, and when the message is answered.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from bot.core.files import PRIVATE_FILE
from bot.core.telemetry.active_work import take_crash_record
from bot.core.telemetry.watchdog import RECORD

logger = logging.getLogger(__name__)

FailureKind = Literal["hang", "death", "error"]

FILE = "suspects.json"
"""File in the home folder with the last hour's evidence; it outlives restarts."""

_KEPT = 3_600.0
_MOST: dict[FailureKind, int] = {"hang": 2, "death": 3, "error": 3}
_FIRST_PAUSE = 20.0  # channels load libraries and connect before other sessions get messages
_LONGEST_PAUSE = 600.0


@dataclass(frozen=True, slots=True)
class MessageFailure:
    """A failure that counts as evidence.

    Attributes:
        session: The session that was handled.
        messages: Platform ids of the messages; empty if work on the session itself failed.
        at: The time, in seconds since 1970.
        why: The kind of failure.
    """

    session: str
    messages: tuple[str, ...]
    at: float
    why: FailureKind


class PoisonMessages:
    """The evidence of the last hour.

    Args:
        folder: The home folder; None keeps the evidence in memory.
        now: Returns the time in seconds since 1970.
    """

    def __init__(self, folder: Path | None = None, now: Callable[[], float] = time.time) -> None:
        self._file = None if folder is None else folder / FILE
        self._now = now
        self._evidence = [] if self._file is None else _read(self._file)
        if folder is not None:
            self._take_hang(folder / RECORD)
            self._take_death(folder)

    def add(self, session: str, messages: Iterable[str], why: FailureKind) -> None:
        """Record a failure."""
        self._evidence.append(MessageFailure(session, tuple(messages), self._now(), why))
        self._write()

    def is_suspect(self, session: str, message: str) -> bool:
        """Return whether there is evidence against a message."""
        return self.count_failures(session, message) > 0

    def count_failures(self, session: str, message: str) -> int:
        """Return how many failures are evidence against a message."""
        return sum(message in message_failure.messages for message_failure in self._of(session))

    def is_given_up(self, session: str, message: str) -> bool:
        """Return whether a message is not retried unasked."""
        against = [
            message_failure.why
            for message_failure in self._of(session)
            if message in message_failure.messages
        ]
        return any(against.count(why) >= most for why, most in _MOST.items())

    def pause(self, session: str) -> float:
        """Return the seconds that a session waits, so that other sessions go first.

        The pause grows with failures before any message was known, such as while reading the tape.
        """
        waiting = sorted(
            {
                message_failure.session
                for message_failure in self._recent()
                if message_failure.why != "error"
            }
        )
        if session not in waiting:
            return 0.0
        ended = [
            message_failure
            for message_failure in self._of(session)
            if message_failure.why != "error"
        ]
        unnamed = sum(not message_failure.messages for message_failure in ended)
        return min(_FIRST_PAUSE * (1 + waiting.index(session)) * 4.0**unnamed, _LONGEST_PAUSE)

    def clear(self, session: str, messages: Iterable[str]) -> None:
        """Drop the evidence against messages that have been answered."""
        done = set(messages)
        if not any(done & set(message_failure.messages) for message_failure in self._of(session)):
            return
        message_failures: list[MessageFailure] = []
        for failure in self._evidence:
            left = tuple(message for message in failure.messages if message not in done)
            if failure.session != session or not failure.messages:
                message_failures.append(failure)
            elif left:
                message_failures.append(replace(failure, messages=left))
        self._evidence = message_failures
        self._write()

    def _of(self, session: str) -> list[MessageFailure]:
        return [
            message_failure
            for message_failure in self._recent()
            if message_failure.session == session
        ]

    def _recent(self) -> list[MessageFailure]:
        since = self._now() - _KEPT
        return [
            message_failure for message_failure in self._evidence if message_failure.at >= since
        ]

    def _take_hang(self, record: Path) -> None:
        """Record the hang that ended the previous process."""
        message_failure = _hang(record)
        if message_failure is not None:
            logger.warning(
                "the previous process hung and was ended while it worked for session %s, messages "
                "%s",
                message_failure.session,
                list(message_failure.messages) or "(none)",
            )
            self._evidence.append(message_failure)
            self._write()
        with suppress(OSError):
            record.unlink(missing_ok=True)

    def _take_death(self, folder: Path) -> None:
        """Record the crash that ended the previous process."""
        death = take_crash_record(folder)
        if death is None or not death.work:
            return
        messages: dict[str, set[str]] = {}
        for session, ids in death.work:
            messages.setdefault(session, set()).update(ids)
        known = {
            session: found
            for session, ids in messages.items()
            if (found := {message for message in ids if self.is_suspect(session, message)})
        }
        for session, blamed in (known or messages).items():
            self._evidence.append(MessageFailure(session, tuple(sorted(blamed)), death.at, "death"))
        self._write()

    def _write(self) -> None:
        if self._file is None:
            return
        self._evidence = self._recent()
        try:
            new = self._file.with_suffix(".new")
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
            with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 (a descriptor has no path)
                json.dump([asdict(message_failure) for message_failure in self._evidence], file)
            new.replace(self._file)
        except OSError as error:
            logger.warning("message failures could not be recorded: %s", error)


def _read(file: Path) -> list[MessageFailure]:
    """Return the evidence in a file; a damaged file counts as empty."""
    try:
        records = json.loads(file.read_text("utf-8"))
        return [_evidence(record, record["why"]) for record in records]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("%s cannot be read: %s", file.name, error)
        return []


def _hang(record: Path) -> MessageFailure | None:
    try:
        return _evidence(json.loads(record.read_text("utf-8")), "hang")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("%s cannot be read: %s", record.name, error)
        return None


def _evidence(record: dict[str, object], why: FailureKind) -> MessageFailure:
    messages, at = record["messages"], record["at"]
    if not isinstance(messages, list) or not isinstance(at, (int, float)) or why not in _MOST:
        raise ValueError("it is not a failure record")
    return MessageFailure(str(record["session"]), tuple(map(str, messages)), float(at), why)
