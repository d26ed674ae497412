"""A wire between a client and a server on loopback that can be cut, frozen and healed.

Rule 1: a cut wire breaks what it carries with a reset, and refuses who comes.
Rule 2: a frozen wire is silent: nothing comes through, nobody is told, and who comes waits.
Rule 3: what a frozen wire held comes through late when it is healed, in order: a statement may reach a
    database long after its sender gave it up. Where it is cut first, that is lost.
"""

from __future__ import annotations

import socket
import struct
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import SocketAttribute, SocketStream, TaskGroup, TaskStatus

_RESET = struct.pack("ii", 1, 0)
_FAULTS = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


class WireCutter:
    """A TCP proxy; an async context manager, within which it listens and is whole at first.

    Args:
        port: The server's, on loopback.

    Attributes:
        port: Where clients connect instead; it stays the same through cuts.
        carried: Bytes that came through, in both directions.
        connections: How many were made.
    """

    def __init__(self, port: int) -> None:
        self.port = 0
        self.carried = 0
        self.connections = 0
        self._server = port
        self._stack = AsyncExitStack()
        self._tasks: TaskGroup
        self._listening: anyio.CancelScope | None = None
        self._free = anyio.Event()
        self._free.set()
        self._closed = anyio.Event()

    @property
    def whole(self) -> bool:
        """Whether it is neither cut nor frozen."""
        return self._listening is not None and self._free.is_set()

    async def __aenter__(self) -> Self:
        """Listen."""
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        await self._tasks.start(self._listen)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Cut it for good."""
        self._tasks.cancel_scope.cancel()
        await self._stack.aclose()

    async def cut(self) -> None:
        """Break every connection, and refuse new ones until it is healed."""
        if self._listening is not None:
            self._listening.cancel()
            await self._closed.wait()
        self._free.set()

    def freeze(self) -> None:
        """Let nothing through until it is healed or cut; nobody is told."""
        if self._free.is_set():
            self._free = anyio.Event()

    async def heal(self) -> None:
        """Let everything through; first what was held."""
        self._free.set()
        if self._listening is None:
            await self._tasks.start(self._listen)

    async def _listen(self, *, task_status: TaskStatus[None]) -> None:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=self.port)
        self.port = listener.extra(SocketAttribute.local_port)  # noqa: S610 (anyio's, not Django's)
        self._closed = anyio.Event()
        try:
            with anyio.CancelScope() as self._listening:
                async with listener:
                    task_status.started()
                    await listener.serve(self._carry)
        finally:
            self._listening = None
            self._closed.set()

    async def _carry(self, client: SocketStream) -> None:
        """Carry one connection to its end."""
        self.connections += 1
        async with client:
            try:
                await self._free.wait()
                async with await anyio.connect_tcp("127.0.0.1", self._server) as server:
                    await self._between(client, server)
            except _FAULTS:
                _reset(client)
            except anyio.get_cancelled_exc_class():
                _reset(client)
                raise

    async def _between(self, client: SocketStream, server: SocketStream) -> None:
        async def pump(source: SocketStream, sink: SocketStream) -> None:
            try:
                while True:
                    data = await source.receive()
                    await self._free.wait()
                    await sink.send(data)
                    self.carried += len(data)
            except anyio.EndOfStream:
                await self._free.wait()
                await sink.send_eof()
            except _FAULTS:
                # The other side learns of it once the wire is whole.
                await self._free.wait()
                _reset(client)
                _reset(server)
                tasks.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(pump, client, server)
                tasks.start_soon(pump, server, client)
        except anyio.get_cancelled_exc_class():
            _reset(server)
            raise


def _reset(stream: SocketStream) -> None:
    """Let the end of a connection be told as a fault, not as an ordinary end."""
    raw = stream.extra(SocketAttribute.raw_socket)  # noqa: S610 (anyio's, not Django's)
    if raw.fileno() >= 0:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
