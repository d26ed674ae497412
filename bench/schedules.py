"""What waiting schedules cost: the start of the scheduler, its memory, and model calls of an idle program."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from time import perf_counter

from bench.report import Cell, Scale, Table, ms
from bot.agent.schedules.due_tape import DUE_EVENT, DUE_TAPE, open_due_tape
from bot.core.clock import format_time
from bot.tape.entries import TapeEntry, event
from bot.tape.stores.file import FileTapeStore
from bot.testing.host import session_host
from bot.testing.manual_clock import START_TIME, ManualClock
from bot.testing.scripted_model import ScriptedModel

_BATCH = 1_000
_HOUR = 3_600


async def measure(scale: Scale) -> list[Table]:
    """Start with many schedules, and let reminders come for a day."""
    waiting = await _starts(scale.work / "due", scale.pick(100_000, 2_000))
    hours = scale.pick(24, 3)
    calls, sent = await _idle(scale.work / "idle", hours)
    return [
        Table(
            "Start of the scheduler",
            ("read from", "schedules", "s", "earliest found in ms"),
            waiting,
        ),
        Table(
            f"An idle program with an hourly reminder, {hours} hours",
            ("", "reminders sent", "model calls"),
            [("one conversation", sent, calls)],
        ),
    ]


async def _starts(folder: Path, count: int) -> list[tuple[Cell, ...]]:
    store = FileTapeStore(folder, sync=False)
    await open_due_tape(store).create()
    for first in range(0, count, _BATCH):
        await store.append_many(DUE_TAPE, [_due(number) for number in range(first, first + _BATCH)])
    await store.close()
    rows: list[tuple[Cell, ...]] = []
    for what in ("entries", "a snapshot"):
        store = FileTapeStore(folder, sync=False)
        due = open_due_tape(store)
        began = perf_counter()
        await due.refresh()
        read = perf_counter()
        due.fold.take_due(START_TIME)
        due.fold.earliest()
        rows.append((what, len(due.fold), round(read - began, 2), ms(perf_counter() - read)))
        await due.write_snapshot_if_due()
        await store.close()
    return rows


def _due(number: int) -> TapeEntry:
    data = {
        "session": f"telegram:{number % 5_000}",
        "schedule": f"{number:012x}",
        "next": format_time(START_TIME + timedelta(seconds=number)),
        "at": 1,
    }
    return event(DUE_EVENT, data)


async def _idle(folder: Path, hours: int) -> tuple[int, int]:
    """Return the model calls and the reminders of some hours in which nobody writes."""
    model = ScriptedModel([])
    async with session_host(folder, model, schedules=True) as host:
        await host.channel.ask("/remind every hour drink some water")
        assert isinstance(host.clock, ManualClock)
        for _ in range(hours):
            before = len(host.channel.answers)
            host.clock.advance(_HOUR)
            await host.channel.wait_until(lambda seen=before: len(host.channel.answers) > seen)
        await host.wait_for_pending(0)
        sent = len([one for one in host.channel.answers if one.reply_to is None])
    return len(model.requests), sent
