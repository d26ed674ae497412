"""The memory zone: what is written is what is read, whole, versioned, pruned, and gone after a reset."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sampling import examples

from bot.core.errors import MemoryRefused
from bot.memory.session.state.zone import MemoryZone
from bot.memory.session.state.zone_snapshot import (
    REMOVED_PREFIX,
    DailyNote,
    MemorySnapshot,
)
from bot.tape.entries import message
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import ManualClock

TAPE, KEPT_DAYS = "fake:1", 3


async def zone_on(store, clock: ManualClock, retention_days: int = KEPT_DAYS) -> MemoryZone:
    tape = TapeService(store, TAPE)
    await tape.ensure_bootstrap_anchor()
    zone = MemoryZone(tape, clock=clock, retention_days=retention_days)
    await zone.load_or_create()
    return zone


class ZoneModel(RuleBasedStateMachine):
    """A zone against a version number, a text and a dictionary."""

    TEXT = st.sampled_from(["a", "- b\n- c", "你好 \ud800", "</memory>", "x" * 300, "# h"])

    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock()
        self.store = InMemoryTapeStore(clock=self.clock)
        self.zone = anyio.run(zone_on, self.store, self.clock)
        self.version, self.text, self.notes = 1, "", dict[str, str]()

    def day(self, back: int) -> str:
        return (self.clock.now().date() - timedelta(days=back)).isoformat()

    def written(self) -> None:
        self.version += 1
        self.notes = {day: note for day, note in self.notes.items() if day >= self.day(KEPT_DAYS)}

    @rule(text=TEXT)
    def save(self, text: str) -> None:
        anyio.run(self.zone.save_long_term, text)
        self.text = text
        self.written()

    @rule(text=TEXT, back=st.integers(0, KEPT_DAYS))
    def note(self, text: str, back: int) -> None:
        day = self.day(back)
        anyio.run(self.zone.append_daily, text, day)
        self.notes[day] = f"{self.notes[day]}\n{text}" if day in self.notes else text
        self.written()

    @rule(back=st.integers(KEPT_DAYS + 1, 40))
    def note_too_old(self, back: int) -> None:
        with pytest.raises(MemoryRefused, match="not kept"):
            anyio.run(self.zone.append_daily, "old", self.day(back))

    @rule(content=st.sampled_from(["x" * 4_001, "é" * 2_001]))
    def save_too_much(self, content: str) -> None:
        with pytest.raises(MemoryRefused, match="at most 4,000 bytes"):
            anyio.run(self.zone.save_long_term, content)

    @rule(whole=st.booleans())
    def clear(self, whole: bool) -> None:
        anyio.run(self.zone.reset if whole else self.zone.clear)
        self.text, self.notes = "", {}
        self.version += 1

    @rule(days=st.integers(1, 4))
    def wait(self, days: int) -> None:
        self.clock.advance(days * 86_400)

    @rule()
    def prune(self) -> None:
        old = sum(day < self.day(KEPT_DAYS) for day in self.notes)
        assert anyio.run(self.zone.prune) == old
        if old:
            self.written()

    @rule()
    def reopen(self) -> None:
        self.zone = anyio.run(zone_on, self.store, self.clock)
        if any(day < self.day(KEPT_DAYS) for day in self.notes):
            self.written()

    @invariant()
    def reads_back(self) -> None:
        snapshot = self.zone.read()
        assert (snapshot.version, snapshot.long_term) == (self.version, self.text.strip())
        assert snapshot.dailies == tuple(DailyNote(d, self.notes[d]) for d in sorted(self.notes))
        assert self.zone.get_context().count("</memory>") == 1


TestZoneAgainstItsModel = ZoneModel.TestCase
TestZoneAgainstItsModel.settings = settings(max_examples=examples(24), stateful_step_count=20)


async def test_a_zone_without_its_seal_does_not_exist(tmp_path):
    clock = ManualClock()
    store = FileTapeStore(tmp_path, sync=False, clock=clock)
    zone = await zone_on(store, clock)
    await zone.save_long_term("- first")
    await zone.save_long_term("- second")
    await store.close()
    [path] = tmp_path.glob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    store = FileTapeStore(tmp_path, sync=False, clock=clock)
    assert (await zone_on(store, clock)).read().long_term == "- first"
    await store.close()


async def test_writes_at_the_same_time_are_all_kept():
    zone = await zone_on(InMemoryTapeStore(), ManualClock())
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(zone.append_daily, f"note {number}")
    [note] = zone.read().dailies
    assert sorted(note.content.splitlines()) == sorted(f"note {n}" for n in range(20))


async def test_the_block_shows_today_apart_from_the_last_seven_days_and_nothing_older():
    zone = await zone_on(InMemoryTapeStore(), ManualClock(), 30)
    for days in (0, 1, 7, 8, 29):
        day = date.fromordinal(zone.today().toordinal() - days)
        await zone.append_daily(f"{days} days ago", date=str(day))
    todays, _, recent = zone.get_context().partition("## Recent Notes")
    assert "## Today's Notes\n0 days ago" in todays
    told = [f"{days} days ago" in recent for days in (0, 1, 7, 8, 29)]
    assert told == [False, True, True, False, False]


@pytest.mark.parametrize("archive", [False, True])
async def test_after_a_reset_a_zone_is_empty_and_learns_anew(archive):
    store, clock = InMemoryTapeStore(), ManualClock()
    zone = await zone_on(store, clock)
    tape = TapeService(store, TAPE)
    await tape.append(message("user", "I like tea"))
    await zone.save_long_term("- Ada likes tea.")
    await zone.append_daily("- tea with Eva")
    await tape.reset(archive=archive)
    again = await zone_on(store, clock)
    assert replace(again.read(), version=1) == MemorySnapshot(1)
    assert "tea" not in again.get_context()
    await again.save_long_term("- Ada likes coffee.")
    assert (await zone_on(store, clock)).read().long_term == "- Ada likes coffee."


FACTS = st.dictionaries(st.integers(1, 12), st.sampled_from("tea cats bread rain".split()))


@given(FACTS, FACTS)
def test_what_is_new_and_what_is_gone_is_told_and_not_what_stays(before, after):
    def snapshot(facts):
        lines = "\n".join(f"- Likes {text}" for text in facts.values())
        return replace(MemorySnapshot(1, lines), facts=tuple((n, "2026-02-09") for n in facts))

    told = snapshot(after).changes_since(snapshot(before))
    if told is None:
        return
    new, _, gone = told.partition(REMOVED_PREFIX)
    for number, text in after.items():
        assert (f"[{number}] Likes {text} " in new) == (before.get(number) != text)
    assert all(f"[{number}]" in gone for number in before.keys() - after.keys())
