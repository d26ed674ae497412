"""The timeline: every entry in words, what is found, what comes new, and what is gone."""

from __future__ import annotations

import html
import json
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import anyio
import pytest
from web_rig import open_web

from bot.bus.messages import Sender
from bot.inspector.reading import entry_search as finding
from bot.inspector.reading.categories import CATEGORIES
from bot.inspector.reading.entry_text import LONGEST
from bot.tape.entries import TapeEntry, anchor, message
from bot.tape.stores.in_memory import InMemoryTapeStore

TAPE = "fake:1"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture
async def rig():
    async with open_web() as rig:
        yield rig


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """Let a search of a short tape read it to its end, however busy the machine is."""
    monkeypatch.setattr(finding, "_SECONDS", 60.0)


async def entries(rig, tape=TAPE, first=1, last=500):
    return (await rig.get("/entries", tape=tape, first=first, last=last))["entries"]


async def found(rig, **asked):
    answer = await rig.get("/entries/found", tape=TAPE, **asked)
    return [one["id"] for one in answer["entries"]]


async def test_every_entry_of_a_conversation_is_told_in_one_line(rig):
    said = "I live in Hamburg. " + "It is far. " * 100
    await rig.talk(TAPE, said, ("And?", "Yes."), "/memory add I like tea", "/problem new Boats")
    shown = await entries(rig)
    assert [one["id"] for one in shown] == list(range(1, await rig.store.version(TAPE) + 1))
    for one in shown:
        assert one["text"]
        assert len(one["text"]) <= LONGEST
        assert "\n" not in one["text"]
        assert "pointers" not in one["text"]
    kinds = {one["category"] for one in shown}
    wanted = {
        "message",
        "answer",
        "tool",
        "anchor",
        "zone",
        "command",
        "delivery",
        "turn",
        "system",
    }
    assert wanted <= kinds <= set(CATEGORIES)
    assert [one["who"] for one in shown if one["category"] == "message"] == ["Ada", "Ada"]


async def test_an_entry_leads_to_its_turn_and_to_what_is_remembered_because_of_it(rig):
    await rig.talk(TAPE, "I live in Hamburg.")
    asked = next(one for one in await entries(rig) if one["category"] == "message")
    answered = next(one for one in await entries(rig) if one["category"] == "answer")
    detail = await rig.get("/entry", tape=TAPE, id=asked["id"])
    assert detail["turn"] == answered["turn"] != ""
    [fact] = detail["facts"]
    assert (fact["tape"], fact["number"]) == ("person:fake:7", 1)
    assert "Hamburg" in fact["text"]
    decided = [one for one in await entries(rig, "person:fake:7") if one["category"] == "gate"]
    decision = await rig.get("/entry", tape="person:fake:7", id=decided[0]["id"])
    assert decision["evidence"] == [{"tape": TAPE, "entry": asked["id"]}]
    assert "approved" in decision["decisions"][0]
    assert decision["payload"]["name"] == "memory.facts"


async def test_what_is_hostile_is_text_on_every_page_and_its_markdown_harms_nobody(rig):
    await rig.talk(
        TAPE,
        (HOSTILE, f"{HOSTILE} [here](javascript:alert(3)) **bold**"),
        sender=Sender("66", HOSTILE),
    )
    shown = await entries(rig)
    asked = next(one for one in shown if one["category"] == "message")
    answered = next(one for one in shown if one["category"] == "answer")
    for page in (
        await rig.page("/timeline", tape=TAPE),
        await rig.page("/timeline", tape=TAPE, entry=answered["id"]),
        await rig.page("/timeline", tape=TAPE, words="alert"),
    ):
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert 'href="javascript' not in page
        assert html.escape("<script>alert(1)") in page
    detail = await rig.get("/entry", tape=TAPE, id=answered["id"])
    assert "<strong>bold</strong>" in detail["html"]
    assert "<script" not in detail["html"]
    assert "<img" not in detail["html"]
    assert (await rig.get("/entry", tape=TAPE, id=asked["id"]))["html"] is None


async def test_erased_words_are_gone_from_the_timeline(rig):
    await rig.talk(TAPE, "My cat is called Xylophone.", ("Nice?", "Yes."))
    [asked, *_] = await found(rig, words="xylophone")
    await rig.page("/timeline", tape=TAPE)
    [told] = await rig.talk(TAPE, "/memory forget Xylophone")
    answer = rig.channel("fake").answers[-1]
    await rig.talk(TAPE, answer.buttons[0].command)
    for text in (
        json.dumps(await entries(rig)),
        json.dumps(await rig.get("/entry", tape=TAPE, id=asked)),
        await rig.page("/timeline", tape=TAPE),
        await rig.page("/timeline", tape=TAPE, entry=asked),
        json.dumps(await rig.get("/entries/anchors", tape=TAPE)),
    ):
        assert "xylophone" not in text.casefold(), told
    assert await found(rig, words="xylophone") == []
    erased = (await entries(rig))[asked - 1]
    assert (erased["id"], erased["erased"], erased["text"]) == (asked, True, "[erased]")


async def test_ids_that_a_reset_dropped_are_gaps_and_are_told_as_such(rig):
    await rig.long_tape(700)
    version = await rig.store.version("fake:long")
    await rig.store.reset("fake:long", [message("user", "after")])
    answer = await rig.get("/entries/anchors", tape="fake:long")
    assert (answer["first"], answer["version"]) == (version + 1, version + 2)
    assert await entries(rig, "fake:long", 1, 500) == []
    gone = await rig.client.get("/api/v1/entry", params={"tape": "fake:long", "id": 5})
    assert gone.status_code == 404
    assert "reset" in gone.json()["detail"]
    page = await rig.page("/timeline", tape="fake:long", entry=5)
    assert f'data-first="{version + 1}"' in page
    assert "There is no such entry" in page


async def test_words_are_found_in_the_index_and_bookkeeping_by_reading_back(rig):
    await rig.talk(TAPE, ("Where is the harbour?", "By the sea."), "/memory add I like tea")
    shown = await entries(rig)
    by_id = {one["id"]: one for one in shown}
    assert "harbour" in by_id[(await found(rig, words="harbour"))[0]]["text"]
    commands = await found(rig, category="command")
    assert [by_id[one]["text"] for one in commands] == ["/memory add I like tea"]
    assert await found(rig, category="command", words="tea") == commands
    assert await found(rig, category="command", words="coffee") == []
    assert commands[0] in await found(rig, kinds="event", words="tea")
    answers = [one["id"] for one in reversed(shown) if one["category"] == "answer"]
    assert await found(rig, category="answer") == answers
    assert await found(rig, sender="assistant", kinds="message") == answers[1:]
    assert await found(rig, category="message", sender="ada") == [shown[5]["id"]]
    page = await rig.page("/timeline", tape=TAPE, category="command")
    assert "/memory add I like tea" in page
    assert "By the sea" not in page


async def test_what_is_found_is_bound_by_problem_and_time(rig):
    await rig.talk(TAPE, ("One", "1"))
    rig.host.clock.advance(86_400)
    await rig.talk(TAPE, "/problem new Boats", ("Two", "2"))
    noon = rig.host.clock.now() - timedelta(hours=1)
    texts = {one["id"]: one["text"] for one in await entries(rig)}

    async def said(**asked):
        ids = await found(rig, category="message", **asked)
        return [texts[one] for one in ids]

    assert await said(problem="p1") == ["Two"]
    assert await said(problem="general") == ["One"]
    assert await said(since=noon.isoformat()) == ["Two"]
    assert await said(until=noon.isoformat()) == ["One"]
    bare = await rig.client.get("/api/v1/entries/found?tape=fake:1&since=2026-01-01T00:00:00")
    assert bare.status_code == 422
    page = await rig.page("/timeline", tape=TAPE, category="message", since=noon.date().isoformat())
    assert ">Two<" in page
    assert ">One<" not in page


async def test_chapters_are_marked_and_zones_are_none(rig):
    await rig.talk(TAPE, "I live in Hamburg.", "/problem new Boats")
    await rig.store.append(TAPE, anchor("trip", {"title": HOSTILE}))
    answer = await rig.get("/entries/anchors", tape=TAPE)
    assert [one["name"] for one in answer["anchors"]] == ["session/start", "problem/p1", "trip"]
    assert [one["title"] for one in answer["anchors"]] == ["", "Boats", HOSTILE]
    assert answer["total"] == 3
    [newest] = (await rig.get("/entries/anchors", tape=TAPE, limit=1))["anchors"]
    assert newest["name"] == "trip"


async def test_what_comes_new_is_told_as_soon_as_it_is_there(rig):
    await rig.talk(TAPE, ("One", "1"))
    version = await rig.store.version(TAPE)
    told = {}

    async def wait():
        told.update(await rig.get("/follow", tape=TAPE, after=version, seconds=20))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await rig.store.append(TAPE, message("user", "Two"))
    assert [one["text"] for one in told["entries"]] == ["Two"]
    assert told["version"] == version + 1
    assert (await rig.get("/follow", tape=TAPE, after=version + 1, seconds=0))["entries"] == []
    many = await rig.get("/follow", tape=TAPE, after=0, seconds=20)
    assert len(many["entries"]) == version + 1


async def test_a_range_is_bounded_and_what_is_not_there_is_refused_in_words(rig):
    await rig.talk(TAPE, ("One", "1"))
    for asked in ({"first": 1, "last": 501}, {"first": 2, "last": 1}, {"first": 0, "last": 1}):
        answer = await rig.client.get("/api/v1/entries", params={"tape": TAPE, **asked})
        assert answer.status_code == 422
    for path in ("/entries?first=1&last=2", "/entry?id=1", "/entries/anchors?", "/follow?after=1",
                 "/entries/found?words=x", "/entries/found?category=turn"):  # fmt: skip
        answer = await rig.client.get(f"/api/v1{path}&tape=fake:nobody")
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
    assert await entries(rig, first=100_000, last=100_400) == []
    assert (await rig.client.get("/timeline?tape=fake:nobody")).status_code == 404


class _Counting(InMemoryTapeStore):
    """Counts the entries that are read."""

    taken = 0

    async def read(self, *asked: Any) -> list[TapeEntry]:
        entries = await super().read(*asked)
        self.taken += len(entries)
        return entries

    async def read_back(self, *asked: Any) -> AsyncGenerator[TapeEntry, None]:
        async for entry in super().read_back(*asked):
            self.taken += 1
            yield entry


async def test_a_page_and_its_rows_read_what_is_shown_and_not_what_the_tape_holds():
    store = _Counting()
    async with open_web(store) as rig:
        await rig.long_tape(5_000)
        # Whoever looks first indexes the tape.
        await store.list_anchors("fake:long")
        store.taken = 0
        page = await rig.page("/timeline", tape="fake:long")
        rows = await entries(rig, "fake:long", 2_801, 3_000)
    assert page.count('role="row"') == 60
    assert len(rows) == 200
    assert f"#{await store.version('fake:long')}<" in page
    assert 260 <= store.taken < 600
