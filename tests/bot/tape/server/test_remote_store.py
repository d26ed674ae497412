"""What a bot sees of a tape server behind a bad line, of its refusals, and of what is no tape server."""

from __future__ import annotations

import resource
from contextlib import aclosing

import anyio
import pytest
from breaking_proxy import breaking
from strange_server import answering
from tape_server_rig import TAPE, serving

from bot.core.errors import TapeRefused, TapeUnavailable
from bot.tape.entries import event
from bot.tape.stores.remote import RemoteTapeStore


@pytest.fixture
async def rig(tmp_path):
    async with serving(tmp_path) as rig:
        await rig.store.create_tape(TAPE)
        yield rig


@pytest.fixture
async def line(rig):
    async with breaking(rig.url) as proxy:
        store = RemoteTapeStore(proxy.url, rig.tokens.add("line", "admin", ["*"]))
        yield store, proxy
        await store.close()


def texts(entries):
    return [entry.payload["content"] for entry in entries if entry.kind == "message"]


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.archive(TAPE),
        lambda store: store.reset(TAPE),
        lambda store: store.fork(TAPE, "child"),
        lambda store: store.create_tape(TAPE, replace_if_exists=True),
    ],
)
async def test_a_change_that_may_have_been_done_is_not_asked_for_again(rig, line, change):
    store, proxy = line
    await store.version(TAPE)
    proxy.break_answers = 1
    with pytest.raises(TapeUnavailable):
        await change(store)
    assert proxy.broken == 1
    assert store.statistics()["retries"] == 0


@pytest.mark.slow
async def test_a_followed_stream_that_breaks_is_taken_up_where_it_broke(rig, line):
    store, proxy = line
    await rig.store.append_many(TAPE, [event("a"), event("b")])
    found = []
    async with aclosing(store.follow(TAPE, 1)) as entries:
        with anyio.fail_after(30):
            async for entry in entries:
                found.append(entry.id)
                if len(found) == 2:
                    await proxy.cut()
                    await rig.store.append_many(TAPE, [event("c"), event("d")])
                if len(found) == 4:
                    break
    assert found == [2, 3, 4, 5]
    assert store.statistics()["followed"] == 0


async def test_a_server_on_this_machine_is_not_asked_through_a_proxy(rig, monkeypatch):
    heard: list[bytes] = []
    answer = b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n"
    async with answering(answer, heard=heard) as proxy:
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy)
        token = rig.tokens.add("bot", "read", ["*"])
        port = rig.url.rpartition(":")[2]
        for host in ("127.0.0.1", "localhost"):
            store = RemoteTapeStore(f"http://{host}:{port}", token, patience=0.2)
            assert await store.version(TAPE) == 1
            await store.close()
        assert heard == []
        away = RemoteTapeStore("http://tapes.invalid", token, patience=0.2)
        with pytest.raises(TapeUnavailable, match="502"):
            await away.version(TAPE)
        await away.close()
        assert heard, "for another machine the proxy holds"


async def test_what_a_token_does_not_allow_is_told_with_what_would(rig):
    wrong = rig.remote("tape_wrong")
    with pytest.raises(TapeRefused, match="TAPEBOT_TAPE_STORE_TOKEN"):
        await wrong.version(TAPE)
    await wrong.close()
    reader = rig.remote(rig.tokens.add("reader", "read", ["telegram:*"]))
    assert await reader.version(TAPE) == 1
    with pytest.raises(TapeRefused, match="scope append"):
        await reader.append(TAPE, event("e"))
    with pytest.raises(TapeRefused, match="discord:1"):
        await reader.version("discord:1")
    with pytest.raises(TapeRefused):
        await anext(reader.follow("discord:1", 0))
    await reader.close()


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
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
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


async def test_a_conflict_that_names_no_version_is_a_refusal():
    body = b'{"error":"conflict","detail":"oh"}'
    async with answering(
        b"HTTP/1.1 409 No\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    ) as url:
        store = RemoteTapeStore(url, "x", patience=0.2)
        with pytest.raises(TapeRefused, match="oh"):
            await store.version(TAPE)
        await store.close()


@pytest.mark.slow
async def test_an_answer_without_end_is_given_up_and_never_held():
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
    async with answering(head, endless=b"x" * 1_000_000) as url:
        store = RemoteTapeStore(url, "token", patience=5)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with anyio.fail_after(60), pytest.raises(TapeUnavailable, match="more than 64 MB"):
            await store.read(TAPE)
        assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < 400_000
        await store.close()
