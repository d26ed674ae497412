"""The console through pipes: each line is a message, only answers reach the output."""

from __future__ import annotations

import sys

import anyio

from bot.bus import Answer, BusClosed, BusError, ChannelPort, DeliveryReport
from channels.console.author import Author
from channels.console.descriptors import LineReader, write_all
from channels.console.files import with_files
from channels.console.text import printable

_LINGER = 10.0
"""Seconds that answers of an earlier run have once the input has ended."""


class PipedConversation:
    """Publishes line after line, each once the one before is answered.

    Args:
        author: Writes the inbounds.
        port: The channel's ends of the bus.
        source: Descriptor of the input; None is an empty one.
        sink: Descriptor of the output; None is one that nobody reads.
    """

    def __init__(
        self, author: Author, port: ChannelPort, *, source: int | None, sink: int | None
    ) -> None:
        self._author = author
        self._port = port
        self._source = source
        self._sink = sink
        self._shown = 0
        self._showing = anyio.Lock()
        self._awaited: str | None = None
        self._answered = anyio.Event()

    async def run(self) -> None:
        """Serve until the input ends, nobody reads the output or the bus closes."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._show_answers, tasks.cancel_scope)
            await self._ask_all()
            # What a run before this one was asked is answered now.
            with anyio.move_on_after(_LINGER):
                await self._port.drained()
            # An answer that is being shown is shown whole and reported.
            async with self._showing:
                tasks.cancel_scope.cancel()

    async def _ask_all(self) -> None:
        if self._source is None:
            return
        reader = LineReader(self._source)
        while (line := await reader.read_line()) is not None:
            if not line.strip():
                continue
            inbound = self._author.write(line)
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
        """Show whatever is answered, to a line of this run or of one that was killed."""
        while True:
            outbound = await self._port.receive()
            if not isinstance(outbound, Answer):
                continue
            async with self._showing:
                error = await self._show(await with_files(outbound))
                await self._port.report(
                    DeliveryReport(
                        outbound.address.session, outbound.id, delivered=error is None, error=error
                    )
                )
            if error is not None:
                conversation.cancel()
            elif outbound.reply_to == self._awaited:
                self._answered.set()

    async def _show(self, text: str) -> str | None:
        """Write an answer; return why not, if nobody reads any more."""
        if self._sink is None:
            return "standard output is closed"
        separator = "\n" if self._shown else ""
        shown = f"{separator}{printable(text).rstrip()}\n"
        try:
            await write_all(self._sink, shown.encode())
        except BrokenPipeError:
            return "nobody reads standard output any more"
        self._shown += 1
        return None
