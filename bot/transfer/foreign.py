"""Read files that somebody else made: in a folder, in a zip archive, or one alone.

Rule 1: only whole files with one name are read, no links, pipes or devices; a member's name only chooses.
Rule 2: nothing is unpacked to disk, and at most one object, line or text of a file is in memory.
Rule 3: what cannot be read, is too long or expands suspiciously costs only itself, and is reported.
"""

from __future__ import annotations

import codecs
import io
import json
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any

from bot.core.clock import format_time
from bot.core.foreign_files import why_not_read_at
from bot.core.i18n import _

Report = Callable[[str], None]
"""Takes a problem, one line."""

LONGEST = 32 * 1024 * 1024
"""Bytes of one object, line or text."""

_LONGEST_RATIO = 200
_ALWAYS_READ = 64 * 1024 * 1024
_UNREADABLE = (OSError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A file, or a member of an archive, under its display name."""

    path: Path
    shown: str
    tell: Report  # receives problems
    member: zipfile.ZipInfo | None = None

    @property
    def place(self) -> PurePosixPath:
        """The path in the folder or in the archive."""
        return PurePosixPath(self.member.filename if self.member else self.path.as_posix())

    @property
    def changed(self) -> str:
        """When it was last changed, for messages without a time."""
        try:
            if self.member is not None:
                return format_time(datetime(*self.member.date_time, tzinfo=UTC))
            return format_time(datetime.fromtimestamp(self.path.stat().st_mtime, UTC))
        except (ValueError, OSError):
            return format_time(datetime.fromtimestamp(0, UTC))

    def report(self, problem: str) -> None:
        """Report a problem with the file's name before it."""
        self.tell(f"{self.shown}: {problem}")

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the file; what goes wrong while it is read is reported and ends the block."""
        try:
            if self.member is None:
                with self.path.open("rb") as stream:
                    yield stream
            else:
                limit = max(_ALWAYS_READ, self.member.compress_size * _LONGEST_RATIO)
                with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as stream:
                    yield io.BufferedReader(_Bounded(stream, limit, self.report))
        except _UNREADABLE as error:
            told = error.strerror if isinstance(error, OSError) and error.strerror else error
            self.report(_("cannot be read to its end ({told})", told=told))

    def text(self) -> str:
        """Return the content with normalised line ends."""
        data = b""
        with self.open() as stream:
            data = stream.read(LONGEST + 1)
        if len(data) > LONGEST:
            data = data[:LONGEST]
            self.report(_("is longer than {mib} MiB; the rest is not read", mib=LONGEST >> 20))
        utf_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        text = self._decoded(data, "utf-16" if utf_16 else "utf-8-sig")
        return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").strip()

    def json_lines(self) -> Iterator[tuple[int, Any]]:
        """Yield the number and the value of each readable line of a JSONL file."""
        with self.open() as stream:
            number = 0
            while raw := stream.readline(LONGEST):
                number += 1
                if len(raw) == LONGEST and not raw.endswith(b"\n"):
                    while (more := stream.readline(LONGEST)) and not more.endswith(b"\n"):
                        pass
                    raw = b"{"
                if not raw.strip():
                    continue
                try:
                    text = self._decoded(raw, "utf-8-sig")
                    yield number, json.loads(text, parse_constant=refuse_constant)
                except (ValueError, RecursionError):
                    self.tell(
                        _("{shown}, line {number}: cannot be read", shown=self.shown, number=number)
                    )

    def _decoded(self, data: bytes, encoding: str) -> str:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            self.report(_("parts of it are not text; those characters are lost"))
            return data.decode(encoding, "replace")


class _Bounded(io.RawIOBase):
    """A member of an archive that is read up to a limit."""

    def __init__(self, stream: IO[bytes], limit: int, report: Report) -> None:
        self._stream, self._left, self._report = stream, limit, report

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        data = self._stream.read(min(len(buffer), self._left + 1))
        if len(data) > self._left:
            self._report(_("expands to far more than its size; the rest is not read"))
            data, self._left = data[: self._left], 0
        self._left -= len(data)
        buffer[: len(data)] = data
        return len(data)


def refuse_constant(constant: str) -> None:
    """Refuse what is no JSON: NaN and infinities."""
    raise ValueError(constant)


def find_files(path: Path, patterns: Iterable[str], tell: Report) -> list[ForeignFile]:
    """Return the files at a path that match a pattern, such as ``sessions/*.jsonl``, in their order.

    A path to a file counts whatever its name. An archive, also one that a pattern finds, counts for
    its members that match.
    """
    path, patterns = path.resolve(), tuple(patterns)
    if path.is_file():
        is_archive = zipfile.is_zipfile(path)
        plain = ForeignFile(path, path.name, tell)
        return list(_members(path, patterns, tell)) if is_archive else [plain]
    found: dict[Path, list[ForeignFile]] = {}
    for pattern in patterns:
        for file in sorted(path.glob(pattern)):
            if file in found or file.name.startswith(".") or file.is_dir():
                continue
            shown = str(file.relative_to(path))
            if why_not_read_at(file) is not None:
                tell(_("{shown}: is a link or no file; skipped", shown=shown))
                found[file] = []
            elif file.suffix.lower() == ".zip":
                found[file] = list(_members(file, patterns, tell))
            else:
                found[file] = [ForeignFile(file, shown, tell)]
    return [file for files in found.values() for file in files]


def is_path_below(name: str) -> bool:
    """Return whether a member's name is a path below the folder that it is unpacked to."""
    path = PurePosixPath(name)
    return (
        bool(path.name) and not path.is_absolute() and ".." not in path.parts and "\0" not in name
    )


def _members(path: Path, patterns: Iterable[str], tell: Report) -> Iterator[ForeignFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = sorted(archive.infolist(), key=lambda member: member.filename)
    except _UNREADABLE as error:
        tell(_("{name}: cannot be read ({error})", name=path.name, error=error))
        return
    for member in members:
        place = PurePosixPath(member.filename)
        if place.name.startswith(".") or place.suffix.lower() == ".zip" or member.is_dir():
            continue
        if not any(map(place.match, patterns)):
            continue
        if stat.S_IFMT(member.external_attr >> 16) in (0, stat.S_IFREG) and is_path_below(
            member.filename
        ):
            yield ForeignFile(path, f"{path.name}/{member.filename}", tell, member)
        else:
            tell(_("{shown}: is a link or no file; skipped", shown=member.filename))
