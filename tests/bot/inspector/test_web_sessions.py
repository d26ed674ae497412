"""The list of conversations: how each stands, in which order, and at what cost."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest
from web_rig import open_web

from bot.bus.messages import Sender
from bot.tape.store import header_entry

HOSTILE = Sender("66", "<script>alert(1)</script>")


@pytest.fixture
async def rig():
    async with open_web() as rig:
        yield rig


async def all_read(rig):
    """Ask until all conversations were read: a request reads for a bounded time, and the next goes on."""
    with anyio.fail_after(60):
        while (await rig.get("/sessions"))["unread"]:
            pass


async def test_a_conversation_is_told_as_it_stands(rig):
    await rig.talk("fake:1", ("Where is the sea?", "In the north."), "/problem new Boats")
    one = await rig.get("/session", tape="fake:1")
    assert (one["channel"], one["people"], one["turns"]) == ("fake", ["Ada"], 1)
    assert (one["problem"], one["problem_name"]) == ("p1", "Boats")
    assert (one["home"], one["state"]) == ("person:fake:7", "idle")
    assert (one["prompt_tokens"], one["cached_tokens"], one["completion_tokens"]) == (10, 4, 5)
    assert one["cost"] == pytest.approx(0.001)
    assert one["waiting"] == 2
    assert one["entries"] == await rig.store.version("fake:1")
    assert one["last_turn"].startswith("2026-02-10T10:00")


async def test_what_was_used_last_stands_first_and_pages_show_each_once(rig):
    for number in range(7):
        rig.host.clock.advance(60)
        await rig.talk(f"fake:{number}", ("Hello", "Hi"))
    rig.host.clock.advance(60)
    await rig.talk("fake:3", ("Again", "Yes"))
    await all_read(rig)
    seen, cursor = [], ""
    for _ in range(3):
        answer = await rig.get("/sessions", limit=3, cursor=cursor)
        seen += [one["tape"] for one in answer["sessions"]]
        assert (answer["total"], answer["unread"]) == (7, 0)
        cursor = answer["next"]
    assert seen == ["fake:3", "fake:6", "fake:5", "fake:4", "fake:2", "fake:1", "fake:0"]
    assert cursor is None


async def test_conversations_are_found_by_channel_name_and_title(rig):
    await rig.talk("fake:1", ("Hello", "Hi"))
    await rig.talk("telegram:5", ("Hello", "Hi"), sender=Sender("5", "Grace Hopper"))
    await rig.long_tape(20)
    await all_read(rig)

    async def found(**asked):
        return [one["tape"] for one in (await rig.get("/sessions", **asked))["sessions"]]

    assert await found(words="grace hop") == ["telegram:5"]
    assert await found(channel="telegram") == ["telegram:5"]
    assert await found(words="LONG conversation") == ["fake:long"]
    assert await found(words="fake:1") == ["fake:1"]
    assert await found(words="nobody") == []
    assert (await rig.get("/sessions", words="grace"))["channels"] == ["fake", "telegram"]
    assert "Grace Hopper" in await rig.page("/sessions", words="grace")


async def test_memory_is_no_conversation_and_is_listed_as_whose_it_is(rig):
    await rig.talk("fake:1", "/memory add I like tea")
    assert [one["tape"] for one in (await rig.get("/sessions"))["sessions"]] == ["fake:1"]
    assert await rig.get("/memories") == [{"tape": "person:fake:7", "identities": ["fake:7"]}]
    assert (await rig.client.get("/api/v1/session?tape=person:fake:7")).status_code == 404
    assert "/memory?tape=person%3Afake%3A7" in await rig.page("/sessions")


async def test_a_title_that_is_erased_is_shown_nowhere_afterwards(rig):
    await rig.long_tape(20)
    assert "A long conversation" in await rig.page("/sessions")
    [first, *_] = await rig.store.read("fake:long", 1, 1)
    bare = header_entry("fake:long", None)
    await rig.store.erase("fake:long", [replace(first, payload=bare.payload)])
    assert "A long conversation" not in await rig.page("/sessions")
    assert (await rig.get("/session", tape="fake:long"))["title"] == ""


@pytest.mark.night
@pytest.mark.slow
async def test_a_page_of_a_thousand_conversations_reads_some_of_them_and_the_next_go_on(rig):
    for number in range(1_000):
        await rig.long_tape(12, f"fake:{number}")
    left = 1_000
    assert 0 < (await rig.get("/sessions", limit=1))["unread"] < left
    while left:
        before, left = left, (await rig.get("/sessions", limit=1))["unread"]
        assert left <= before
