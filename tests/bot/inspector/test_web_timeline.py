"""The timeline: every entry in words, what is found, what comes new, and what is gone."""

from __future__ import annotations

import html
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import pytest
from web_rig import open_web

from bot.bus.messages import Sender
from bot.inspector.reading import entry_search as finding
from bot.inspector.reading.categories import CATEGORIES
from bot.inspector.reading.entry_text import LONGEST
from bot.tape.entries import TapeEntry
from bot.tape.stores.in_memory import InMemoryTapeStore

TAPE = "fake:1"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


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
    await rig.talk(TAPE, said, "Where is Hamburg?", "/memory add I like tea", "/problem new Boats")
    shown = await entries(rig)
    assert [one["id"] for one in shown] == list(range(1, await rig.store.version(TAPE) + 1))
    for one in shown:
        assert one["text"]
        assert len(one["text"]) <= LONGEST
        assert "\n" not in one["text"]
        assert "pointers" not in one["text"]
    kinds = {one["category"] for one in shown}
    wanted = "message answer tool anchor zone command delivery turn system"
    assert {*wanted.split()} <= kinds <= {*CATEGORIES}
    assert [one["who"] for one in shown if one["category"] == "message"] == ["Ada", "Ada"]


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


@pytest.mark.slow
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
