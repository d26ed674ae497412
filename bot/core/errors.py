"""The exception hierarchy of tapebot.

TapebotError
├── SettingsError            a setting is wrong; the text names it and the allowed values
├── TapeError
│   ├── TapeLocked           another process has the tapes open
│   ├── TapeNotFound         the tape, entry or anchor does not exist
│   ├── VersionConflict      the tape has changed since the caller read it
│   ├── TapeExists           a tape of this name already exists
│   ├── InvalidEntry         the entry cannot be written as JSON
│   ├── InvalidSearch        the search is malformed
│   ├── TapeRefused          a tape server refuses the request: token, scope, size
│   ├── TapeUnavailable      a tape server cannot be reached, or fails
│   └── TapeWriteError       the storage refused; none of the batch is known to be on the tape
├── DatabaseError
│   ├── DatabaseUnavailable  the database cannot be reached, or refuses the login
│   └── DatabaseOutdated     the schema is of another version of tapebot
├── BusError
│   ├── InvalidInbound       the message names no usable session, or no usable time
│   ├── SessionFull          too many messages wait in this session
│   │   └── MessageTooLong   the message has more characters than a turn can use
│   ├── SessionLost          another holder has the session
│   ├── SessionBusy          the session's holder is not idle
│   └── BusClosed            the bus is shutting down
├── ChannelRefused           a platform refuses the bot: token, intents
├── PluginUnavailable        a plug-in cannot be loaded or used; the text names its package
├── FileUnavailable          an attachment cannot be fetched
├── InvalidRecurrence        a rule of times is malformed, or never matches
├── FileRefused              a file cannot be kept, found or changed like that
├── FetchFailed              a web page or a search's results cannot be had
├── CodeNotRun               the sandbox for code cannot be built or used
├── ModelError
│   ├── TransientModelError  may succeed later (rate limit, timeout, broken connection, 5xx)
│   ├── ContextOverflow      the prompt is longer than the model's window
│   ├── ModelAuthError       the key is missing or refused
│   ├── ModelRejected        the provider refuses this request
│   ├── BudgetReached        a limit on spending is reached
│   └── ModelUnavailable     the model cannot be used here (package or file missing)
├── McpUnavailable           an MCP server is not there, too slow, or answers with nonsense
│   └── OutcomeUnknown       it may have carried out the call
├── SkillRefused             a skill, or its address, is not as it must be; the text says why
├── MemoryRefused            a guard refused a memory write
├── ScheduleRefused          a schedule cannot be set or changed like that
├── BackupFailed             a backup cannot be made, opened or restored
└── ConsolidationFailed      the model's consolidation cannot be used

HttpError                    an HTTP request is refused; no TapebotError

Errors of libraries are mapped to these at the border, with ``raise ... from exc``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.core.reasons import reason_of


class TapebotError(Exception):
    """Base of tapebot's errors; the text is readable for people.

    Where an error of a ``Reason`` is formatted into a message, it appears in the current language.
    """

    def __format__(self, spec: str) -> str:
        """Return the text; that of a reason in the current language."""
        return format(reason_of(self), spec)


class SettingsError(TapebotError):
    """A setting is wrong."""


class TapeError(TapebotError):
    """A tape operation failed."""


class TapeLocked(TapeError):
    """Another process has the tapes open."""


class TapeNotFound(TapeError):
    """The tape, entry or anchor does not exist."""


class InvalidEntry(TapeError):
    """The entry's payload or meta cannot be written as JSON without loss."""


class TapeExists(TapeError):
    """A tape of this name already exists."""


class InvalidSearch(TapeError):
    """The search is malformed; the text says what is allowed."""


class TapeRefused(TapeError):
    """A tape server refuses the request; the text says what it requires."""


class TapeUnavailable(TapeError):
    """A tape server cannot be reached, or fails; it is unknown whether a write was done."""


class TapeWriteError(TapeError):
    """The storage refused the write: none of the batch is on the tape, unless the text says so."""


class VersionConflict(TapeError):
    """The tape's version is not the one expected."""

    def __init__(self, tape: str, *, expected: int, actual: int) -> None:
        super().__init__(f"tape {tape} is at version {actual}, not {expected}")
        self.tape = tape
        self.expected = expected
        self.actual = actual


class DatabaseError(TapebotError):
    """An operation on the shared database failed."""


class DatabaseUnavailable(DatabaseError):
    """The database cannot be reached, or refuses the login; a write may have been done."""


class DatabaseOutdated(DatabaseError):
    """The database's schema is of another version of tapebot; the text says what to do."""


class BusError(TapebotError):
    """An operation of the message bus failed."""


class InvalidInbound(BusError):
    """The message names no usable session, or its time has no zone."""


class SessionFull(BusError):
    """Too many messages of this session wait; the text says how many are allowed."""


class MessageTooLong(SessionFull):
    """A message has more characters than a turn can use."""


class SessionLost(BusError):
    """This holder has lost the session: its lease ended, and another may hold it."""


class SessionBusy(BusError):
    """The session's holder is not idle; the text says so."""


class BusClosed(BusError):
    """The bus accepts no more messages."""


class ChannelRefused(TapebotError):
    """A platform refuses the bot; the text says what to change."""


class PluginUnavailable(TapebotError):
    """A plug-in cannot be loaded or used; the text names its package and says what to do."""


class FileUnavailable(TapebotError):
    """An attachment cannot be fetched; the text says why."""


class InvalidRecurrence(TapebotError):
    """A rule of times is malformed, or never matches; the text says why."""


class FetchFailed(TapebotError):
    """A web page or a search's results cannot be had; the text says why."""


class CodeNotRun(TapebotError):
    """The sandbox for code cannot be built or used; the text says why."""


class ModelError(TapebotError):
    """A model call failed for good.

    Attributes:
        is_long: Whether a shorter request is worth a try.
        of_content: Whether something in the request may be what the server refuses, or fails at.
    """

    is_long = False
    of_content = False


class TransientModelError(ModelError):
    """The call may succeed later.

    Attributes:
        retry_after: Seconds that the provider asked to wait, if it did.
    """

    def __init__(
        self, message: str, *, retry_after: float | None = None, of_content: bool = False
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.of_content = of_content


class ContextOverflow(ModelError):
    """The prompt is longer than the model's window."""

    is_long = True

    def __init__(self, message: str, *, of_content: bool = False) -> None:
        super().__init__(message)
        self.of_content = of_content


class ModelAuthError(ModelError):
    """The key is missing or refused."""


class ModelRejected(ModelError):
    """The provider refuses this request; a retry does not help."""

    def __init__(self, message: str, *, of_content: bool = True) -> None:
        super().__init__(message)
        self.of_content = of_content


class ModelUnavailable(ModelError):
    """The model cannot be used here: a package or a file is missing."""


class BudgetReached(ModelError):
    """A limit on spending is reached, so no model was called; the text says which.

    Attributes:
        retry_after: Seconds after which the limit counts anew.
    """

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ScheduleRefused(TapebotError):
    """A schedule cannot be set or changed like that; the text says why."""


class FileRefused(TapebotError):
    """A file cannot be kept, found or changed like that; the text says why."""


class McpUnavailable(TapebotError):
    """An MCP server is not there now, too slow, or answers with nonsense; the text says which."""


class OutcomeUnknown(McpUnavailable):
    """A call was begun, and no usable answer came: it is not known whether it was carried out."""


class SkillRefused(TapebotError):
    """A skill, or the address of one, is not as it must be; the text says why."""


class MemoryRefused(TapebotError):
    """A guard refused a memory write; the text says which and why."""


class BackupFailed(TapebotError):
    """A backup cannot be made, opened or restored; the text says why and what to do."""


class ConsolidationFailed(TapebotError):
    """The model's consolidation cannot be used; the text says why.

    Attributes:
        usage: Token usage of the call, in the form of tape entries.
    """

    def __init__(self, message: str, *, usage: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.usage = usage


class HttpError(Exception):
    """An HTTP request is refused.

    Attributes:
        status: The response's status code.
        code: The error's code, for programs.
        detail: What to do, for people.
        headers: The response's extra headers.
        fields: Further fields of the response's body.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers
        self.fields = fields
