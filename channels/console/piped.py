"""The console through pipes: each line is a message, and only answers reach the output."""

from __future__ import annotations

import os
import select
import sys
from collections import deque
from collections.abc import Awaitable, Callable

import anyio
from anyio.lowlevel import checkpoint

from bot.bus import Answer, BusClosed, BusError, ChannelPort, DeliveryReport
from bot.core.reasons import Reason
from channels.console.messages import InboundFactory, answer_text
from channels.console.terminal_text import strip_controls

_DRAIN_SECONDS = 10.0
"""Seconds to wait, after the input has ended, for answers that are still due."""


class PipedConversation:
    """Publish line after line, each once the previous one is answered."""

    def __init__(
        self, author: InboundFactory, port: ChannelPort, *, source: int | None, sink: int | None
    ) -> None:
        self._author = author
        self._port = port
        self._source = source
        self._sink = sink
        self._shown = 0
        self._output_lock = anyio.Lock()
        self._awaited: str | None = None
        self._answered = anyio.Event()

    async def run(self) -> None:
        """Serve until the input ends, the output is closed or the bus closes."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._show_answers, tasks.cancel_scope)
            await self._ask_all()
            # Messages of an earlier run may still be answered.
            with anyio.move_on_after(_DRAIN_SECONDS):
                await self._port.wait_drained()
            # An answer that is being written is completed and reported.
            async with self._output_lock:
                tasks.cancel_scope.cancel()

    async def _ask_all(self) -> None:
        if self._source is None:
            return
        reader = LineReader(self._source)
        while (line := await reader.read_line()) is not None:
            if not line.strip():
                continue
            inbound = self._author.create(line)
            self._awaited, self._answered = inbound.id, anyio.Event()
            try:
                await self._port.publish(inbound)
            except BusClosed:
                return
            except BusError as refused:
                sys.stderr.write(f"{refused}\n")
                continue
            await self._answered.wait()

    async def _show_answers(self, conversation: anyio.CancelScope) -> None:
        """Write all answers, including those to messages of an earlier run."""
        while True:
            outbound = await self._port.receive()
            if not isinstance(outbound, Answer):
                continue
            async with self._output_lock:
                error = await self._show(await answer_text(outbound))
                await self._port.report(
                    DeliveryReport(
                        outbound.session, outbound.id, delivered=error is None, error=error
                    )
                )
            if error is not None:
                conversation.cancel()
            elif outbound.reply_to == self._awaited:
                self._answered.set()

    async def _show(self, text: str) -> str | None:
        """Write an answer; return the error if the output is closed."""
        if self._sink is None:
            return Reason("delivery_output_closed")
        separator = "\n" if self._shown else ""
        shown = f"{separator}{strip_controls(text).rstrip()}\n"
        try:
            await write_all(self._sink, shown.encode())
        except BrokenPipeError:
            return Reason("delivery_output_closed")
        self._shown += 1
        return None


_READ_BYTES = 65_536
_BOM = b"\xef\xbb\xbf"


async def write_all(descriptor: int, data: bytes) -> None:
    """Write all of the data.

    Raises:
        BrokenPipeError: The reading end is closed.
    """
    rest = memoryview(data)
    while rest:
        await _ready(anyio.wait_writable, descriptor)
        # A pipe that is writable accepts this many bytes without blocking, but perhaps not more.
        rest = rest[os.write(descriptor, rest[: select.PIPE_BUF]) :]


class LineReader:
    """Read lines of UTF-8 from a descriptor; the last one may lack its newline."""

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
        # epoll rejects regular files and /dev/null, which are always ready.
        await checkpoint()
