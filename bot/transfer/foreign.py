"""Read files that somebody else made: in a folder, in a zip archive, or one alone.

Rule 1: only whole files with one name are read, no links, pipes or devices; a member's name only chooses.
Rule 2: nothing is unpacked to disk, and at most one object, line or text of a file is in memory.
Rule 3: what cannot be read, is too long or expands suspiciously costs only itself, and is reported.
    Of a file that ends too early, what is complete before its end is read.
"""

from __future__ import annotations

import codecs
import io
import json
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
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

_BLOCK = 1024 * 1024
_HEAD = 64 * 1024
_BOM = b"\xef\xbb\xbf"
_IN_STRING = re.compile(rb'\\.|"', re.DOTALL)
_BETWEEN = re.compile(rb'["{}\[\]]')
_WRAPPED = re.compile(rb'\s*\{\s*"conversations"\s*:\s*\[')
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
        """Open the file; what goes wrong is reported, and ends the block or leaves it nothing to read."""
        began = False
        try:
            with ExitStack() as opened:
                if self.member is None:
                    stream: IO[bytes] = opened.enter_context(self.path.open("rb"))
                else:
                    limit = max(_ALWAYS_READ, self.member.compress_size * _LONGEST_RATIO)
                    archive = opened.enter_context(zipfile.ZipFile(self.path))
                    member = opened.enter_context(archive.open(self.member))
                    stream = io.BufferedReader(_Bounded(member, limit, self.report))
                began = True
                yield stream
        except _UNREADABLE as error:
            told = error.strerror if isinstance(error, OSError) and error.strerror else error
            self.report(_("cannot be read to its end ({told})", told=told))
            if not began:
                yield io.BytesIO()

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
                    yield number, json.loads(text, parse_constant=_refuse_constant)
                except (ValueError, RecursionError):
                    place = {"shown": self.shown, "number": number}
                    self.tell(_("{shown}, line {number}: cannot be read", **place))

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
            data, self._stream = data[: self._left], io.BytesIO()
        self._left -= len(data)
        buffer[: len(data)] = data
        return len(data)


def _refuse_constant(constant: str) -> None:
    raise ValueError(constant)


def find_files(path: Path, patterns: Iterable[str], tell: Report) -> list[ForeignFile]:
    """Return the files at a path that match a pattern, such as ``sessions/*.jsonl``, in their order.

    A path to a file counts whatever its name. An archive, also one that a pattern finds, counts for
    its members that match.
    """
    path, patterns = path.resolve(), tuple(patterns)
    if path.is_file() and not zipfile.is_zipfile(path):
        return [ForeignFile(path, path.name, tell)]
    if path.is_file():
        return list(_members(path, patterns, tell))
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
        not path.is_absolute()
        and {"..", ""}.isdisjoint((*path.parts, path.name))
        and "\0" not in name
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
        is_other = place.name.startswith(".") or place.suffix.lower() == ".zip" or member.is_dir()
        if is_other or not any(map(place.match, patterns)):
            continue
        if stat.S_IFMT(member.external_attr >> 16) in (0, stat.S_IFREG) and is_path_below(
            member.filename
        ):
            yield ForeignFile(path, f"{path.name}/{member.filename}", tell, member)
        else:
            tell(_("{shown}: is a link or no file; skipped", shown=member.filename))


def read_objects(
    file: ForeignFile, *, longest: int = LONGEST, block: int = _BLOCK, head: int = _HEAD
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number, from 1, and the value of each object in an array.

    The text is an array of objects, an object whose first key ``conversations`` holds such an array,
    or one object alone.
    """
    with file.open() as stream:
        data = b""
        while len(data) < head and (more := stream.read(head)):
            data += more
        data = data.removeprefix(_BOM)
        first = data.lstrip()[:1]
        if first not in (b"[", b"{"):
            file.report(_("is no JSON array"))
            return
        splitter = _Splitter(2 if _WRAPPED.match(data) else 0 if first == b"{" else 1, longest)
        number, mib = 0, longest >> 20
        while data:
            for raw in splitter.split(data):
                number += 1
                if raw is None:
                    told = _(
                        "object {number}: is longer than {size} MiB; skipped",
                        number=number,
                        size=mib,
                    )
                    file.report(told)
                    continue
                try:
                    yield number, json.loads(raw, parse_constant=_refuse_constant)
                except (ValueError, RecursionError):
                    file.report(_("object {number}: cannot be read; skipped", number=number))
            data = stream.read(block)
        if splitter.depth > 0:
            file.report(_("ends too early, after {number} complete objects", number=number))


class _Splitter:
    """Cuts blocks into the bytes of objects, by the brackets outside of strings.

    Attributes:
        depth: How many brackets are open.
    """

    def __init__(self, base: int, longest: int) -> None:
        self.depth = 0
        self._base, self._longest = base, longest
        self._in_string = self._escaped = self._inside = False
        self._parts: list[bytes] = []
        self._held = 0

    def split(self, data: bytes) -> Iterator[bytes | None]:
        """Yield the objects that end in a block; None for one that is too long."""
        begin, at, self._escaped = 0, int(self._escaped), False
        while found := (_IN_STRING if self._in_string else _BETWEEN).search(data, at):
            at, mark = found.end(), found[0]
            if mark == b'"':
                self._in_string = not self._in_string
            elif mark in (b"{", b"["):
                if self.depth == self._base and mark == b"{":
                    begin, self._inside = found.start(), True
                self.depth += 1
            elif mark in (b"}", b"]"):
                self.depth -= 1
                if self.depth == self._base and self._inside:
                    self._hold(data[begin:at])
                    yield b"".join(self._parts) if self._held <= self._longest else None
                    self._parts, self._held, self._inside = [], 0, False
        # The character that a backslash at the end escapes is in the next block.
        self._escaped = self._in_string and at < len(data) and data.endswith(b"\\")
        if self._inside:
            self._hold(data[begin:])

    def _hold(self, part: bytes) -> None:
        self._held += len(part)
        if self._held <= self._longest:
            self._parts.append(part)
        else:
            self._parts = []
