"""The channel ``tcp``: each connection is a person's chat, and each line a message.

The first line says who it is, ``7 Ada``; nobody checks that, so let it listen on loopback alone.
"""

# ruff: noqa: ARG002 (the messenger has parameters that a line cannot show)

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial

import anyio
from anyio.abc import SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from bot.bus import (
    AccessRequest,
    Address,
    BusError,
    Button,
    ChannelPort,
    ChannelRefused,
    Inbound,
    OutgoingFile,
    Sender,
)
from channels.base import ChannelContext
from channels.delivery.dispatcher import OutboundDispatcher
from channels.delivery.messenger import (
    MessageGone,
    MessengerApi,
    OutgoingMessage,
    Pace,
    PlatformUnreachable,
)
from channels.outgoing_files import file_size, missing_file_text
from channels.text import clean_text, has_visible_text

_MAX_LINE_BYTES = 65_536


class TcpChannel:
    """Private chats over TCP.

    Args:
        context: What the program gives the channel.
        listen: Where it listens, as ``HOST:PORT``.
    """

    def __init__(self, context: ChannelContext, listen: str) -> None:
        self._context = context
        self._listen = listen

    @property
    def name(self) -> str:
        """The first part of the channel's session keys."""
        return "tcp"

    async def run(self, port: ChannelPort) -> None:
        """Serve until cancelled.

        Raises:
            ChannelRefused: It cannot listen on its address.
        """
        messenger = TcpMessenger()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(OutboundDispatcher(port, messenger).run)
            host, _, number = self._listen.rpartition(":")
            try:
                listener = await anyio.create_tcp_listener(local_host=host, local_port=int(number))
            except OSError as error:
                raise ChannelRefused(
                    f"TCP: {self._listen} cannot be used ({error.strerror}); choose another port"
                ) from error
            self._context.announce(f"TCP: listening on {self._listen}")
            self._context.on_connected()
            async with listener:
                await listener.serve(partial(self._serve, port, messenger))

    async def _serve(
        self, port: ChannelPort, messenger: TcpMessenger, connection: SocketStream
    ) -> None:
        """Handle one connection's lines until it is closed."""
        stream = BufferedByteReceiveStream(connection)
        async with connection:
            try:
                number, _, name = (await _read_line(stream)).partition(" ")
                if not number.isdecimal():
                    return
                sender = Sender(number, name or number)
                with messenger.connected(Address(self.name, number), connection):
                    while True:
                        reply = await self._publish(port, sender, await _read_line(stream))
                        if reply is not None:
                            await _write_line(connection, reply)
            except (
                *(anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound),
                *(anyio.BrokenResourceError, PlatformUnreachable),
            ):
                return

    async def _publish(self, port: ChannelPort, sender: Sender, text: str) -> str | None:
        """Publish a message; return what to tell its sender, if anything."""
        address = Address(self.name, sender.id)
        request = AccessRequest(address, sender, private=True, text=text)
        try:
            # First of all: nothing of a stranger is stored or answered.
            decision = await self._context.access.authorize(request)
            if decision.role is None:
                return decision.reply  # the answer to a claim code or a pairing code, most often
            await port.publish(
                Inbound(
                    address=address,
                    # A platform that gives its messages ids lets the bus recognise repeated ones.
                    id=str(time.time_ns()),
                    sender=sender,
                    text=text,
                    sent_at=datetime.now(UTC),
                    role=decision.role,
                )
            )
        except BusError as error:
            # A full session, a full disk, or the end of the program: the text says which.
            return str(error)
        return None


class TcpMessenger(MessengerApi[str]):
    """Sends lines to whoever is connected; what was sent cannot be changed."""

    def __init__(self) -> None:
        self._connections: dict[str, SocketStream] = {}

    @contextmanager
    def connected(self, address: Address, connection: SocketStream) -> Iterator[None]:
        """Send a chat's messages to a connection in this context."""
        self._connections[address.session] = connection
        try:
            yield
        finally:
            if self._connections[address.session] is connection:
                del self._connections[address.session]

    def rate_limit_key(self, address: Address) -> str:
        """Return the chat's own key: chats share no limit."""
        return address.session

    def pace(self, address: Address) -> Pace:
        """Return how often a chat is updated."""
        return Pace(edit=1, typing=60)

    def render(self, text: str) -> Sequence[str]:
        """Return Markdown as it is, in one message of any length."""
        return self.render_plain(text)

    def render_plain(self, text: str) -> Sequence[str]:
        """Return the text as one message."""
        text = clean_text(text)
        return [text] if has_visible_text(text) else []

    async def send(self, message: OutgoingMessage[str]) -> str:
        """Write a message."""
        return await self._write(message.address, message.piece)

    async def send_file(self, message: OutgoingMessage[OutgoingFile]) -> str:
        """Write where the file is."""
        file = message.piece
        missing = await file_size(file) is None
        text = missing_file_text(file) if missing else f"The file is `{file.path}`."
        return await self._write(message.address, text)

    async def _write(self, address: Address, text: str) -> str:
        connection = self._connections.get(address.session)
        if connection is None:
            raise PlatformUnreachable("nobody is connected")  # it is tried again and again
        await _write_line(connection, text)
        return str(time.time_ns())

    async def edit(
        self, address: Address, message_id: str, piece: str, buttons: tuple[Button, ...] = ()
    ) -> None:
        """Refuse: the dispatcher then sends a new message."""
        raise MessageGone("a line cannot be changed")

    async def delete(self, address: Address, message_id: str) -> None:
        """Leave it: a line cannot be deleted."""

    async def typing(self, address: Address) -> None:
        """Show nothing."""

    async def draft(self, address: Address, stream: str, piece: str) -> bool:
        """Show nothing of an answer that is being written, as if it were a draft."""
        return True


async def _read_line(stream: BufferedByteReceiveStream) -> str:
    line = await stream.receive_until(b"\n", _MAX_LINE_BYTES)
    return line.decode(errors="replace").rstrip("\r")


async def _write_line(connection: SocketStream, text: str) -> None:
    """Write a line.

    Raises:
        PlatformUnreachable: The connection is broken.
    """
    try:
        await connection.send(text.encode() + b"\n")
    except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
        raise PlatformUnreachable("the connection is broken") from error
