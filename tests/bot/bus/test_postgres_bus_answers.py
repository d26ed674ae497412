"""Where PostgreSQL's answer is lost or two ask at once, no answer of the bus is lost or shown twice."""

from __future__ import annotations

import anyio
import psycopg
import pytest
from databases import WAITING, server
from postgres_fleet import HERE, inbound
from waiting import until

from bot.bus import Address, Answer, DeliveryReport, PartialAnswer
from testkit.wire_cutter import WireCutter

pytestmark = pytest.mark.slow


async def waits(url: str, count: int) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:

        async def so_many() -> bool:
            return len(await (await connection.execute(WAITING)).fetchall()) >= count

        await until(so_many)


async def test_an_answer_that_was_given_and_did_not_come_to_its_gateway_is_given_again(fleet):
    worker = await fleet.process("worker")
    direct = fleet.url
    async with WireCutter(server().port) as wire:
        fleet.url = direct.replace(f":{server().port}/", f":{wire.port}/")
        gateway = await fleet.process("gateway")
        fleet.url = direct
        port, got = gateway.bus.channel("fake"), []

        async def receive() -> None:
            got.append(await port.receive())

        await worker.bus.send(Answer(HERE, "a1", "once"))
        async with (
            anyio.create_task_group() as tasks,
            await psycopg.AsyncConnection.connect(direct) as other,
        ):
            await other.execute("lock table tapebot.live in share mode")
            tasks.start_soon(receive)
            await waits(direct, 1)
            await wire.cut()
            await other.rollback()
            # What was asked for over the wire that was cut comes to its end.
            await anyio.sleep(0.5)
            await wire.heal()
        assert [one.id for one in got] == ["a1"]
        await worker.bus.send(Answer(HERE, "a2", "next"))
        assert (await port.receive()).id == "a2"
        await gateway.stop()


async def test_an_answer_that_is_sent_again_while_its_report_is_written_is_not_shown_again(fleet):
    worker, gateway = await fleet.process("worker"), await fleet.process("gateway")
    port = gateway.bus.channel("fake")
    answer = Answer(HERE, "a1", "once")
    await worker.bus.send(answer)
    assert await port.receive() == answer
    async with (
        anyio.create_task_group() as tasks,
        await psycopg.AsyncConnection.connect(fleet.url) as other,
    ):
        await other.execute("select tapebot.report(%s, 'a1', true, 'a report')", [HERE.session])
        tasks.start_soon(worker.bus.send, answer)
        await waits(fleet.url, 1)
        await other.commit()
    assert fleet.rows("select answer from tapebot.outbox") == []


async def test_an_answer_does_not_wait_for_who_writes_what_a_model_says_elsewhere(fleet):
    worker, gateway = await fleet.process("worker"), await fleet.process("gateway")
    for chat in ("1", "2"):
        await worker.bus.send(PartialAnswer(Address("fake", chat), f"s{chat}", "a"))
    await until(lambda: fleet.rows("select count(*) from tapebot.live") == [(2,)])
    show = (
        "select tapebot.show(%s, array[slot], '{fake}', '{b}') from tapebot.live where session = %s"
    )
    async with await psycopg.AsyncConnection.connect(fleet.url) as other:
        await other.execute(show, [["fake:2"], "fake:2"])
        await worker.bus.send(Answer(HERE, "a1", "done"))
        with anyio.fail_after(5):
            assert isinstance(await gateway.bus.channel("fake").receive(), PartialAnswer)
            assert (await gateway.bus.channel("fake").receive()).text == "done"
        # It writes the other one, too, and both come to an end.
        await other.execute(show, [["fake:1"], "fake:1"])


async def test_no_sample_of_the_planner_keeps_words_that_passed_the_bus(fleet):
    process = await fleet.process("both")
    port = process.bus.channel("fake")
    for number in range(20):
        await port.publish(inbound(f"m{number}", text=f"xylophone {number}"))
        await process.bus.send(Answer(HERE, f"a{number}", f"bassoon {number}"))
    with psycopg.connect(fleet.url, autocommit=True) as connection:
        connection.execute("analyze")
    for _ in range(20):
        answer = await port.receive()
        await port.report(DeliveryReport(HERE.session, answer.id, platform_ids=("5",)))
    inbox = await process.bus.claim()
    for _ in range(20):
        delivery = await inbox.receive()
        while not hasattr(delivery, "ack"):
            delivery = await inbox.receive()
        await delivery.ack()
    await process.bus.purge()
    kept = str(fleet.rows("select * from pg_stats where schemaname = 'tapebot'"))
    assert [word for word in ("xylophone", "bassoon") if word in kept] == []
