"""What a bot sees of a tape server behind a bad line, of its refusals, and of a store that is closed."""

from __future__ import annotations

import subprocess
import sys
from contextlib import aclosing

import anyio
import pytest
from breaking_proxy import breaking
from strange_server import answering
from tape_server_rig import TAPE, serving
from waiting import until

from bot.core.errors import TapeError, TapeRefused, TapeUnavailable, VersionConflict
from bot.tape.entries import event, message
from bot.tape.server import idempotency as receipts
from bot.tape.server.idempotency import IdempotentAppender
from bot.tape.server.server import uvicorn_config
from bot.tape.stores import http_client as asking
from bot.tape.stores.remote import RemoteTapeStore
from testkit.ports import kept_port


@pytest.fixture
async def rig(tmp_path):
    async with serving(tmp_path) as rig:
        await rig.store.create_tape(TAPE)
        yield rig


@pytest.fixture
async def line(rig):
    """A store behind a line that breaks."""
    async with breaking(rig.url) as proxy:
        store = RemoteTapeStore(proxy.url, rig.tokens.add("line", "admin", ["*"]))
        yield store, proxy
        await store.close()


def texts(entries):
    return [entry.payload["content"] for entry in entries if entry.kind == "message"]


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["break_answers", "break_requests"])
async def test_an_append_whose_connection_broke_is_there_once(rig, line, fault):
    store, proxy = line
    for number in range(20):
        setattr(proxy, fault, number % 3)
        written = await store.append_many(TAPE, [message("user", f"{number}{x}") for x in "ab"])
        assert [entry.id for entry in written] == [2 + number * 2, 3 + number * 2]
    assert proxy.broken == 19
    assert texts(await rig.store.read(TAPE)) == [f"{n}{x}" for n in range(20) for x in "ab"]
    assert store.statistics()["retries"] == 19


async def test_an_anchor_whose_answer_was_lost_is_made_once(rig, line):
    store, proxy = line
    await store.append(TAPE, message("user", "a"))
    proxy.break_answers = 2
    made = await store.create_anchor(TAPE, "here", state={"n": 1})
    assert (made.entry_id, made.at) == (2, 3)
    assert len(await rig.store.list_anchors(TAPE)) == 1


async def test_an_expected_version_still_holds_when_the_answer_was_lost(rig, line):
    store, proxy = line
    proxy.break_answers = 1
    assert (await store.append_many(TAPE, [message("user", "a")], expect=1))[0].id == 2
    with pytest.raises(VersionConflict):
        await store.append_many(TAPE, [message("user", "b")], expect=1)


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


async def test_a_key_is_known_to_a_server_that_was_started_anew(rig):
    """From the newest entries of the tape, beyond which nobody asks again."""
    entries = [message("user", "a"), message("user", "b")]
    written = await IdempotentAppender(rig.store).append(TAPE, entries, key="k")
    await rig.store.append_many(TAPE, [event("later")] * (receipts.LOOK_BACK - 2))
    assert await IdempotentAppender(rig.store).append(TAPE, entries, key="k", expect=1) == written
    copied = [replaced.with_meta() for replaced in written]
    await rig.store.append_many(TAPE, copied)
    await rig.store.append_many(TAPE, [event("later")] * receipts.LOOK_BACK)
    assert len(await IdempotentAppender(rig.store).append(TAPE, entries, key="k")) == 2
    assert (await rig.store.read(TAPE))[-1].payload["content"] == "b"


async def test_an_append_that_is_under_way_is_waited_for_when_cancelled(rig, line):
    store, proxy = line
    proxy.break_answers = 3
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.append, TAPE, message("user", "sent"))
            await until(lambda: proxy.broken, every=0.001)
            scope.cancel()
    assert texts(await rig.store.read(TAPE)) == ["sent"]
    assert proxy.broken == 3


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


async def test_the_client_lets_idle_connections_go_before_the_server_does(rig):
    assert uvicorn_config(rig.app).timeout_keep_alive > asking._KEPT


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


async def test_what_is_too_large_is_told_before_it_is_sent(tmp_path):
    async with serving(tmp_path, most=1_000_000) as rig:
        store = rig.remote()
        await store.create_tape(TAPE)
        with pytest.raises(TapeRefused, match="TAPEBOT_TAPE_SERVER_MAX_MB"):
            await store.append(TAPE, message("user", "x" * 1_000_000))
        await store.append(TAPE, message("user", "x" * 950_000))
        await store.close()


async def test_a_bound_that_was_raised_holds_for_a_client_that_knew_the_old_one(tmp_path):
    large = message("user", "x" * 1_100_000)
    with kept_port() as port:
        place = f"127.0.0.1:{port}"
        async with serving(tmp_path, most=1_000_000, listen=place) as rig:
            store = rig.remote()
            await store.create_tape(TAPE)
            with pytest.raises(TapeRefused):
                await store.append(TAPE, large)
            tokens = rig.tokens
        async with serving(tmp_path, most=2_000_000, tokens=tokens, listen=place) as rig:
            await rig.store.create_tape(TAPE)
            assert (await store.append(TAPE, large)).id == 2
            await store.close()


async def test_a_name_beyond_the_bound_is_refused(rig):
    store = rig.remote()
    for ask in (store.create_tape("x" * 5_000), store.get_anchor(TAPE, "x" * 5_000)):
        with pytest.raises(TapeRefused, match="4096 characters"):
            await ask
    await store.close()


async def test_a_closed_store_says_so(rig):
    store = rig.remote()
    await store.close()
    with pytest.raises(TapeError, match="closed"):
        await store.version(TAPE)
    with pytest.raises(TapeError, match="closed"):
        await anext(store.follow(TAPE, 1))


async def test_a_store_that_is_closed_while_requests_wait_for_their_turn_says_so(rig):
    store = rig.remote()
    await store.version(TAPE)
    told = []
    first = anyio.Event()

    async def append() -> None:
        try:
            await store.append(TAPE, event("e"))
            first.set()
        except TapeError as error:
            told.append(str(error))

    async with anyio.create_task_group() as tasks:
        for _ in range(60):
            tasks.start_soon(append)
        await first.wait()
        await store.close()
    assert any("closed" in one for one in told)


async def test_more_requests_at_once_than_are_answered_at_once_wait_for_their_turn(rig):
    """The client sends a few at a time."""
    store = rig.remote()
    await store.create_tape("other")
    async with anyio.create_task_group() as tasks:
        for number in range(200):
            tasks.start_soon(store.append, TAPE, message("user", str(number)))
    assert await store.version(TAPE) == 201
    await store.close()


def test_the_client_loads_only_when_a_tape_server_is_used():
    code = (
        "import sys, bot.runtime.app.tape_stores, bot.cli.tape_server; "
        "print([m for m in ('httpx', 'fastapi', 'uvicorn') if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.strip() == "[]"
