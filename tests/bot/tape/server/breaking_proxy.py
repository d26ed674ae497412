"""A proxy that breaks connections where it is told to: a request arrives, its answer does not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import SocketStream


class BreakingProxy:
    """Stands before a server."""

    def __init__(self, target: str) -> None:
        self._host, _, port = target.removeprefix("http://").partition(":")
        self._port = int(port)
        self.url = ""
        self.break_answers = 0
        self.broken = 0
        self._held: set[SocketStream] = set()

    async def cut(self) -> None:
        for stream in list(self._held):
            await stream.aclose()

    async def serve(self, stream: SocketStream) -> None:
        async with stream, await anyio.connect_tcp(self._host, self._port) as server:
            self._held |= {stream}
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._pump, stream, server, tasks)
                    tasks.start_soon(self._pump, server, stream, tasks)
            finally:
                self._held -= {stream}

    async def _pump(self, source: SocketStream, sink: SocketStream, tasks) -> None:
        try:
            async for part in source:
                if self.break_answers and sink in self._held:
                    self.break_answers -= 1
                    self.broken += 1
                    break
                await sink.send(part)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def breaking(target: str) -> AsyncIterator[BreakingProxy]:
    proxy = BreakingProxy(target)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    [inner] = listener.listeners
    port = inner.extra(anyio.abc.SocketAttribute.local_port)
    proxy.url = f"http://127.0.0.1:{port}"
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, proxy.serve)
        yield proxy
        tasks.cancel_scope.cancel()
