"""Figures by day are what the tapes record, read in portions, and drawn so that all can read them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from xml.etree import ElementTree as ET

import anyio
import pytest
from web_rig import Rig, open_web

from bot.inspector.plots import Plot, Series, ceiling
from bot.inspector.reading.statistics import StatisticsCache
from bot.inspector.reading.tape_statistics import UNKNOWN
from bot.memory.session.state.zone_snapshot import MemorySnapshot, zone_entries
from bot.tape.entries import TapeEntry, anchor, event, message
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    text_reply,
    tool_call_reply,
)

TODAY = date(2026, 2, 10)
NOON = datetime(2026, 2, 10, 12, tzinfo=UTC)


def usage(prompt: int, cached: int = 0, written: int = 1, cost: float | None = 0.5) -> dict:
    return {
        "prompt_tokens": prompt,
        "cached_tokens": cached,
        "completion_tokens": written,
        "cost": cost,
        "calls": 1,
    }


def a_turn(days: int, number: int, *, ms: float = 100.0, **more: object) -> list[TapeEntry]:
    """A turn so many days ago, whose message was sent two seconds before it began."""
    begun = NOON - timedelta(days=days)
    ts, sent = begun.isoformat(), (begun - timedelta(seconds=2)).isoformat()
    turn, inbound = f"t{days}-{number}", f"m{days}-{number}"
    return [
        message("user", "hello", inbound=inbound, sent=sent, ts=ts),
        event("turn.start", {"turn": turn, "inbound": [inbound]}, ts=ts),
        event("turn.end", {"turn": turn, "status": "ok", "usage": usage(10), "ms": ms, **more}, ts=ts),
    ]  # fmt: skip


async def a_store(*entries: TapeEntry, tape: str = "fake:1") -> InMemoryTapeStore:
    store = InMemoryTapeStore()
    await store.create_tape(tape)
    await store.append_many(tape, entries)
    return store


async def summary(store: InMemoryTapeStore, days: int = 3, **more):
    more = {"budget": 60.0, **more}
    return await StatisticsCache(store, UTC).summary(
        TODAY - timedelta(days=days - 1), TODAY, **more
    )


async def test_each_day_has_its_turns_their_time_and_how_long_they_waited():
    slow = [one for number in range(20) for one in a_turn(0, number, ms=100.0 * (number + 1))]
    store = await a_store(*a_turn(5, 0), *a_turn(2, 0), *a_turn(2, 1, status="error"), *slow)
    found = await summary(store)
    assert found.complete
    assert [one.day for one in found.days] == ["2026-02-08", "2026-02-09", "2026-02-10"]
    assert [(one.turns, one.failed) for one in found.days] == [(2, 1), (0, 0), (20, 0)]
    assert found.days[2].p50_ms == 1000.0
    assert found.days[2].waited_p50_ms == 2000.0


async def test_tokens_belong_to_the_model_that_took_them_and_old_tapes_to_none():
    """A fallback answered the second step; a summary is in the whole alone; a month ago nobody knew."""
    ts = NOON.isoformat()
    steps = [
        event("loop.step", {"turn": "t", "model": name, "spent": usage(prompt)}, ts=ts)
        for name, prompt in (("first", 100), ("second", 30))
    ]
    whole = usage(150, cost=1.5)
    store = await a_store(
        event("turn.start", {"turn": "t", "inbound": []}, ts=ts),
        *steps,
        event("turn.end", {"turn": "t", "status": "ok", "usage": whole, "model": "second"}, ts=ts),
        *a_turn(0, 1),
        event("memory.history", {"entry": "x", "usage": usage(7), "model": "small"}, ts=ts),
        event("turn.end", {"turn": "c", "status": "command", "usage": usage(99)}, ts=ts),
    )
    [day] = (await summary(store, 1)).days
    assert {one.model: one.prompt_tokens for one in day.usage} == {
        "first": 100,
        "second": 50,
        UNKNOWN: 10,
        "small": 7,
    }
    assert sum(one.cost or 0 for one in day.usage) == 2.5
    assert day.turns == 2


async def test_memory_is_told_as_it_was_at_the_end_of_each_day():
    def zone(days: int, text: str, version: int) -> list[TapeEntry]:
        ts = (NOON - timedelta(days=days)).isoformat()
        return [one.with_meta(ts=ts) for one in zone_entries(MemorySnapshot(version, text), ts)]

    store = await a_store(*zone(9, "1234", 1), *zone(1, "12345678", 2), *a_turn(0, 0))
    found = await summary(store)
    # The store's own first entry is of another day: nothing is known of when.
    assert [one.zone_bytes for one in found.days] == [4, 8, 8]
    assert [one.entries for one in found.days] == [4, 7, 10]


async def test_what_a_copy_has_of_its_parent_is_counted_once():
    ts = NOON.isoformat()
    store = await a_store(*a_turn(0, 0))
    await store.fork("fake:1", "fake:2")
    fork = anchor("session/fork", {"parent": "fake:1", "keep_from": 2}, ts=ts)
    await store.append_many("fake:2", [fork, *a_turn(0, 1)])
    [day] = (await summary(store, 1)).days
    assert day.turns == 2


@pytest.mark.slow
async def test_a_look_reads_for_a_bounded_time_and_the_next_goes_on(monkeypatch):
    store = InMemoryTapeStore()
    for number in range(30):
        await store.create_tape(f"fake:{number}")
        turns = [one for place in range(200) for one in a_turn(0, place)]
        await store.append_many(f"fake:{number}", turns)
    figures = StatisticsCache(store, UTC)
    first = await figures.summary(TODAY, TODAY, budget=0.0)
    assert (first.read, first.complete, 0 < first.days[0].turns < 200) == (0, False, True)
    reads = 0
    plain = InMemoryTapeStore.read

    async def counted(self, tape, first=None, last=None):
        nonlocal reads
        found = await plain(self, tape, first, last)
        reads += len(found)
        return found

    monkeypatch.setattr(InMemoryTapeStore, "read", counted)
    looks = [await figures.summary(TODAY, TODAY, budget=0.005)]
    while not looks[-1].complete:
        looks.append(await figures.summary(TODAY, TODAY, budget=0.005))
        assert looks[-1].read >= looks[-2].read
        assert looks[-1].days[0].turns > looks[-2].days[0].turns
    assert len(looks) > 1
    assert looks[-1].days[0].turns == 6000
    assert reads <= 30 * 602
    await store.append_many("fake:3", a_turn(0, 999))
    one = await figures.summary(TODAY, TODAY, "fake:3", budget=1.0)
    assert one.days[0].turns == 201


async def test_what_is_older_than_the_first_day_is_not_read(monkeypatch):
    old = [one for number in range(2000) for one in a_turn(40, number)]
    store = await a_store(*old, *a_turn(0, 0))
    read: list[int] = []
    plain = InMemoryTapeStore.read

    async def counted(self, tape, first=None, last=None):
        found = await plain(self, tape, first, last)
        read.append(len(found))
        return found

    ends = [one for one in await store.read("fake:1") if one.name == "turn.end"]
    monkeypatch.setattr(InMemoryTapeStore, "read", counted)
    figures = StatisticsCache(store, UTC)
    assert await figures._first_since("fake:1", TODAY) == ends[-2].id + 1
    assert sum(read) == 0


async def test_real_turns_and_consolidations_name_their_model(tmp_path):
    steps = [
        tool_call_reply(("no_such_tool", {})),
        text_reply("a"),
        text_reply("b"),
        text_reply("c"),
    ]
    model = ScriptedModel(steps, consolidation=lambda _: consolidation_reply("[x] Told."))
    async with session_host(tmp_path, model, bounds=HostLimits(window=4)) as host:
        for text in ("one", "two", "three"):
            await host.channel.ask(text)
        await host.wait_for_event("memory/consolidated")
        today = host.clock.now().date()
        found = await StatisticsCache(host.store, UTC).summary(today, today, budget=60.0)
    [spent] = found.days[0].usage
    assert spent.model == "scripted"
    # Four calls of three turns, and those of the consolidations that there was time for.
    assert spent.calls >= 5
    assert spent.prompt_tokens == 10 * spent.calls
    assert found.days[0].turns == 3


# the site


async def many_days(rig: Rig) -> None:
    today = rig.host.clock.now()
    entries = [
        replaced.with_meta(ts=(today - timedelta(days=days)).isoformat())
        for days in range(9, -1, -1)
        for replaced in a_turn(0, days, model=f"<model & {days % 8}>")
    ]
    await rig.store.create_tape("telegram:42")
    await rig.store.append_many("telegram:42", entries)


async def test_the_page_draws_each_plot_with_words_and_a_table_and_no_style():
    async with open_web() as rig:
        await many_days(rig)
        with anyio.fail_after(60):
            # A request reads for a bounded time, and the next goes on.
            while not (await rig.get("/statistics", days=30))["complete"]:
                pass
        shown = await rig.page("/statistics", days=30)
        found = await rig.get("/statistics", days=30)
    assert sum(day["turns"] for day in found["days"]) == 10
    assert found["complete"]
    drawn = re.findall(r"<svg class=\"plot\".*?</svg>", shown, re.DOTALL)
    assert len(drawn) == 4
    for one in drawn:
        tree = ET.fromstring(one)
        named = tree.attrib["aria-labelledby"].split()
        ids = {child.attrib.get("id"): child.text for child in tree}
        assert all(ids[name] for name in named)
    assert shown.count("<table") == len(drawn)
    assert " style=" not in shown
    assert "<style" not in shown
    assert "<model" not in shown
    assert "&lt;model &amp; 7&gt;" in shown
    assert ">others<" in shown or "others</li>" in shown


async def test_one_conversation_may_be_asked_for_and_one_that_is_not_there_is_said():
    async with open_web() as rig:
        await many_days(rig)
        await rig.talk("fake:1", ("hello", "hi"))
        one = await rig.get("/statistics", tape="fake:1")
        assert sum(day["turns"] for day in one["days"]) == 1
        assert one["days"][-1]["usage"][0]["cached_tokens"] == 4
        answer = await rig.client.get("/api/v1/statistics", params={"tape": "fake:9"})
        assert answer.status_code == 404
        for days in (0, 366):
            answer = await rig.client.get("/api/v1/statistics", params={"days": days})
            assert answer.status_code == 422
        assert (await rig.member.get("/api/v1/statistics")).status_code == 403


async def test_one_conversation_counts_the_facts_that_its_person_shares_over_all_chats():
    async with open_web() as rig:
        await rig.host.channel.ask("/memory add I live in Porto.", chat="1")
        await rig.host.channel.ask("hello", chat="2")
        shown = await rig.page("/statistics", tape="fake:2", days=1)
        found = await rig.get("/statistics", tape="fake:2", days=1)
        everything = await rig.page("/statistics", days=1)
    assert found["facts_of"].startswith("person:fake:")
    assert [day["facts"] for day in found["days"]] == [1]
    assert found["complete"]
    assert "Active facts of this person, from all their chats" in shown
    assert "of this person" not in everything


async def test_the_providers_cache_is_named_only_where_the_provider_tells_of_it():
    async with open_web() as rig:
        await many_days(rig)
        silent = await rig.page("/statistics", tape="telegram:42", days=30)
        await rig.talk("fake:1", ("hello", "hi"))
        told = await rig.page("/statistics", tape="fake:1", days=30)
    assert "from the provider" not in silent
    assert "% from the provider’s cache" in told


async def test_without_a_conversation_the_page_says_so():
    async with open_web() as rig:
        shown = await rig.page("/statistics")
    assert shown.count("Nothing in these days.") >= 3


# plots


@pytest.mark.parametrize("count", [1, 2, 31, 365])
def test_no_mark_leaves_its_plot(count):
    labels = [f"day {number}" for number in range(count)]
    values = [float(number * 7 % 13) if number % 5 else None for number in range(count)]
    values[0] = 3.0
    for stacked in (True, False):
        plot = Plot("k", "t", "s", labels, (Series("a", values), Series("b", values)), str, stacked)
        tree = ET.fromstring(str(plot.svg()))
        marks = [one for one in tree.iter() if "series-" in one.attrib.get("class", "")]
        assert marks
        for one in marks:
            for pair in one.attrib.get("points", "").split():
                x, y = map(float, pair.split(","))
                assert 0 <= x <= 480
                assert 0 <= y <= 220
            top, height = float(one.attrib.get("y", 0)), float(one.attrib.get("height", 0))
            left, width = float(one.attrib.get("x", 0)), float(one.attrib.get("width", 0))
            assert 0 <= top <= top + height <= 220.01
            assert 0 <= left <= left + width <= 480


@pytest.mark.parametrize("highest", [0, 1e-7, 0.3, 1, 3, 99, 100, 101, 7e9, float("inf")])
def test_the_axis_ends_above_all_that_is_shown(highest):
    assert ceiling(highest) > 0
    for whole in (True, False):
        top = ceiling(highest, whole=whole)
        assert top >= highest * (1 - 1e-9) or highest == float("inf")
        assert not whole or top % 4 == 0


@pytest.mark.parametrize("days", [3, 30])
async def test_what_a_copy_has_of_its_parent_is_counted_once_however_long_ago_it_was_made(days):
    store = await a_store(*a_turn(20, 0))
    await store.fork("fake:1", "fake:2")
    made = (NOON - timedelta(days=10)).isoformat()
    fork = anchor("session/fork", {"parent": "fake:1", "keep_from": 2}, ts=made)
    await store.append_many("fake:2", [fork, *a_turn(0, 1)])
    of_copy = (await summary(store, days, tape="fake:2")).days
    assert [one.entries for one in of_copy[-2:]] == [0, 3]


async def test_a_time_that_no_day_here_has_counts_for_none():
    entry = message("user", "hello", ts="0001-01-01T00:00:00.000+00:00")
    west = timezone(timedelta(hours=-8))
    found = await StatisticsCache(await a_store(entry, *a_turn(0, 0)), west).summary(TODAY, TODAY)
    assert found.days[0].turns == 1
