"""Read the objects of a huge JSON array one after the other, in constant memory.

Rule 1: at most one object is in memory; one that is longer than the limit is skipped and reported.
Rule 2: an object that is no valid JSON costs only itself.
Rule 3: of a file that ends too early, the complete objects before its end are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from bot.core.i18n import _

LONGEST_OBJECT = 32 * 1024 * 1024
"""Bytes of one object, such as a conversation."""

_BLOCK = 1024 * 1024
_HEAD = 64 * 1024
_BOM = b"\xef\xbb\xbf"
_TOKENS = re.compile(rb'["\\{}\[\]]')
_WRAPPED = re.compile(rb'\s*\{\s*"conversations"\s*:\s*\[')
_QUOTE, _ESCAPE, _OBJECT = b'"\\{'
_OPENING = frozenset(b"{[")


class ByteStream(Protocol):
    """What is read: an open file, or a member of an archive."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most so many; nothing at the end."""
        ...


def read_objects(
    stream: ByteStream,
    report: Callable[[str], None],
    *,
    longest: int = LONGEST_OBJECT,
    block: int = _BLOCK,
    head: int = _HEAD,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number, from 1, and the value of each object in an array.

    The text is an array of objects, an object whose first key ``conversations`` holds such an array,
    or one object alone.
    """
    splitter = _Splitter(longest)
    number = 0
    for raw in splitter.split(stream, block, head):
        number += 1
        if raw is None:
            report(
                _(
                    "object {number}: is longer than {size} MiB; skipped",
                    number=number,
                    size=longest // 1024 // 1024,
                )
            )
            continue
        try:
            yield number, json.loads(raw, parse_constant=_refuse)
        except (ValueError, RecursionError):
            report(_("object {number}: cannot be read; skipped", number=number))
    if splitter.is_cut:
        report(_("ends too early, after {number} complete objects", number=number))
    elif not splitter.is_json:
        report(_("is no JSON array"))


class _Splitter:
    """Cuts a stream into the bytes of its objects, by its brackets outside of strings.

    Attributes:
        is_json: Whether the text began as JSON does.
        is_cut: Whether it ended inside an object or the array.
    """

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._depth = 0
        self._base = 1
        self._in_string = False
        self._parts: list[bytes] = []
        self._held = 0
        self._next_start = 0
        self.is_json = False
        self.is_cut = False

    def split(self, stream: ByteStream, size: int, most: int) -> Iterator[bytes | None]:
        """Yield the bytes of each object; None for one that is too long."""
        head = b""
        while len(head) < most and (more := stream.read(most)):
            head += more
        data = head.removeprefix(_BOM)
        self.is_json = data.lstrip()[:1] in (b"[", b"{")
        if not self.is_json:
            return
        wrapped = _WRAPPED.match(data)
        alone = data.lstrip()[:1] == b"{"
        self._base = 2 if wrapped is not None else 0 if alone else 1
        escaped = 0
        while data:
            yield from self._split_block(data, escaped)
            escaped = self._next_start
            data = stream.read(size)
        self.is_cut = self._depth > 0

    def _split_block(self, data: bytes, start: int) -> Iterator[bytes | None]:
        """Yield the objects that end in a block; ``start`` skips a character that was escaped."""
        begin = 0 if self._held else -1
        for place in self._brackets(data, start):
            if data[place] in _OPENING:
                if self._depth == self._base and data[place] == _OBJECT:
                    begin = place
                self._depth += 1
                continue
            self._depth -= 1
            if self._depth == self._base and begin >= 0:
                yield self._ended(data[begin : place + 1])
                begin = -1
        if begin >= 0:
            self._hold(data[begin:])

    def _brackets(self, data: bytes, start: int) -> Iterator[int]:
        """Yield the places of the brackets outside of strings."""
        skip_to = start
        for token in _TOKENS.finditer(data):
            place = token.start()
            if place < skip_to:
                continue
            if self._in_string:
                if data[place] == _ESCAPE:
                    skip_to = place + 2
                self._in_string = data[place] != _QUOTE
            elif data[place] == _QUOTE:
                self._in_string = True
            elif data[place] != _ESCAPE:
                yield place
        self._next_start = max(0, skip_to - len(data))

    def _hold(self, part: bytes) -> None:
        self._held += len(part)
        if self._held <= self._longest:
            self._parts.append(part)
        else:
            self._parts = []

    def _ended(self, part: bytes) -> bytes | None:
        self._hold(part)
        whole = b"".join(self._parts) if self._held <= self._longest else None
        self._parts, self._held = [], 0
        return whole


def _refuse(constant: str) -> None:
    raise ValueError(constant)
