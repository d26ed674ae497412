"""Something that gives one answer to whatever is asked, as no tape server does."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress

import anyio


@asynccontextmanager
async def answering(answer: bytes, *, heard: list[bytes] | None = None, endless: bytes = b""):
    """Give the address of something that gives this answer to every request, and goes on so without an end."""

    async def serve(stream):
        async with stream:
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                got = await stream.receive()
                if heard is not None:
                    heard.append(got)
                await stream.send(answer)
                while endless:
                    await stream.send(endless)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        port = listener.listeners[0].extra(anyio.abc.SocketAttribute.local_port)
        yield f"http://127.0.0.1:{port}"
        tasks.cancel_scope.cancel()
