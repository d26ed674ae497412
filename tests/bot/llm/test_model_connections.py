"""Calls of a model share a connection: another one would cost a handshake with each answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketStream
from model_rig import NAME, ask, make_model

from bot.llm.http import connection

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ANSWER = (
    b'data: {"choices": [{"delta": {"content": "Hello."}, "finish_reason": "stop"}]}\n\n'
    b"data: [DONE]\n\n"
)
END = b"0\r\n\r\n"


class Server:
    """A model server on a real socket that ends its streams as a test says.

    Args:
        end: Ends a stream.

    Attributes:
        connections: How many were opened.
    """

    def __init__(self, end: Callable[[SocketStream], Awaitable[None]]) -> None:
        self.connections = 0
        self._end = end

    async def serve(self, stream: SocketStream) -> None:
        """Answer each request of a connection."""
        self.connections += 1
        async with stream:
            while await _request(stream):
                await stream.send(HEAD + b"%x\r\n%s\r\n" % (len(ANSWER), ANSWER))
                await self._end(stream)


async def _request(stream: SocketStream) -> bool:
    """Read a request; return whether there was one."""
    read = b""
    while b"\r\n\r\n" not in read:
        try:
            read += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
    head, _, body = read.partition(b"\r\n\r\n")
    [size] = [
        int(line.partition(b":")[2])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    ]
    while len(body) < size:
        body += await stream.receive()
    return True


@asynccontextmanager
async def served(server: Server) -> AsyncIterator[str]:
    """Run a server; yield its address."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, server.serve)
        yield f"http://127.0.0.1:{port}/v1"
        tasks.cancel_scope.cancel()


async def _answers(server: Server, calls: int) -> list[str]:
    async with served(server) as address:
        model = make_model("http", NAME, address)
        answers = [(await ask(model, streamed=True))[0].content for _ in range(calls)]
        await model.aclose()
    return answers


async def test_a_stream_whose_end_comes_behind_its_last_event_keeps_its_connection(monkeypatch):
    monkeypatch.setattr(connection, "_REST_SECONDS", 60.0)

    async def end(stream: SocketStream) -> None:
        await anyio.sleep(0.05)
        await stream.send(END)

    server = Server(end)
    assert await _answers(server, 3) == ["Hello."] * 3
    assert server.connections == 1


@pytest.mark.parametrize("hangs_up", [False, True])
async def test_an_answer_is_complete_without_the_end_of_its_stream(hangs_up):
    """Some servers never send it."""

    async def end(stream: SocketStream) -> None:
        if hangs_up:
            await stream.aclose()

    assert await _answers(Server(end), 2) == ["Hello."] * 2
