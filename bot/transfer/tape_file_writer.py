"""Write a tape's files from the entries and metadata of a tape in another place. Blocking.

Each part is written beside its name and renamed when all are complete, the live file last: only
then does the tape exist. A crash leaves complete parts, which are recognised later, or files
``….new``, which are removed when the folder is locked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from filecmp import cmp
from pathlib import Path
from typing import BinaryIO

from bot.core.errors import TapeExists, TapeWriteError
from bot.core.files import PRIVATE_FILE, sync_directory
from bot.tape.codec import TapeLine, encode_line
from bot.tape.store import Segment
from bot.tape.stores.folder import SEALED_FILE, TapeFolder, successor_path
from bot.transfer.storage import TapeMetadata


class TapeFileWriter:
    """Write the files of one tape.

    Args:
        folder: The tapes' folder, locked by the caller.
        tape: The session's key.
        shape: The tape's title, version and segments.

    Raises:
        TapeExists: There are files of this tape that no earlier attempt left.
    """

    def __init__(self, folder: TapeFolder, tape: str, shape: TapeMetadata) -> None:
        self._folder = folder
        self._tape = tape
        self._shape = shape
        self._live = folder.live_path(tape)
        named = [_named(folder, tape, segment) for segment in shape.segments]
        self._parts = [(one, folder.segment_path(one)) for one in named]
        there = folder.segments(tape)
        if (
            self._live.exists()
            or successor_path(self._live).exists()
            or not set(there) <= set(named)
        ):
            raise TapeExists(f"there are other files of tape {tape} in {folder.root}")
        if packed := [one.name for one in there if not folder.segment_path(one).exists()]:
            raise TapeExists(f"there is a segment {packed[0]} of tape {tape} in {folder.root}")
        self._open = ExitStack()
        self._out: BinaryIO | None = None
        self._at = -1
        self._last = 0

    def write(self, lines: Sequence[TapeLine]) -> None:
        """Write entries with their links to their parts.

        Raises:
            OSError: The storage failed.
        """
        for line in lines:
            while self._out is None or line.entry.id > self._end:
                self._turn()
            assert self._out is not None
            self._out.write(encode_line(line))
            self._last = line.entry.id

    def finish(self) -> None:
        """Rename the parts, the live file last.

        Raises:
            TapeExists: A segment's file exists with other content.
            TapeWriteError: No entry of the live part is readable.
            OSError: The storage failed.
        """
        while self._at < len(self._parts):
            self._turn()
        assert self._out is not None
        if not self._out.tell():
            raise TapeWriteError(f"tape {self._tape} has no readable entry after its last segment")
        # Empty lines stand for ids whose entries are unreadable.
        self._out.write(b"\n" * (self._shape.version - self._last))
        self._close()
        for segment, path in self._parts:
            fresh = _fresh(path)
            if not path.exists():
                fresh.chmod(SEALED_FILE)
                fresh.rename(path)
            elif cmp(fresh, path, shallow=False):
                fresh.unlink()
            else:
                raise TapeExists(f"there is another segment {segment.name} in {path.parent}")
        sync_directory(self._folder.root)
        _fresh(self._live).rename(self._live)
        sync_directory(self._folder.root)

    def give_up(self) -> None:
        """Remove unfinished files."""
        self._open.close()
        for path in self._paths():
            _fresh(path).unlink(missing_ok=True)

    @property
    def _end(self) -> int:
        """The last id of the part that is being written."""
        return self._parts[self._at][0].last_id if self._at < len(self._parts) else 1 << 62

    def _turn(self) -> None:
        """Start the next part."""
        self._close()
        self._at += 1
        path = _fresh(list(self._paths())[self._at])
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._out = self._open.enter_context(os.fdopen(os.open(path, flags, PRIVATE_FILE), "wb"))

    def _close(self) -> None:
        if self._out is not None:
            self._out.flush()
            os.fsync(self._out.fileno())
            self._open.close()
            self._out = None

    def _paths(self) -> Iterator[Path]:
        yield from (path for _, path in self._parts)
        yield self._live


def _named(folder: TapeFolder, tape: str, segment: Segment) -> Segment:
    """Return a segment with a valid file name of this tape: its own if that is one."""
    tail = f"{segment.first_id}-{segment.last_id}.jsonl"
    own = re.compile(re.escape(folder.stem(tape)) + r"\.\d{8}T\d{6}Z\." + re.escape(tail))
    if own.fullmatch(segment.name):
        return segment
    return folder.next_segment(
        tape, segment.first_id, segment.last_id, datetime.fromtimestamp(0, UTC)
    )


def _fresh(path: Path) -> Path:
    return path.with_name(path.name + ".new")
