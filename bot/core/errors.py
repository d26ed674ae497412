"""The error tree. Every error that tapebot raises on purpose is one of these.

TapebotError
├── SettingsError            a setting is wrong; the text names it and what is allowed
├── TapeError
│   ├── TapeLocked           another process has the tapes open
│   ├── TapeNotFound         no such tape, or an entry or anchor that it does not hold
│   ├── VersionConflict      the tape moved on since the caller looked
│   ├── TapeExists           a tape of this name is there already
│   ├── InvalidEntry         an entry that cannot be written as JSON
│   ├── InvalidSearch        a search that cannot be answered as it is asked
│   ├── SegmentDamaged       a sealed segment does not hold what was sealed
│   ├── TapeRefused          a tape server does not allow it: token, scope, size
│   ├── TapeUnavailable      a tape server cannot be reached, or fails
│   └── TapeWriteError       the storage refused; nothing of the batch is known to be on the tape
├── DatabaseError
│   ├── DatabaseUnavailable  it cannot be reached, or does not let us in
│   └── DatabaseOutdated     its tables are of another version of tapebot
├── BusError
│   ├── InvalidInbound       a message that names no usable session
│   ├── SessionFull          too many messages wait in this session
│   ├── SessionLost          another holder has the session by now
│   ├── SessionBusy          the session's holder has something to do
│   └── BusClosed            the bus is shutting down
├── ChannelRefused           a platform does not let the bot in: token, intents
├── FileUnavailable          a file that somebody sent cannot be fetched
├── ModelError
│   ├── TransientModelError  worth another try (rate limit, timeout, broken connection, 5xx)
│   ├── ContextOverflow      the prompt is longer than the model's window
│   ├── ModelAuthError       the key is missing or refused
│   ├── ModelRejected        the provider will not take this request
│   └── ModelUnavailable     the model cannot be used here (package or file missing)
├── MemoryRefused            a memory write that a guard turned down
└── ConsolidationFailed      the model gave nothing that may be kept

Refusal                      a request over HTTP is refused

Foreign errors are mapped to these at the border, with ``raise ... from exc``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class TapebotError(Exception):
    """Base of all; its text is fit to be shown to a person."""


class SettingsError(TapebotError):
    """A setting is wrong."""


class TapeError(TapebotError):
    """Something about a tape."""


class TapeLocked(TapeError):
    """Another process has the tapes open."""


class TapeNotFound(TapeError):
    """The tape, entry or anchor does not exist."""


class InvalidEntry(TapeError):
    """The entry's payload or meta cannot be written as JSON without loss."""


class TapeExists(TapeError):
    """A tape of this name is there already."""


class InvalidSearch(TapeError):
    """The search cannot be answered as it is asked; the text says what it takes."""


class SegmentDamaged(TapeError):
    """A sealed segment does not hold what was sealed; the text names it."""


class TapeRefused(TapeError):
    """A tape server does not allow it; the text says what would."""


class TapeUnavailable(TapeError):
    """A tape server cannot be reached, or fails; nothing is known to have been written."""


class TapeWriteError(TapeError):
    """The storage refused the write: nothing of the batch is on the tape, unless the text says otherwise."""


class VersionConflict(TapeError):
    """The tape's version is not the one expected."""

    def __init__(self, tape: str, *, expected: int, actual: int) -> None:
        super().__init__(f"tape {tape} is at version {actual}, not {expected}")
        self.tape = tape
        self.expected = expected
        self.actual = actual


class DatabaseError(TapebotError):
    """Something about the database that processes share."""


class DatabaseUnavailable(DatabaseError):
    """It cannot be reached, or does not let us in; whether a write was done may be open."""


class DatabaseOutdated(DatabaseError):
    """Its tables are of another version of tapebot; the text says what to do."""


class BusError(TapebotError):
    """Something about the message bus."""


class InvalidInbound(BusError):
    """The message names no usable session."""


class SessionFull(BusError):
    """Too many messages of this session wait; the text says how many are allowed."""


class SessionLost(BusError):
    """The session is not this holder's any more: its lease ran out, and another may have it."""


class SessionBusy(BusError):
    """The session's holder has something to do; the text says so."""


class BusClosed(BusError):
    """The bus no longer takes messages."""


class ChannelRefused(TapebotError):
    """A platform does not let the bot in; the text says what to change."""


class FileUnavailable(TapebotError):
    """A file that somebody sent cannot be fetched; the text says why."""


class ModelError(TapebotError):
    """A model call failed for good."""


class TransientModelError(ModelError):
    """The call may succeed later.

    Attributes:
        retry_after: Seconds that the provider asked to wait, if it did.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ContextOverflow(ModelError):
    """The prompt is longer than the model's window."""


class ModelAuthError(ModelError):
    """The key is missing or refused."""


class ModelRejected(ModelError):
    """The provider will not take this request, whatever the number of tries."""


class ModelUnavailable(ModelError):
    """The model cannot be used here: a package or a file is missing."""


class MemoryRefused(TapebotError):
    """A guard turned a memory write down; the text says which and why."""


class ConsolidationFailed(TapebotError):
    """The model's consolidation cannot be used; the text says why.

    Attributes:
        usage: What the call consumed all the same, as it stands on tapes.
    """

    def __init__(self, message: str, *, usage: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.usage = usage


class HttpError(Exception):
    """A request over HTTP that is refused.

    Attributes:
        status: Of the response.
        code: Tells programs what it is.
        detail: Tells people what to do.
        headers: Of the response.
    """

    def __init__(
        self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers
