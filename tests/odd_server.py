"""A web server on loopback that sends exactly the bytes that a test wants, whatever they are."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ssl import SSLContext

import anyio
from anyio.abc import SocketAttribute, SocketStream

Send = Callable[[bytes], Awaitable[None]]
Answer = bytes | Callable[[Send], Awaitable[None]]


@dataclass
class OddServer:
    """The server."""

    port: int
    answers: dict[str, Answer] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def url(self, path: str = "/", host: str = "page.example") -> str:
        return f"http://{host}:{self.port}{path}"

    @property
    def local(self) -> tuple[str, int]:
        return ("127.0.0.1", self.port)

    async def serve(self, stream: SocketStream) -> None:
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await stream.receive()
            self.requests.append(head.decode())
            answer = self.answers[head.split()[1].decode()]
            try:
                if isinstance(answer, bytes):
                    await stream.send(answer)
                else:
                    await answer(stream.send)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # the client hung up, as it should


@asynccontextmanager
async def odd_server(tls: SSLContext | None = None) -> AsyncIterator[OddServer]:
    from anyio.streams.tls import TLSListener

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    server = OddServer(listener.extra(SocketAttribute.local_port))
    shown = TLSListener(listener, tls, standard_compatible=False) if tls else listener
    async with shown, anyio.create_task_group() as tasks:
        tasks.start_soon(shown.serve, server.serve)
        yield server
        tasks.cancel_scope.cancel()


def reply(
    body: bytes | str = b"", kind: str = "text/html", *, status: str = "200 OK", **headers: str
) -> bytes:
    """Return a whole HTTP response; underscores in names of headers are dashes."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


def redirect(to: str, status: str = "302 Found") -> bytes:
    return reply(status=status, Location=to)


def packed(data: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return packer.compress(data) + packer.flush()


async def known_as_local(_: str) -> list[str]:
    return ["127.0.0.1"]
