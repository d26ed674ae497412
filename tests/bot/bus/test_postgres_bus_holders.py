"""Of the processes that share the bus in PostgreSQL one holds a session at a time, and another takes it over whole."""

from __future__ import annotations

import anyio
import pytest
from postgres_fleet import HELD, LEASE, LONG, Process, inbound
from waiting import until

from bot.bus import Address, ReleaseRequest, SessionBusy, SessionLost
from bot.bus.postgres import held_sessions
from bot.bus.postgres.held_sessions import HeldSessions
from bot.core.database.wakeups import POLL

pytestmark = pytest.mark.slow


async def test_two_gateways_on_one_chat_give_one_order_without_gap_or_double(fleet):
    first, second = await fleet.process("a"), await fleet.process("b")
    accepted: list[str] = []

    async def gateway(process: Process, start: int) -> None:
        for number in range(start, 60):
            if not (await process.bus.channel("fake").publish(inbound(f"m{number}"))).duplicate:
                accepted.append(f"m{number}")  # noqa: PERF401 (as it comes)

    got: list[str] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(gateway, first, 0)
        tasks.start_soon(gateway, second, 20)
        inbox = await second.bus.claim()
        while len(got) < 60:
            delivery = await inbox.receive()
            got.append(delivery.inbound.id)
            await delivery.ack()
    assert sorted(accepted) == sorted(got) == sorted(f"m{n}" for n in range(60))
    assert (await first.bus.statistics())["pending"] == 0
    # Each gateway's own messages stay in its order.
    early = [one for one in got if int(one[1:]) < 20]
    assert early == [f"m{n}" for n in range(20)]


async def test_one_of_two_processes_gets_a_session_and_the_other_none(fleet):
    first, second = await fleet.process("a", lease=HELD), await fleet.process("b", lease=HELD)
    await first.bus.channel("fake").publish(inbound("m1"))
    claimed: list[Process] = []

    async def claim(process: Process) -> None:
        await process.bus.claim()
        claimed.append(process)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(claim, first)
        tasks.start_soon(claim, second)
        await until(lambda: claimed)
        await claimed[0].outlive_lease()
        tasks.cancel_scope.cancel()
    assert len(claimed) == 1


async def test_a_holder_that_was_stopped_past_its_lease_can_neither_receive_nor_acknowledge(fleet):
    stopped, heir = await fleet.process("a", lease=LEASE), await fleet.process("b")
    port = heir.bus.channel("fake")
    await port.publish(inbound("m1"))
    await port.publish(inbound("m2"))
    inbox = await stopped.bus.claim()
    # Taken as it was claimed: it may be late by now.
    before = inbox._hold.next()
    await stopped.stop()
    taken = await heir.bus.claim()
    again = await taken.receive()
    assert (again.inbound.id, again.redelivered) == ("m1", True)
    with pytest.raises(SessionLost):
        await before.ack()
    with pytest.raises(SessionLost):
        await inbox.receive()
    assert inbox.receive_nowait() is None
    inbox.release()
    await again.ack()
    assert (await taken.receive()).inbound.id == "m2"
    assert (await heir.bus.statistics())["pending"] == 1


async def test_the_database_fences_an_acknowledgement_whatever_the_local_clock_says(fleet):
    stopped, heir = await fleet.process("a"), await fleet.process("b")
    await stopped.bus.channel("fake").publish(inbound("m1"))
    inbox = await stopped.bus.claim()
    before = await inbox.receive()
    await stopped.stop()
    fleet.end_leases()
    await heir.bus.claim()
    # As where its clock stood still with it.
    assert not inbox._hold.lost
    with pytest.raises(SessionLost):
        await before.ack()
    assert (await stopped.bus.statistics())["fenced"] == 1
    assert (await heir.bus.statistics())["pending"] == 1


async def test_a_session_that_idles_in_its_worker_stays_there_after_its_last_acknowledgement(fleet):
    first, second = await fleet.process("a", lease=HELD), await fleet.process("b")
    port = second.bus.channel("fake")
    await port.publish(inbound("m1"))
    inbox = await first.bus.claim()
    await (await inbox.receive()).ack()
    claimed: list[str] = []

    async def claim() -> None:
        claimed.append((await second.bus.claim()).session)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(claim)
        await first.outlive_lease()
        tasks.cancel_scope.cancel()
    assert claimed == []
    await port.publish(inbound("m2"))
    assert (await inbox.receive()).inbound.id == "m2"


async def test_what_a_kill_cut_off_after_the_last_acknowledgement_is_taken_up(fleet):
    killed, heir = await fleet.process("a"), await fleet.process("b")
    await killed.bus.channel("fake").publish(inbound("m1"))
    inbox = await killed.bus.claim()
    await (await inbox.receive()).ack()
    await killed.stop()
    fleet.end_leases()
    taken = await heir.bus.claim()
    assert taken.session == "fake:1"
    assert taken.receive_nowait() is None
    taken.release()
    # Nothing of it is left that anybody could be given.
    await fleet.until_empty()
    await heir.bus.channel("fake").publish(inbound("m", Address("fake", "2")))
    assert (await heir.bus.claim()).session == "fake:2"


async def test_a_process_that_ends_gives_its_sessions_back_at_once(fleet):
    ending, heir = await fleet.process("a"), await fleet.process("b")
    for chat in range(5):
        await ending.bus.channel("fake").publish(inbound("m", Address("fake", str(chat))))
    for _ in range(5):
        await (await ending.bus.claim()).receive()
    await ending.stop()
    await ending.bus.aclose()
    # Before any lease has ended.
    with anyio.fail_after(LONG / 2):
        sessions = {(await heir.bus.claim()).session for _ in range(5)}
    assert len(sessions) == 5


async def test_a_session_that_nobody_holds_is_kept_from_others(fleet):
    keeper, worker = await fleet.process("a", lease=HELD), await fleet.process("b")
    claimed = anyio.Event()

    async def claim() -> None:
        assert (await (await worker.bus.claim()).receive()).inbound.id == "m1"
        claimed.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(claim)
        async with keeper.bus.lock_session("fake:1"):
            await keeper.bus.channel("fake").publish(inbound("m1"))
            await keeper.outlive_lease()
            assert not claimed.is_set()
        with anyio.fail_after(30):
            await claimed.wait()


async def test_a_holder_elsewhere_is_asked_and_lets_go(fleet, monkeypatch):
    monkeypatch.setattr(held_sessions, "_RELEASE_SECONDS", LONG)
    keeper, worker = await fleet.process("a"), await fleet.process("b")
    await keeper.bus.channel("fake").publish(inbound("m1"))
    inbox = await worker.bus.claim()
    await (await inbox.receive()).ack()

    async def idle() -> None:
        assert isinstance(await inbox.receive(), ReleaseRequest)
        inbox.release()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(idle)
        async with keeper.bus.lock_session("fake:1"):
            assert (await worker.bus.statistics())["held"] == 0
    await fleet.until_empty()


async def test_a_holder_that_is_at_work_keeps_its_session(fleet):
    keeper, worker = await fleet.process("a"), await fleet.process("b")
    await keeper.bus.channel("fake").publish(inbound("m1"))
    inbox = await worker.bus.claim()
    delivery = await inbox.receive()
    with pytest.raises(SessionBusy, match=r"another process \(b\)"):
        async with keeper.bus.lock_session("fake:1"):
            pass
    await delivery.ack()
    async with worker.bus.lock_session("fake:1"):
        inbox.release()


async def test_sessions_are_given_out_no_further_than_a_process_may_hold(fleet):
    process = await fleet.process("a")
    process.bus._sessions._max_sessions = 2
    assert isinstance(process.bus._sessions, HeldSessions)
    for chat in range(3):
        await process.bus.channel("fake").publish(inbound("m", Address("fake", str(chat))))
    first, _ = await process.bus.claim(), await process.bus.claim()
    with anyio.move_on_after(POLL * 2) as nothing:
        await process.bus.claim()
    assert nothing.cancelled_caught
    first.release()
    with anyio.fail_after(30):
        await process.bus.claim()


async def test_who_holds_all_it_may_lets_the_quietest_go_for_another_that_waits(fleet):
    one = await fleet.process("one", sessions=2)
    port = one.bus.channel("fake")
    held = []
    for number in (1, 2):
        await port.publish(inbound("m", Address("fake", str(number))))
        inbox = await one.bus.claim()
        [delivery] = [await inbox.receive()]
        held.append((inbox, delivery))
    (quiet, first), (busy, _) = held
    await first.ack()
    await port.publish(inbound("m", Address("fake", "3")))
    claimed = []

    async def claim():
        claimed.append(await one.bus.claim())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(claim)
        assert isinstance(await quiet.receive(), ReleaseRequest)
        assert busy.receive_nowait() is None
        quiet.release()
        await until(lambda: claimed)
    assert claimed[0].session == "fake:3"
