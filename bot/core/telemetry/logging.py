"""Logging to a file in the home folder, with warnings on stderr and secrets removed.

A thread writes the records, so that a slow disk never blocks the event loop. Every finished line
passes through ``Redactor``, so that a secret is removed whether it came from the message, an
argument, a traceback or a library.
"""

from __future__ import annotations

import atexit
import logging
import logging.handlers
import os
import queue
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path

from bot.core.telemetry.redaction import Redactor

_FILE_BYTES = 5_000_000
_OLD_FILES = 2  # beside the current one
_WAITING = 10_000  # records; a burst beyond it is dropped and counted
_OWN = ("bot", "channels")
_BRING_OWN_HANDLERS = ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router")
# Control characters, which could steer a terminal; newlines are indented instead.
_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "\ufffd")
_CONTROLS[ord("\t")] = "\t"
_CONTROLS[ord("\n")] = "\n    "


class _LineFormatter(logging.Formatter):
    """Formats a line, removes secrets, and keeps text from imitating another record."""

    def __init__(self, fmt: str, redact: Redactor) -> None:
        super().__init__(fmt, datefmt="%Y-%m-%dT%H:%M:%S")
        self.converter = time.gmtime
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(super().format(record)).translate(_CONTROLS)


class _RedactingFilter(logging.Filter):
    """Removes secrets from a record itself, for loggers with handlers of their own."""

    def __init__(self, redact: Redactor) -> None:
        super().__init__()
        self._redact = redact

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = self._redact(record.getMessage())
        record.args = None
        if record.exc_info:
            # Formatters use this text instead of the exception.
            record.exc_text = self._redact(logging.Formatter().formatException(record.exc_info))
        return True


class _LogFile(logging.handlers.RotatingFileHandler):
    """A log file readable by its owner only; a failed write is reported once, on stderr."""

    _told = False

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.fchmod(descriptor, 0o600)
        return open(descriptor, "a", encoding="utf-8", errors="backslashreplace")  # noqa: PTH123 (a descriptor has no path)

    def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: N802 (as below)
        # Python 3.13.0 asks for the position in a pipe, which has none, and so logs nothing to it.
        return Path(self.baseFilename).is_file() and bool(super().shouldRollover(record))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 (logging's own)
        if not self._told:
            self._told = True
            _complain(f"The log file {self.baseFilename} cannot be written: {sys.exc_info()[1]}")


class _Stderr(logging.Handler):
    """Writes a line to the current ``sys.stderr``, which a prompt may have replaced."""

    def emit(self, record: logging.LogRecord) -> None:
        first, _, rest = self.format(record).partition("\n")
        _complain(f"{first} (more in the log file)" if rest else first)


class _Pipe(logging.handlers.QueueHandler):
    """Hands records to the writing thread without waiting for it."""

    _dropped = 0

    def enqueue(self, record: logging.LogRecord) -> None:
        lost, self._dropped = self._dropped, 0
        if lost:
            record.msg = f"{record.msg} ({lost} log lines before this one are lost)"
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            self._dropped = lost + 1


class _Writer(logging.handlers.QueueListener):
    """The writing thread."""

    def __init__(
        self, waiting: queue.Queue[logging.LogRecord | None], *handlers: logging.Handler
    ) -> None:
        super().__init__(waiting, *handlers, respect_handler_level=True)
        self._waiting = waiting

    def enqueue_sentinel(self) -> None:
        # The inherited method does not wait, and fails if the queue is full.
        self._waiting.put(None)


def configure_logging(
    home: Path, level: str, secrets: Iterable[str] = (), *, to_stderr: bool = True
) -> Callable[[], None]:
    """Log to ``home/logs/tapebot.log``, and warnings also to stderr.

    The file is rotated at 5 MB and two old ones are kept. Libraries log from warnings on. A file
    that cannot be written is reported once on stderr.

    Args:
        home: The home folder; created for its owner alone if missing.
        level: The lowest level of tapebot's own records, e.g. ``info``.
        secrets: Values that must never be written.
        to_stderr: Whether warnings also go to stderr; not while a person types at a terminal.

    Returns:
        A function that flushes and closes the log and restores the loggers; it also runs at exit,
        and repeated calls do nothing.
    """
    redact = Redactor(secrets)
    file, short = _handlers(home, redact)
    handlers = (file, short) if to_stderr else (file,)
    waiting: queue.Queue[logging.LogRecord | None] = queue.Queue(_WAITING)
    pipe = _Pipe(waiting)
    writer = _Writer(waiting, *handlers)
    undo = [_install(pipe, level), _guard(_RedactingFilter(redact))]
    writer.start()

    def stop() -> None:
        if not undo:
            return
        atexit.unregister(stop)
        for step in undo:
            step()
        undo.clear()
        writer.stop()
        for handler in (pipe, *handlers):
            with suppress(OSError):  # a full disk was reported at the failed write
                handler.close()

    atexit.register(stop)
    return stop


def _handlers(home: Path, redact: Redactor) -> tuple[logging.Handler, logging.Handler]:
    with suppress(OSError):  # the first write fails with the same error and reports it
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = _LogFile(
        home / "logs" / "tapebot.log", maxBytes=_FILE_BYTES, backupCount=_OLD_FILES, delay=True
    )
    line = "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s"
    file.setFormatter(_LineFormatter(line, redact))
    short = _Stderr(logging.WARNING)
    short.setFormatter(_LineFormatter("%(levelname)s: %(message)s", redact))
    return file, short


def _install(pipe: logging.Handler, level: str) -> Callable[[], None]:
    """Attach the handler and set the levels; return a function that undoes both."""
    levels = {logging.getLogger(): logging.WARNING}
    levels |= {
        logging.getLogger(name): logging.getLevelNamesMapping()[level.upper()] for name in _OWN
    }
    # Callers that retry log it themselves, with the reason.
    levels[logging.getLogger("stamina")] = logging.ERROR
    # It logs several lines a second while a database is gone; callers log that themselves.
    levels[logging.getLogger("psycopg.pool")] = logging.ERROR
    before = {logger: logger.level for logger in levels}
    for logger, threshold in levels.items():
        logger.setLevel(threshold)
    logging.getLogger().addHandler(pipe)
    logging.captureWarnings(capture=True)

    def undo() -> None:
        logging.captureWarnings(capture=False)
        logging.getLogger().removeHandler(pipe)
        for logger, threshold in before.items():
            logger.setLevel(threshold)

    return undo


def _guard(redacting: logging.Filter) -> Callable[[], None]:
    """Add the filter to loggers with handlers of their own; return a function that undoes it."""
    loggers = [logging.getLogger(name) for name in _BRING_OWN_HANDLERS]
    for logger in loggers:
        logger.addFilter(redacting)

    def undo() -> None:
        for logger in loggers:
            logger.removeFilter(redacting)

    return undo


def _complain(line: str) -> None:
    with suppress(OSError, ValueError, AttributeError):  # stderr may be closed or missing
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
