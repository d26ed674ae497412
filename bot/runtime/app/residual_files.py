"""Erase people's words from files other than tapes: bus, blobs, history, exports, logs.

Rule 1: a file that cannot be searched counts as a match.
Rule 2: a failure in one place does not keep the others from being cleaned.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import anyio.to_thread

from bot.bus import WEB_CHANNEL, Bus
from bot.bus.media.blobs import Blobs
from bot.core.errors import TapeWriteError
from bot.core.files import list_files, list_files_below, sync_directory
from bot.core.i18n import _
from bot.memory.erasure.text_matcher import TextMatcher
from bot.runtime.app.text_search import file_holds
from bot.transfer.home_snapshot import CHECK_FOLDER
from channels.console.history import erase_history_entries

logger = logging.getLogger(__name__)

_MORE_OF_A_RECORD = b"    "
_SET_ASIDE = "*.damaged"


class ResidualFiles:
    """Erases words from all places below the home folder other than tapes and their index."""

    def __init__(self, home: Path, bus: Bus, blobs: Blobs) -> None:
        self._home = home
        self._bus = bus
        self._blobs = blobs

    async def erase(self, words: TextMatcher, blobs: Collection[str]) -> int:
        """Remove words and files for good; a repeated call retries what failed.

        A match removes the whole unit: a typed line, an exported file, a log record. Acknowledged messages and updates set
        aside as damaged are removed whatever they contain; pending messages are removed once they
        are answered.

        Returns:
            How many files, typed lines and records were removed; the bus's messages are not
            counted.

        Raises:
            BusClosed: The program is stopping; nothing was done.
            BusError: The storage refused to rewrite the bus's journal; nothing else was done.
            TapeWriteError: The storage refused in one place; the others are clean.
        """
        await self._bus.purge()
        home = self._home
        refusals: list[OSError] = []
        gone = 0
        for name in blobs:
            sent = partial(_remove, home / "exports", f"{name}-*", lambda _: True)
            try:
                await anyio.to_thread.run_sync(sent)
                gone += await self._blobs.remove(name)
            except OSError as error:
                refusals.append(error)
        web = home / "channels" / WEB_CHANNEL

        def holds(text: str) -> bool:
            return words.holds([text])

        places = (
            partial(erase_history_entries, home / "console" / "history", holds),
            partial(_remove, home / "exports", "*", partial(file_holds, words=words)),
            partial(_remove, home / "channels", _SET_ASIDE, lambda _: True),
            partial(_remove, web, "*", partial(file_holds, words=words)),
            partial(_remove, home / CHECK_FOLDER, "*", lambda _: True),
            partial(_mask_logs, home / "logs", holds),
        )
        for clean in places if not words.is_empty else ():
            try:
                gone += await anyio.to_thread.run_sync(clean)
            except OSError as error:
                refusals.append(error)
        if refusals:
            raise _refused(refusals) from refusals[0]
        return gone


def _refused(refusals: Collection[OSError]) -> TapeWriteError:
    told = "; ".join(f"{error.filename or 'a file'} ({error.strerror})" for error in refusals)
    return TapeWriteError(
        _("erased, except where the storage failed: {told}. Fix that, then erase again", told=told)
    )


def _remove(folder: Path, pattern: str, has_to_go: Callable[[Path], bool]) -> int:
    """Remove matching files below a folder, which need not exist; return how many."""
    gone = 0
    for path in sorted(list_files_below(folder, pattern)):
        if path.is_symlink() or not path.is_file() or not has_to_go(path):
            continue
        path.unlink(missing_ok=True)
        sync_directory(path.parent)
        gone += 1
    return gone


def _mask_logs(folder: Path, holds: Callable[[str], bool]) -> int:
    """Overwrite matching records of log files with asterisks; return how many.

    Records keep their length and place: another thread may be appending to the newest file.
    """
    masked = 0
    with ExitStack() as opened:
        # Open all first: a rotation may rename them.
        files = [
            opened.enter_context(path.open("r+b", buffering=0))
            for path in sorted(list_files(folder, "*.log*"))
        ]
        for file in files:
            before = masked
            for offset, record in _records(file.readall()):
                if holds(record.decode("utf-8", "replace")):
                    os.pwrite(file.fileno(), _masked(record), offset)
                    masked += 1
            if masked > before:
                os.fsync(file.fileno())
    return masked


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield each log record, a line and the indented lines below it, with its byte offset."""
    start = end = 0
    for line in data.splitlines(keepends=True):
        if end > start and not line.startswith(_MORE_OF_A_RECORD):
            yield start, data[start:end]
            start = end
        end += len(line)
    if end > start:
        yield start, data[start:end]


def _masked(record: bytes) -> bytes:
    return b"\n".join(b"*" * len(line) for line in record.split(b"\n"))
