"""What a bot sees of a tape server that is away or slow, and of what is no tape server."""

from __future__ import annotations

import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from strange_server import answering
from tape_server_rig import TAPE

from bot.core.errors import TapeUnavailable
from bot.tape.entries import event
from bot.tape.http_protocol import NDJSON_MEDIA_TYPE
from bot.tape.stores import http_client as asking
from bot.tape.stores.remote import RemoteTapeStore


async def test_a_server_that_is_away_is_told_after_a_while(tmp_path):
    async with answering(b"") as url:
        pass
    store = RemoteTapeStore(url, "x", patience=0.2)
    with pytest.raises(TapeUnavailable, match=url):
        await store.append(TAPE, event("e"))
    with pytest.raises(TapeUnavailable, match="check that it runs"):
        await anext(store.follow(TAPE))
    await store.close()


STRANGE = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
    b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 302 Found\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\n<p/>",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nno",
    b"SSH-2.0\r\n",
]


async def test_what_is_no_tape_server_is_told():
    told = dict.fromkeys(STRANGE, 0)

    async def ask_all(answer):
        async with answering(answer) as url:
            store = RemoteTapeStore(url, "x", patience=0.2)
            for ask in (store.version(TAPE), store.append(TAPE, event("e")), store.list_tapes()):
                with pytest.raises(TapeUnavailable, match=url):
                    await ask
                told[answer] += 1
            await store.close()

    try:
        async with anyio.create_task_group() as tasks:
            for answer in STRANGE:
                tasks.start_soon(ask_all, answer)
    finally:
        assert set(told.values()) == {3}, told


@pytest.mark.parametrize("kind", [b"text/html", b"text/event-stream\r\nContent-Encoding: gzip"])
async def test_what_is_no_stream_of_entries_is_told(kind):
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: 2\r\n\r\nhi" % kind
    async with answering(answer) as url:
        store = RemoteTapeStore(url, "x", patience=0.2)
        with anyio.fail_after(30), pytest.raises(TapeUnavailable, match="not a tape server's"):
            await anext(store.follow(TAPE, 1))
        await store.close()


async def test_a_number_that_is_none_ends_the_reading():
    answer = b"HTTP/1.1 200 OK\r\nTape-Next: %b\r\nContent-Length: 0\r\n\r\n" % (b"9" * 5_000)
    async with answering(answer) as url:
        store = RemoteTapeStore(url, "x", patience=0.2)
        assert await store.read(TAPE) == []
        await store.close()


async def test_a_server_that_asks_for_an_hour_is_not_waited_for_longer_than_the_patience():
    answer = b"HTTP/1.1 503 Busy\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n"
    async with answering(answer) as url:
        store = RemoteTapeStore(url, "x", patience=0.2)
        with anyio.fail_after(30), pytest.raises(TapeUnavailable):
            await store.version(TAPE)
        await store.close()


async def test_a_change_whose_answer_never_ends_is_given_up(monkeypatch):
    """It cannot be cancelled, so it must end by itself."""
    monkeypatch.setattr(asking, "_LONGEST", 0.3)
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
    async with answering(answer, trickle=b"{") as url:
        store = RemoteTapeStore(url, "x", patience=0.2)
        with pytest.raises(TapeUnavailable, match=url):
            await store.append(TAPE, event("e"))
        await store.close()


@pytest.mark.parametrize("kind", [NDJSON_MEDIA_TYPE, "application/json"])
@pytest.mark.parametrize("more", [b"", b"Content-Encoding: gzip\r\n"])
async def test_an_answer_without_end_is_given_up_and_never_held(kind, more):
    async with _endless(kind, more) as url, _asking(url) as store:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(TapeUnavailable, match=r"more than 64 MB|packed as gzip"):
            await store.read("telegram:42")
        assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < 400_000


async def test_an_event_without_end_is_given_up():
    async with _endless("text/event-stream", b"") as url, _asking(url) as store:
        with pytest.raises(TapeUnavailable, match="more than 64 MB"):
            async for _ in store.follow("telegram:42", 0):
                pass


@asynccontextmanager
async def _asking(url: str) -> AsyncIterator[RemoteTapeStore]:
    store = RemoteTapeStore(url, "token", patience=5)
    try:
        with anyio.fail_after(60):
            yield store
    finally:
        await store.close()


@asynccontextmanager
async def _endless(kind: str, more: bytes) -> AsyncIterator[str]:
    """Serve one line that never ends, whatever is asked."""

    async def answer(stream: SocketStream) -> None:
        async with stream:
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                await stream.receive()
                head = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n%b\r\n"
                await stream.send(head % (kind.encode(), more))
                while True:
                    await stream.send(b"x" * 1_000_000)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer)
        yield f"http://127.0.0.1:{port}"
        tasks.cancel_scope.cancel()
