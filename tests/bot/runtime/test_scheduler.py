"""The scheduler publishes what is due, each once, without opening a conversation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import anyio
import pytest
from waiting import until

from bot.agent.schedules.due_tape import DUE_TAPE, DueFold, occurrence_id, write_due
from bot.bus import Inbound
from bot.bus.local import LocalBus
from bot.memory.session.scope import workspace_tape
from bot.runtime.app.scheduler import Scheduler
from bot.tape.entries import event
from bot.tape.stores.file import FileTapeStore
from bot.testing.manual_clock import START_TIME, ManualClock


class Rig:
    """A store, a bus with one place per session, and a scheduler."""

    def __init__(self, folder, clock: ManualClock, limit: int = 100) -> None:
        self.clock = clock
        self.store = FileTapeStore(folder / "tapes", sync=False, clock=clock)
        self.bus = LocalBus(folder / "bus", max_queued_messages=limit, sync=False, clock=clock)
        self.scheduler = Scheduler(self.store, self.bus, clock)
        self.published: list[Inbound] = []

    async def take(self) -> Inbound:
        """Return the next occurrence that the bus delivers, and acknowledge it."""
        inbox = await self.bus.claim()
        received = await inbox.receive()
        await received.ack()
        inbox.release()
        self.published.append(received.inbound)
        return received.inbound


@asynccontextmanager
async def running(folder, clock: ManualClock | None = None, limit: int = 100) -> AsyncIterator[Rig]:
    rig = Rig(folder, clock or ManualClock(), limit)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rig.scheduler.run)
        await rig.clock.wait_for_sleepers()
        with anyio.fail_after(60):
            yield rig
        tasks.cancel_scope.cancel()
    await rig.bus.aclose()
    await rig.store.close()


def after(seconds: float) -> datetime:
    return START_TIME + timedelta(seconds=seconds)


async def test_an_occurrence_is_published_when_it_is_due_and_not_before(tmp_path):
    async with running(tmp_path) as rig:
        await write_due(rig.store, "fake:1", "s", after(600), at=3)
        rig.clock.advance(599)
        await rig.clock.wait_for_sleepers()
        assert (await rig.bus.statistics())["pending"] == 0
        rig.clock.advance(1)
        taken = await rig.take()
        assert taken.id == occurrence_id("s", after(600))
        assert taken.session == "fake:1"
        assert taken.cause.kind == "schedule"
        assert await rig.store.list_tapes() == [DUE_TAPE]


async def test_two_schedulers_and_a_restart_publish_an_occurrence_once(tmp_path):
    clock = ManualClock()
    async with running(tmp_path, clock) as rig:
        await write_due(rig.store, "fake:1", "s", after(60), at=3)
        other = Scheduler(rig.store, rig.bus, clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(other.run)
            await clock.wait_for_sleepers(2)
            clock.advance(60)
            await rig.take()
            tasks.cancel_scope.cancel()
    async with running(tmp_path, clock) as rig:
        assert (await rig.bus.statistics())["pending"] == 0


async def test_a_full_session_gets_its_occurrence_later(tmp_path):
    async with running(tmp_path, limit=1) as rig:
        for name in ("a", "b"):
            await write_due(rig.store, "fake:1", name, after(60), at=3)
        rig.clock.advance(60)
        first = await rig.take()
        rig.clock.advance(5)
        second = await rig.take()
        assert {first.id, second.id} == {occurrence_id(one, after(60)) for one in ("a", "b")}


async def test_a_clock_that_is_set_forward_is_noticed_within_half_a_minute(tmp_path):
    class SetClock(ManualClock):
        ahead = timedelta()

        def now(self) -> datetime:
            return super().now() + self.ahead

    clock = SetClock()
    async with running(tmp_path, clock) as rig:
        await write_due(rig.store, "fake:1", "s", after(7_200), at=3)
        clock.ahead = timedelta(hours=3)
        clock.advance(30)
        assert (await rig.take()).id == occurrence_id("s", after(7_200))


async def test_a_schedule_that_moves_is_due_at_its_new_instant_only(tmp_path):
    async with running(tmp_path) as rig:
        await write_due(rig.store, "fake:1", "s", after(10), at=3)
        await write_due(rig.store, "fake:1", "s", after(20), at=9)
        # A process that was stopped for long writes what it knew.
        await write_due(rig.store, "fake:1", "s", after(5), at=5)
        await until(lambda: rig.clock.remaining_sleeps == [20.0])
        rig.clock.advance(15)
        rig.clock.advance(5)
        assert (await rig.take()).id == occurrence_id("s", after(20))


async def test_a_restart_reads_no_more_than_the_snapshot_and_what_came_after_it(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(workspace_tape, "_SNAPSHOT_EVERY", 20)
    clock = ManualClock()
    async with running(tmp_path, clock) as rig:
        for number in range(50):
            await write_due(rig.store, f"fake:{number}", "s", after(600 + number), at=3)

        async def snapshots() -> list[int]:
            entries = await rig.store.read(DUE_TAPE)
            return [one.id for one in entries if one.name == workspace_tape.SNAPSHOT_EVENT]

        assert await until(snapshots)
    async with running(tmp_path, clock) as rig:
        clock.advance(600)
        assert (await rig.take()).session == "fake:0"


def due_event(session: str, schedule: str, moment: str | None, at: int):
    data = {"session": session, "schedule": schedule, "next": moment, "at": at}
    return event("schedule.due", data)


@pytest.mark.parametrize(
    "data", [{}, {"session": 1, "schedule": "s", "next": None, "at": 1}, {"session": "a"}]
)
def test_a_malformed_entry_changes_nothing(data):
    fold = DueFold()
    fold.apply(due_event("fake:1", "s", "2026-02-10T10:00:00+00:00", 1))
    fold.apply(event("schedule.due", data))
    assert len(fold) == 1


def test_a_hundred_thousand_waiting_schedules_are_one_queue():
    fold = DueFold()
    base = START_TIME
    for number in range(100_000):
        moment = (base + timedelta(seconds=number)).isoformat()
        fold.apply(due_event(f"fake:{number % 1000}", f"s{number}", moment, 1))
    assert fold.earliest() == base
    again = DueFold()
    again.restore(fold.snapshot())
    assert again.earliest() == base
    taken = again.take_due(base + timedelta(seconds=9))
    assert [key[1] for key, _ in taken] == [f"s{n}" for n in range(10)]
    assert again.earliest() == base + timedelta(seconds=10)


async def test_a_thousand_that_are_due_at_once_are_all_published(tmp_path):
    async with running(tmp_path) as rig:
        for number in range(1_000):
            await write_due(rig.store, f"fake:{number}", "s", after(60), at=3)
        rig.clock.advance(60)
        sessions = {(await rig.take()).session for _ in range(1_000)}
        assert len(sessions) == 1_000
