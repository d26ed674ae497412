"""A TCP proxy on loopback that can cut, freeze and restore connections.

Rule 1: cut, it resets connections and refuses new ones.
Rule 2: frozen, it passes nothing and reports nothing; new connections wait.
Rule 3: data held while frozen arrives late and in order when it is healed: a statement may reach a
    database long after its sender gave up. If it is cut first, the data is lost.
"""

from __future__ import annotations

import socket
import struct
from contextlib import AsyncExitStack
from typing import Self

import anyio
from anyio.abc import SocketAttribute, SocketStream, TaskGroup, TaskStatus

_RESET = struct.pack("ii", 1, 0)
_FAULTS = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


class WireCutter:
    """A TCP proxy; an async context manager that listens while entered."""

    def __init__(self, port: int) -> None:
        self.port = 0
        self._server = port
        self._stack = AsyncExitStack()
        self._tasks: TaskGroup
        self._listening: anyio.CancelScope | None = None
        self._free = anyio.Event()
        self._free.set()
        self._closed = anyio.Event()

    async def __aenter__(self) -> Self:
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        await self._tasks.start(self._listen)
        return self

    async def __aexit__(self, *_raised: object) -> None:
        self._tasks.cancel_scope.cancel()
        await self._stack.aclose()

    async def cut(self) -> None:
        """Reset all connections, and refuse new ones until it is healed."""
        if self._listening is not None:
            self._listening.cancel()
            await self._closed.wait()
        self._free.set()

    def freeze(self) -> None:
        """Pass nothing until it is healed or cut; connections stay open."""
        if self._free.is_set():
            self._free = anyio.Event()

    async def heal(self) -> None:
        """Restore the traffic, starting with the held data."""
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
        """Forward one connection until it ends."""
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
            except anyio.EndOfStream:
                await self._free.wait()
                await sink.send_eof()
            except _FAULTS:
                # The other side notices once the proxy is healed.
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
    """Make closing the connection send a reset instead of an ordinary end."""
    raw = stream.extra(SocketAttribute.raw_socket)  # noqa: S610 (anyio's, not Django's)
    if raw.fileno() >= 0:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
