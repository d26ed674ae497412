"""Of the processes that share the bus in PostgreSQL one holds a session at a time, and another takes it over whole."""

from __future__ import annotations

import pytest
from postgres_fleet import inbound

from bot.bus import SessionBusy, SessionLost

pytestmark = pytest.mark.slow


async def test_a_holder_that_was_stopped_past_its_lease_can_neither_receive_nor_acknowledge(fleet):
    stopped, heir = await fleet.process("a"), await fleet.process("b")
    port = heir.bus.channel("fake")
    await port.publish(inbound("m1"))
    await port.publish(inbound("m2"))
    inbox = await stopped.bus.claim()
    before = await inbox.receive()
    await stopped.stop()
    fleet.end_leases()
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
