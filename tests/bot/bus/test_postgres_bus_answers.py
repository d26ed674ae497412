"""The bus in PostgreSQL brings answers, their files and their reports to the process that they are for."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest
from postgres_fleet import DESK, HERE, inbound

from bot.bus import Address, Answer, DeliveryReport, OutgoingFile
from bot.bus.postgres import outbound
from bot.core.database.wakeups import POLL

pytestmark = pytest.mark.slow


async def test_an_answer_taken_by_a_gateway_that_died_is_given_to_the_next_holder_of_its_lease(
    fleet,
):
    worker = await fleet.process("worker")
    old, new = await fleet.process("a"), await fleet.process("b")
    await worker.bus.send(Answer(HERE, "a1", "text"))

    def lease() -> int:
        fleet.rows("select tapebot.lease_give('channel/fake', epoch) from tapebot.lease")
        return fleet.rows("select tapebot.lease_take('channel/fake', 'x', 60)")[0][0]

    before = old.bus.channel("fake", epoch=lease())
    assert (await before.receive()).id == "a1"
    after = new.bus.channel("fake", epoch=lease())
    assert (await after.receive()).id == "a1"
    await worker.bus.send(Answer(HERE, "a2", "text"))
    with anyio.move_on_after(POLL * 3) as nothing:
        await before.receive()
    assert nothing.cancelled_caught
    assert (await after.receive()).id == "a2"
    for answer in ("a1", "a2"):
        await after.report(DeliveryReport("fake:1", answer))
    assert (await worker.bus.statistics())["undelivered_answers"] == 0


async def test_an_answer_goes_to_the_shard_that_heard_of_its_chat(fleet):
    process = await fleet.process("a")
    ports = [process.bus.channel("fake", shard=one, shards=3) for one in range(3)]
    await ports[2].publish(inbound("m1"))
    await process.bus.send(Answer(HERE, "a1", "text"))
    await process.bus.send(Answer(Address("fake", "2"), "a2", "text"))
    assert (await ports[2].receive()).id == "a1"
    assert (await ports[0].receive()).id == "a2"
    # Nothing for the third comes before what is its own.
    await ports[1].publish(inbound("m3", Address("fake", "3")))
    await process.bus.send(Answer(Address("fake", "3"), "a3", "text"))
    assert (await ports[1].receive()).id == "a3"


async def test_a_command_from_elsewhere_does_not_change_where_a_chats_answers_go(fleet):
    """The desk is in one process; the chat is still heard of by the shard that it was heard of before."""
    process = await fleet.process("a")
    ports = [process.bus.channel("fake", shard=one, shards=3) for one in range(3)]
    desk = process.bus.channel("web")
    await ports[2].publish(inbound("m1"))
    await desk.publish(replace(inbound("m2", text="/memory"), answer_to=DESK))
    await process.bus.send(Answer(DESK, "a1", "for the desk", report_to=HERE.session))
    await process.bus.send(Answer(HERE, "a2", "for the chat"))
    assert (await ports[2].receive()).id == "a2"
    assert (await desk.receive()).id == "a1"


async def test_a_file_goes_with_its_answer_to_a_gateway_that_has_none_of_the_workers_files(
    fleet, tmp_path
):
    worker, gateway = await fleet.process("worker"), await fleet.process("gateway")
    made = tmp_path / "made.bin"
    made.write_bytes(b"\0\xff words")
    files = (OutgoingFile("made", made), OutgoingFile("gone", tmp_path / "gone.txt"))
    await worker.bus.send(Answer(HERE, "a1", "text", files=files))
    made.unlink()
    port = gateway.bus.channel("fake")
    found, gone = (await port.receive()).files
    assert (found.name, found.path.read_bytes()) == ("made", b"\0\xff words")
    assert found.path.stat().st_mode & 0o777 == 0o600
    assert (gone.name, gone.path.exists()) == ("gone", False)
    await port.report(DeliveryReport("fake:1", "a1"))
    assert not found.path.exists()
    assert fleet.rows("select count(*) from tapebot.outfile") == [(0,)]


async def test_a_file_on_the_site_can_be_fetched_for_a_while_after_its_answer_was_shown(
    fleet, tmp_path, monkeypatch
):
    worker = await fleet.process("worker")
    made, place = tmp_path / "made.bin", Address("web", "local")
    for within, stays in ((outbound.FETCHED_WITHIN, True), (0.0, False)):
        monkeypatch.setattr(outbound, "FETCHED_WITHIN", within)
        made.write_bytes(str(within).encode())
        answer = Answer(place, f"a{within}", "text", files=(OutgoingFile("made", made),))
        await worker.bus.send(answer)
        port = (await fleet.process(f"gateway-{stays}")).bus.channel("web")
        (found,) = (await port.receive()).files
        await port.report(DeliveryReport(place.session, answer.id))
        assert found.path.exists() is stays


async def test_a_report_survives_the_holder_that_did_not_come_to_it(fleet):
    killed, heir = await fleet.process("a"), await fleet.process("b")
    report = DeliveryReport("fake:1", "a1", platform_ids=("5",), final=True)
    await killed.bus.channel("fake").report(report)
    inbox = await killed.bus.claim()
    assert await inbox.receive() == report
    await killed.stop()
    fleet.end_leases()
    assert await (await heir.bus.claim()).receive() == report
