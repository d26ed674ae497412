"""Resets, and tapes from elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.memory.records.fact import Fact
from bot.memory.records.fact_fold import FACTS_EVENT
from bot.memory.session.scope.scope_memory import load_fact_entries
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.zone import MemoryZone
from bot.memory.session.state.zone_snapshot import DailyNote, MemorySnapshot
from bot.tape.entries import event, message
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore
from bot.testing.manual_clock import ManualClock
from bot.transfer.tape_verification import verify_tape

ADDS_TEA = {"op": "add", "fact": Fact(1, "Ada likes tea.").as_json()}


async def test_a_reset_writes_an_empty_zone_and_versions_go_on(tmp_path):
    clock = ManualClock()
    store = FileTapeStore(tmp_path / "tapes", clock=clock)
    tape = TapeService(store, "fake:1")
    await tape.ensure_bootstrap_anchor()
    zone = MemoryZone(tape, clock=clock)
    await zone.load_or_create()
    await zone.save_long_term("- Ada likes tea.")
    await zone.append_daily("- met Eva")
    before = await tape.version()
    await zone.reset()
    assert zone.read() == MemorySnapshot(4)
    left = await tape.read_entries()
    assert left[0].id == before + 1
    assert [entry.name for entry in left[:2]] == ["tape.header", "session/start"]
    await store.close()


async def test_a_tape_without_a_zone_gets_an_empty_one_and_keeps_all_it_has(tmp_path):
    store = FileTapeStore(tmp_path, clock=ManualClock())
    tape = TapeService(store, "fake:1")
    await store.create_tape("fake:1")
    await tape.append(message("user", "from another program"))
    zone = MemoryZone(tape, clock=ManualClock())
    await zone.load_or_create()
    assert zone.read() == MemorySnapshot(1)
    assert "from another program" in str(await tape.read_entries())
    await store.close()


async def test_the_block_shows_today_apart_from_the_last_seven_days_and_nothing_older(tmp_path):
    clock = ManualClock()
    store = FileTapeStore(tmp_path, clock=clock)
    tape = TapeService(store, "fake:1")
    await tape.ensure_bootstrap_anchor()
    zone = MemoryZone(tape, clock=clock)
    await zone.load_or_create()
    today = zone.today()
    for days in (0, 1, 7, 8, 29):
        await zone.append_daily(
            f"{days} days ago", date=str(today.fromordinal(today.toordinal() - days))
        )
    assert DailyNote(today.isoformat(), "0 days ago") in zone.read().dailies
    block = zone.get_context()
    todays, _, recent = block.partition("## Recent Notes")
    assert "## Today's Notes\n0 days ago" in todays
    assert "1 days ago" in recent
    assert "7 days ago" in recent
    assert "8 days ago" not in block
    assert "29 days ago" not in block
    assert "Facts have a number" in block
    await store.close()


@pytest.mark.parametrize("archive", [False, True])
async def test_a_reset_means_forget(tmp_path, archive):
    """Whoever resets the tape, and whichever way it is read afterwards: nothing of its memory comes back."""
    clock = ManualClock()
    store = FileTapeStore(tmp_path, clock=clock)
    tape = TapeService(store, "fake:1")
    await tape.ensure_bootstrap_anchor()
    zone = MemoryZone(tape, clock=clock)
    await zone.load_or_create()
    await tape.append(message("user", "I like tea"))
    await zone.save_long_term("- Ada likes tea.")
    await zone.append_daily("- met Eva")
    await tape.append(
        event(FACTS_EVENT, {"key": "k", "author": "x", "previous": 0, "ops": [ADDS_TEA]})
    )
    fold = await load_fold(tape, max_messages=10, max_tokens=1_000)
    assert [fact.text for fact in fold.facts.active()] == ["Ada likes tea."]
    version = zone.read().version
    await tape.reset(archive=archive)
    fresh = TapeService(store, "fake:1")
    again = MemoryZone(fresh, clock=clock)
    await again.load_or_create()
    # Where all that had a version was dropped, they begin anew.
    assert again.read() == MemorySnapshot(version + 1 if archive else 1)
    assert "tea" not in again.get_context()
    for running in (fold, await load_fold(fresh, max_messages=10, max_tokens=1_000)):
        if running is fold:
            for entry in await fresh.read_entries(fold.version + 1):
                fold.apply(entry)
        assert (running.facts.facts, running.window.conversation()) == ({}, [])
        assert running.window.unconsolidated == 0
        assert replace(running.zone.snapshot, version=1) == MemorySnapshot(1)
    assert await load_fact_entries(fresh) == []
    assert (await verify_tape(store, "fake:1")).problems == []
    # What is learned from here on is all there is.
    await fresh.append(
        event(FACTS_EVENT, {"key": "l", "author": "x", "previous": 0, "ops": [ADDS_TEA]})
    )
    anew = await load_fold(fresh, max_messages=10, max_tokens=1_000)
    assert len(anew.facts.active()) == 1
    await store.close()
