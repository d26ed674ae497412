"""Read the objects of a huge JSON array one after the other, in constant memory.

Rule 1: at most one object is in memory; one that is longer than the limit is skipped and reported.
Rule 2: an object that is no valid JSON costs only itself.
Rule 3: of a file that ends too early, the complete objects before its end are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from bot.core.i18n import _
from bot.transfer.foreign import LONGEST, ForeignFile, refuse_constant

_BLOCK = 1024 * 1024
_HEAD = 64 * 1024
_BOM = b"\xef\xbb\xbf"
_IN_STRING = re.compile(rb'\\.|"', re.DOTALL)
_BETWEEN = re.compile(rb'["{}\[\]]')
_WRAPPED = re.compile(rb'\s*\{\s*"conversations"\s*:\s*\[')


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
                    yield number, json.loads(raw, parse_constant=refuse_constant)
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
