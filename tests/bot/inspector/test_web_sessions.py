"""The list of conversations: how each stands, in which order, and at what cost."""

from __future__ import annotations

import html
from dataclasses import replace

import anyio
import pytest
from web_rig import open_web

from bot.bus.messages import Sender
from bot.inspector.reading.sessions import SessionDirectory
from bot.tape.entries import event
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


async def test_an_answer_without_a_receipt_is_told(rig):
    channel = rig.channel("fake")
    channel.reports = False
    sent = await channel.send("Hello")
    await channel.wait_for_answer(sent)
    assert (await rig.get("/session", tape="fake:1"))["state"] == "undelivered"
    assert "answer not delivered" in await rig.page("/sessions")


async def test_names_and_titles_are_shown_as_text(rig):
    await rig.talk("fake:1", ("Hello", "Hi"), sender=HOSTILE)
    await rig.store.create_tape("fake:2", "<img src=x onerror=alert(2)>")
    await all_read(rig)
    page = await rig.page("/sessions")
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert html.escape("<img src=x onerror=alert(2)>") in page


async def test_a_title_that_is_erased_is_shown_nowhere_afterwards(rig):
    await rig.long_tape(20)
    assert "A long conversation" in await rig.page("/sessions")
    [first, *_] = await rig.store.read("fake:long", 1, 1)
    bare = header_entry("fake:long", None)
    await rig.store.erase("fake:long", [replace(first, payload=bare.payload)])
    assert "A long conversation" not in await rig.page("/sessions")
    assert (await rig.get("/session", tape="fake:long"))["title"] == ""


async def test_only_owners_see_conversations(rig):
    for path in (
        "/api/v1/sessions",
        "/api/v1/session?tape=fake:1",
        "/api/v1/memories",
        "/sessions",
    ):
        assert (await rig.member.get(path)).status_code == 403
        assert (await rig.stranger.get(path)).status_code == 401


@pytest.mark.parametrize("cursor", ["x", "e30=", "WzEsMl0=", "%00"])
async def test_a_cursor_that_is_none_is_refused_in_words(rig, cursor):
    answer = await rig.client.get("/api/v1/sessions", params={"cursor": cursor})
    assert answer.status_code == 422
    assert "next" in answer.json()["detail"]


async def test_looking_writes_nothing(rig):
    await rig.talk("fake:1", ("Hello", "Hi"), "/memory add I like tea")
    before = {name: await rig.store.version(name) for name in await rig.store.list_tapes()}
    await rig.page("/sessions")
    await rig.page("/timeline", tape="fake:1", entry=3)
    await rig.get("/entry", tape="fake:1", id=6)
    await rig.get("/entries/anchors", tape="fake:1")
    assert before == {name: await rig.store.version(name) for name in await rig.store.list_tapes()}


async def test_what_was_not_read_in_time_stands_last_until_it_is(rig):
    for number in range(4):
        rig.host.clock.advance(60)
        await rig.talk(f"fake:{number}", ("Hello", "Hi"))
    directory = SessionDirectory(rig.store, 200, 96_000)
    listing = await directory.newest(limit=1, budget=0)
    assert (len(listing.sessions), listing.total, listing.unread) == (1, 4, 3)
    for _ in range(10):
        listing = await directory.newest(limit=1)
    assert listing.unread == 0
    assert listing.sessions[0].tape == "fake:3"


async def test_a_first_look_is_soon_answered_with_fewer_and_goes_on_with_the_others(
    rig, monkeypatch
):
    monkeypatch.setattr("bot.inspector.reading.sessions.PAGE_SECONDS", 0)
    for number in range(4):
        await rig.talk(f"fake:{number}", ("Hello", "Hi"))
    directory = SessionDirectory(rig.store, 200, 96_000)
    seen, cursor = [], ""
    for _ in range(4):
        listing = await directory.newest(budget=0, cursor=cursor)
        assert len(listing.sessions) == 1
        seen += [one.tape for one in listing.sessions]
        cursor = listing.next or ""
    assert not cursor
    assert sorted(seen) == [f"fake:{number}" for number in range(4)]


async def test_a_tape_without_a_turn_is_listed(rig):
    await rig.store.create_tape("fake:9")
    await rig.store.append("fake:9", event("noted", {}))
    one = await rig.get("/session", tape="fake:9")
    assert (one["last_turn"], one["turns"], one["people"]) == (None, 0, [])
    assert "none yet" in await rig.page("/sessions")


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
