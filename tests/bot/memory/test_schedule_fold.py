"""Pointers restore the same schedules as the whole tape, whatever happened."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

from hypothesis import given
from hypothesis import strategies as st

from bot.core.clock import format_time
from bot.core.recurrence import Every, Once
from bot.memory.records.schedules import (
    QUIET_HOURS_SET,
    SCHEDULE_FIRED,
    TIMEZONE_SET,
    Author,
    QuietHours,
    Schedule,
    ScheduleFold,
    find_zone,
    pointed_entries,
)
from bot.memory.records.tombstones import tombstone
from bot.tape.entries import SESSION_FORK, SESSION_START, TapeEntry, anchor, event

START = datetime(2026, 2, 10, 10, tzinfo=UTC)


def schedule(number: int) -> Schedule:
    moment = START + timedelta(hours=number)
    rule = Once(moment) if number % 2 else Every(1, "days", moment.replace(tzinfo=None))
    author = Author("7", "Ada")
    kind = "task" if number % 3 == 0 else "reminder"
    return Schedule(
        f"s{number}", number, kind, f"text {number}", rule, "Europe/Berlin", moment, author, True, START
    )  # fmt: skip


def fired(number: int, status: str) -> TapeEntry:
    moment = None if number % 2 and status != "held" else format_time(START + timedelta(days=2))
    data = {
        "schedule": f"s{number}",
        "instant": format_time(START),
        "status": status,
        "next": moment,
    }
    return event(SCHEDULE_FIRED, data)


def step(number: int, what: str) -> TapeEntry:
    one = schedule(number)
    return {
        "set": one.definition,
        "pause": lambda: replace(one, paused=True, next=None).change(),
        "change": lambda: replace(one, text="another").change(),
        "cancel": lambda: one.end("cancelled"),
        "finish": lambda: one.end("finished"),
        "fire": lambda: fired(number, "sent"),
        "hold": lambda: fired(number, "held"),
        "zone": lambda: event(TIMEZONE_SET, {"zone": "Asia/Kolkata"}),
        "quiet": lambda: event(QUIET_HOURS_SET, {"from": "22:00", "to": "07:00"}),
        "loud": lambda: event(QUIET_HOURS_SET),
        "reset": lambda: anchor(SESSION_START, {"reset": True}),
        "fork": lambda: anchor(SESSION_FORK),
    }[what]()


STEPS = st.tuples(
    st.integers(1, 30),
    st.sampled_from(
        "set set set pause change cancel finish fire hold zone quiet loud reset fork".split()
    ),
)


def folded(entries: list[TapeEntry]) -> ScheduleFold:
    fold = ScheduleFold()
    for entry in entries:
        fold.apply(entry)
    return fold


@given(st.lists(STEPS, max_size=60), st.integers(0, 60))
def test_pointers_anywhere_give_the_same_state_as_the_whole_tape(steps, at):
    entries = [replace(step(*one), id=place) for place, one in enumerate(steps, 1)]
    early = folded(entries[:at])
    pointers = json.loads(json.dumps(early.pointers()))
    found = {one.id: one for one in entries if one.id in set(pointed_entries(pointers))}
    restored = ScheduleFold.restored(pointers, found)
    for entry in entries[at:]:
        restored.apply(entry)
    assert restored == folded(entries)


def test_an_erased_definition_is_no_schedule_and_breaks_no_pointers():
    entries = [replace(step(n, "set"), id=n) for n in (1, 2)]
    pointers = folded(entries).pointers()
    found = {1: tombstone(entries[0]), 2: entries[1]}
    assert [one.number for one in ScheduleFold.restored(pointers, found)] == [2]
    assert [one.number for one in folded(list(found.values()))] == [2]


def test_quiet_hours_over_midnight_end_at_their_wall_time_whatever_the_clocks_do():
    quiet, zone = QuietHours(time(22), time(7)), find_zone("Europe/Berlin")
    assert zone is not None
    night = datetime(2026, 3, 28, 22, 30, tzinfo=UTC)
    assert quiet.contains(night, zone)
    assert quiet.end_after(night, zone) == datetime(2026, 3, 29, 5, 0, tzinfo=UTC)
    assert not quiet.contains(datetime(2026, 3, 29, 5, 0, tzinfo=UTC), zone)
