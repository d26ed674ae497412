"""Something that gives one answer to whatever is asked, as no tape server does."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio


@asynccontextmanager
async def answering(answer: bytes, *, heard: list[bytes] | None = None, trickle: bytes = b""):
    """Give the address of something that gives this answer to every request, at best to its end."""

    async def serve(stream):
        async with stream:
            got = await stream.receive()
            if heard is not None:
                heard.append(got)
            await stream.send(answer)
            while trickle:
                await anyio.sleep(0.02)
                try:
                    await stream.send(trickle)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    break

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        port = listener.listeners[0].extra(anyio.abc.SocketAttribute.local_port)
        yield f"http://127.0.0.1:{port}"
        tasks.cancel_scope.cancel()
