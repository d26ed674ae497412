"""Reading and writing descriptors of any kind without holding up the event loop.

They stay in blocking mode, since a terminal's mode is shared with the shell.
"""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Awaitable, Callable

import anyio
from anyio.lowlevel import checkpoint

_READ_BYTES = 65_536
_BOM = b"\xef\xbb\xbf"


async def write_all(descriptor: int, data: bytes) -> None:
    """Write all of the data.

    Raises:
        BrokenPipeError: Nobody reads any more.
    """
    rest = memoryview(data)
    while rest:
        await _ready(anyio.wait_writable, descriptor)
        # A pipe that is ready takes this much without blocking, and may not take more.
        rest = rest[os.write(descriptor, rest[: select.PIPE_BUF]) :]


class LineReader:
    """Lines of UTF-8 from a descriptor; the last one may lack its newline.

    Args:
        descriptor: A pipe, file, terminal or device; it is not closed here.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: deque[bytes] = deque()
        self._parts: list[bytes] = []
        self._first = True
        self._ended = False

    async def read_line(self) -> str | None:
        """Return the next line without its line ending, or None at the end of the input.

        A byte order mark at the start is dropped; bytes that are not UTF-8 are replaced.
        """
        while not self._lines:
            if self._ended:
                return None
            await _ready(anyio.wait_readable, self._descriptor)
            self._feed(os.read(self._descriptor, _READ_BYTES))
        line = self._lines.popleft()
        if self._first:
            line = line.removeprefix(_BOM)
            self._first = False
        return line.removesuffix(b"\r").decode("utf-8", "replace")

    def _feed(self, chunk: bytes) -> None:
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            self._lines.append(b"".join([*self._parts, line]))
            self._parts.clear()
        if rest:
            self._parts.append(rest)
        if not chunk:
            self._ended = True
            if self._parts:
                self._lines.append(b"".join(self._parts))


async def _ready(wait: Callable[[int], Awaitable[None]], descriptor: int) -> None:
    try:
        await wait(descriptor)
    except PermissionError:
        # epoll takes no regular file and no /dev/null: they are always ready.
        await checkpoint()
