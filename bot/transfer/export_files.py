"""Find and open the files of a downloaded export: in a zip archive, in a folder, or one alone.

Rule 1: nothing is unpacked to disk; a member is read as a stream.
Rule 2: names in an archive only choose what is read; they are never a path.
Rule 3: links and what is no file are not read (``core.foreign_files``).
Rule 4: a member that expands suspiciously is read up to a limit, and reported.
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO

from bot.core.clock import format_time
from bot.core.foreign_files import why_not_read_at
from bot.core.i18n import _

Wanted = Callable[[str, str], bool]
"""Choose a file by the lower-case names of its folder and of itself."""

_LONGEST_RATIO = 200
_ALWAYS_READ = 64 * 1024 * 1024
_UNREADABLE = (
    OSError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A file of an export.

    Attributes:
        path: The file, or the archive that holds it.
        member: The member of the archive; None for a plain file.
        shown: Display name.
    """

    path: Path
    member: zipfile.ZipInfo | None
    shown: str

    @property
    def name(self) -> str:
        """The file's own name."""
        return PurePosixPath(self.member.filename).name if self.member else self.path.name

    @property
    def folder(self) -> str:
        """Name of the folder that it is in; empty if unknown."""
        return (
            PurePosixPath(self.member.filename).parent.name
            if self.member
            else self.path.parent.name
        )

    @property
    def changed(self) -> str:
        """When it was last changed, for messages without a time."""
        try:
            if self.member is not None:
                return format_time(datetime(*self.member.date_time, tzinfo=UTC))
            return format_time(datetime.fromtimestamp(self.path.stat().st_mtime, UTC))
        except (ValueError, OSError):
            return format_time(datetime.fromtimestamp(0, UTC))

    @contextmanager
    def open(self, report: Callable[[str], None]) -> Iterator[IO[bytes] | BoundedStream]:
        """Open the file; what goes wrong while it is read is reported and ends the block."""
        try:
            if self.member is None:
                with self.path.open("rb") as stream:
                    yield stream
            else:
                with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as stream:
                    yield BoundedStream(stream, _limit(self.member), report)
        except _UNREADABLE as error:
            told = error.strerror if isinstance(error, OSError) and error.strerror else error
            report(_("cannot be read to its end ({told})", told=told))


class BoundedStream:
    """A member of an archive that is read up to a limit."""

    def __init__(self, stream: IO[bytes], limit: int, report: Callable[[str], None]) -> None:
        self._stream = stream
        self._left = limit
        self._report = report

    def read(self, size: int, /) -> bytes:
        """Return the next bytes; nothing at the end or the limit."""
        data = self._stream.read(min(size, self._left + 1))
        if len(data) > self._left:
            self._report(_("expands to far more than its size; the rest is not read"))
            data, self._left = data[: self._left], 0
        self._left -= len(data)
        return data


def find_files(path: Path, wanted: Wanted, report: Callable[[str], None]) -> list[ExportFile]:
    """Return the files with a wanted name at a path, in the order of their names."""
    path = path.resolve()
    if path.is_file() and not zipfile.is_zipfile(path):
        return [ExportFile(path, None, path.name)]
    if path.is_file():
        return sorted(_members(path, wanted, report), key=lambda one: one.shown)
    found: list[ExportFile] = []
    for file in sorted([*path.glob("*"), *path.glob("*/*")]):
        if file.is_dir() or file.name.startswith("."):
            continue
        if why_not_read_at(file) is not None:
            report(_("{shown}: is a link or no file; skipped", shown=file.relative_to(path)))
        elif wanted(file.parent.name.lower(), file.name.lower()):
            found.append(ExportFile(file, None, str(file.relative_to(path))))
        elif file.suffix.lower() == ".zip" and zipfile.is_zipfile(file):
            found += _members(file, wanted, report)
    return found


def _members(path: Path, wanted: Wanted, report: Callable[[str], None]) -> Iterator[ExportFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except _UNREADABLE as error:
        report(_("{name}: cannot be read ({error})", name=path.name, error=error))
        return
    for member in members:
        place = PurePosixPath(member.filename)
        hidden = place.name.startswith(".") or "__MACOSX" in place.parts
        if hidden or not wanted(place.parent.name.lower(), place.name.lower()):
            continue
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG) or place.is_absolute() or ".." in place.parts:
            report(_("{shown}: is a link or no file; skipped", shown=member.filename))
        else:
            yield ExportFile(path, member, f"{path.name}/{member.filename}")


def _limit(member: zipfile.ZipInfo) -> int:
    return max(_ALWAYS_READ, member.compress_size * _LONGEST_RATIO)
