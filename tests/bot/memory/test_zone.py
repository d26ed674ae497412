"""The memory zone: what is written is what is read, whole, versioned, pruned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import anyio
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sampling import examples

from bot.core.errors import MemoryRefused
from bot.memory.gate.memory_validation import is_placeholder
from bot.memory.session.state.zone import MemoryZone
from bot.memory.session.state.zone_snapshot import (
    DailyNote,
    MemorySnapshot,
    ZoneFold,
    zone_entries,
)
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import ManualClock

TAPE = "fake:1"
KEPT_DAYS = 3


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

    def today(self) -> date:
        return self.clock.now().date()

    def written(self) -> None:
        oldest = (self.today() - timedelta(days=KEPT_DAYS)).isoformat()
        self.version += 1
        self.notes = {day: note for day, note in self.notes.items() if day >= oldest}

    @rule(text=TEXT)
    def save(self, text: str) -> None:
        anyio.run(self.zone.save_long_term, text)
        self.text = text
        self.written()

    @rule(text=TEXT, back=st.integers(0, KEPT_DAYS))
    def note(self, text: str, back: int) -> None:
        day = (self.today() - timedelta(days=back)).isoformat()
        anyio.run(self.zone.append_daily, text, day)
        self.notes[day] = f"{self.notes[day]}\n{text}" if day in self.notes else text
        self.written()

    @rule(back=st.integers(KEPT_DAYS + 1, 40))
    def note_too_old(self, back: int) -> None:
        with pytest.raises(MemoryRefused, match="not kept"):
            anyio.run(
                self.zone.append_daily, "old", (self.today() - timedelta(days=back)).isoformat()
            )

    @rule()
    def clear(self) -> None:
        anyio.run(self.zone.clear)
        self.text, self.notes = "", {}
        self.version += 1

    @rule(days=st.integers(1, 4))
    def wait(self, days: int) -> None:
        self.clock.advance(days * 86_400)

    @rule()
    def prune(self) -> None:
        before = dict(self.notes)
        dropped = anyio.run(self.zone.prune)
        oldest = (self.today() - timedelta(days=KEPT_DAYS)).isoformat()
        assert dropped == sum(day < oldest for day in before)
        if dropped:
            self.written()

    @rule()
    def reopen(self) -> None:
        self.zone = anyio.run(zone_on, self.store, self.clock)
        oldest = (self.today() - timedelta(days=KEPT_DAYS)).isoformat()
        if any(day < oldest for day in self.notes):
            self.written()

    @invariant()
    def reads_back(self) -> None:
        snapshot = self.zone.read()
        assert (snapshot.version, snapshot.long_term) == (self.version, self.text.strip())
        assert snapshot.dailies == tuple(DailyNote(d, self.notes[d]) for d in sorted(self.notes))
        assert self.zone.get_context().count("</memory>") == 1


TestZoneAgainstItsModel = ZoneModel.TestCase
TestZoneAgainstItsModel.settings = settings(max_examples=examples(40), stateful_step_count=20)


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
    clock, store = ManualClock(), InMemoryTapeStore()
    zone = await zone_on(store, clock)

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(zone.append_daily, f"note {number}")
    [note] = zone.read().dailies
    assert sorted(note.content.splitlines()) == [f"note {n}" for n in range(10)]
    assert zone.read().version == 11


async def test_what_goes_with_a_change_is_written_with_it_or_not_at_all():
    store = InMemoryTapeStore()
    zone = await zone_on(store, ManualClock())
    before = await store.version(TAPE)

    def refuse(_):
        raise MemoryRefused("no")

    def compose(_, zone_part: list[TapeEntry], __) -> Sequence[TapeEntry]:
        return zone_part

    with pytest.raises(MemoryRefused):
        await zone.edit(refuse, compose)
    assert await store.version(TAPE) == before


async def test_daily_notes_do_not_grow_for_ever():
    """A year of notes: each write holds at most the retention's days."""
    clock, store = ManualClock(), InMemoryTapeStore()
    zone = await zone_on(store, clock)
    sizes = []
    for _ in range(365):
        clock.advance(86_400)
        before = await store.version(TAPE)
        await zone.append_daily("a note")
        sizes.append(await store.version(TAPE) - before)
    assert max(sizes) == KEPT_DAYS + 1 + 2
    assert len(zone.read().dailies) == KEPT_DAYS + 1


@pytest.mark.parametrize(
    "text", ["(nothing)", "None", "N/A", "- nothing to save", "no changes", "Nothing new.", "null"]
)
def test_a_word_for_nothing_is_not_memory(text):
    assert is_placeholder(text)


async def test_long_term_memory_that_is_too_long_is_refused_whole_and_says_why():
    clock, store = ManualClock(), InMemoryTapeStore()
    zone = await zone_on(store, clock)
    await zone.save_long_term("- first")
    for content in ("x" * 4_001, "é" * 2_001, "- line\n" * 3_000):
        with pytest.raises(MemoryRefused, match="at most 4,000 bytes"):
            await zone.save_long_term(content)
    assert zone.read().long_term == "- first"
    await zone.save_long_term("é" * 2_000)
    assert zone.read().long_term == "é" * 2_000


def test_of_zones_the_highest_version_counts_and_of_equal_ones_the_last():
    fold = ZoneFold()
    for version, text in ((3, "three"), (2, "two"), (3, "three again")):
        zone = zone_entries(MemorySnapshot(version, text), "2026-02-10T09:00:00+00:00")
        for number, entry in enumerate(zone, start=1):
            fold.apply(replace(entry, id=number))
        assert fold.snapshot.version == 3
        assert fold.snapshot.long_term != "two"
    assert fold.snapshot.long_term == "three again"
