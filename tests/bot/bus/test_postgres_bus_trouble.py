"""The bus in PostgreSQL under messages that kill their holders, a flood, and a server that crashes."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest
from postgres_fleet import DESK, HELD, HERE, Fleet, fleet_on, inbound
from waiting import until

from bot.bus import Address, Sender, SessionLost
from bot.bus.postgres import PostgresBus
from bot.bus.postgres.row_handler import (
    DEAD_LETTER_AFTER_DEATHS,
    DEAD_LETTER_NOTICE,
    GIVEN_UP_AFTER,
)
from bot.core.database.connections import Database
from bot.runtime.sessions.writer import GAVE_UP
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply
from testkit.postgres import PostgresServer

pytestmark = pytest.mark.slow


async def test_a_message_that_kills_its_holders_is_buried_and_its_chat_is_told(fleet):
    gateway = await fleet.process("gateway")
    port = gateway.bus.channel("fake")
    for number in range(3):
        await port.publish(inbound(f"m{number}"))
    deaths = 0
    done: list[str] = []
    while "m2" not in done:
        worker = await fleet.process(f"w{deaths}")
        inbox = await worker.bus.claim()
        while True:
            delivery = await inbox.receive()
            if delivery.inbound.id == "m1":
                deaths += 1
                await worker.stop()
                fleet.end_leases()
                break
            await delivery.ack()
            done.append(delivery.inbound.id)
            if delivery.inbound.id == "m2":
                break
    assert deaths == DEAD_LETTER_AFTER_DEATHS
    assert done == ["m0", "m2"]
    told = await port.receive()
    assert (told.address, told.text) == (HERE, DEAD_LETTER_NOTICE)
    assert (await gateway.bus.statistics())["pending"] == 0
    queue = fleet.rows("select tapebot.queue_of('fake:1')")[0][0]
    assert fleet.rows(f"select message is not null from pgmq.a_inbound_{queue}") == [(True,)]
    await gateway.bus.purge()
    assert fleet.rows(f"select message is not null from pgmq.a_inbound_{queue}") == [(False,)]


async def test_a_message_whose_holders_were_killed_is_given_up_with_a_button_to_try_again(
    fleet, tmp_path
):
    """No kill from outside closes a message: it is kept, and answered when its person asks for that."""
    gateway = await fleet.process("gateway")
    await gateway.bus.channel("fake").publish(inbound("m1", text="Which colour?"))
    for number in range(GIVEN_UP_AFTER):
        worker = await fleet.process(f"w{number}")
        assert not (await (await worker.bus.claim()).receive()).given_up
        await worker.stop()
        fleet.end_leases()
    heir = await fleet.process("heir")
    model = ScriptedModel([text_reply("Blue.")])
    async with session_host(tmp_path, model, over=lambda _: heir.bus) as host:
        channel = host.channel
        await channel.wait_until(lambda: channel.answers)
        [told] = channel.answers
        assert (told.text, [one.command for one in told.buttons]) == (GAVE_UP, ["/retry"])
        retry = await channel.send("/retry", message_id="m2", sender=Sender("7", "Ada"))
        assert await channel.wait_for_answer(retry) == "Blue."
        assert "Which colour?" in str(model.requests_for()[-1].messages)


async def test_messages_given_back_alive_are_never_buried(fleet):
    process = await fleet.process("a")
    await process.bus.channel("fake").publish(inbound("m1"))
    for _ in range(12):
        inbox = await process.bus.claim()
        assert (await inbox.receive()).inbound.id == "m1"
        inbox.release(failed=True)
    assert (await process.bus.statistics())["poison"] == 0


async def test_messages_whose_holders_lost_them_and_live_are_never_buried(fleet):
    """As where the database was away for longer than leases last."""
    gateway = await fleet.process("gateway")
    await gateway.bus.channel("fake").publish(inbound("m1"))
    holder = await fleet.process("a", lease=HELD)
    for _ in range(7):
        inbox = await holder.bus.claim()
        delivery = await inbox.receive()
        assert delivery.inbound.id == "m1"
        inbox._hold.lose()
        with pytest.raises(SessionLost):
            await delivery.ack()
        inbox.release()
        await until(lambda: fleet.rows(_ALIVE) == [(True,)])
        fleet.end_leases()
    assert (await holder.bus.statistics())["poison"] == 0
    assert (await gateway.bus.statistics())["pending"] == 1


_ALIVE = "select read_ct = coalesce((headers ->> 'returned')::int, 0) from tapebot.inbound"


async def test_whoever_gave_a_command_that_is_buried_is_told_where_they_are(fleet):
    gateway = await fleet.process("gateway")
    desk = gateway.bus.channel("web")
    await desk.publish(replace(inbound("m1", text="/memory"), answer_to=DESK))
    for number in range(DEAD_LETTER_AFTER_DEATHS):
        worker = await fleet.process(f"w{number}")
        assert (await (await worker.bus.claim()).receive()).inbound.id == "m1"
        await worker.stop()
        fleet.end_leases()
    last = await fleet.process("last")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(last.bus.claim)
        told = await desk.receive()
        tasks.cancel_scope.cancel()
    assert (told.address, told.session, told.reply_to) == (DESK, HERE.session, "m1")
    assert told.text == DEAD_LETTER_NOTICE


@pytest.mark.parametrize("each", [100, pytest.param(500, marks=pytest.mark.night)])
async def test_a_flooded_session_delays_no_other_and_stays_in_order(fleet, each):
    gateway, worker = await fleet.process("a", limit=10_000), await fleet.process("b")
    port = gateway.bus.channel("fake")
    async with anyio.create_task_group() as tasks:
        for start in range(4):

            async def flood(start: int = start) -> None:
                for number in range(start * each, start * each + each):
                    await port.publish(inbound(f"m{number}", Address("fake", "flood")))

            tasks.start_soon(flood)
    flooded = await worker.bus.claim()
    await flooded.receive()
    # While none of the flood is done with, each of the others is begun as it comes.
    for number in range(40):
        await port.publish(inbound("m", Address("fake", f"c{number}")))
        other = await worker.bus.claim()
        assert other.session == f"fake:c{number}"
        await other.receive()
    order = [int((await flooded.receive()).inbound.id[1:]) for _ in range(4 * each - 1)]
    for start in range(4):
        own = [one for one in order if one // each == start]
        assert own == sorted(own)


@pytest.mark.slow
async def test_a_server_that_crashes_in_the_middle_loses_nothing(tmp_path):
    server = PostgresServer()
    server.start()
    try:
        url = server.create()
        database = Database(url)
        await database.open()
        from bot.core.database.migrations import migrate

        await migrate(database)
        await database.close()
        async with fleet_on(url, tmp_path) as fleet:
            with anyio.fail_after(100):
                await _crashed(fleet, server)
    finally:
        server.close()


async def _crashed(fleet: Fleet, server: PostgresServer) -> None:
    gateway = await fleet.process("a", lease=5.0)
    workers = [await fleet.process(name, lease=5.0) for name in "bc"]
    got: dict[str, list[int]] = {}
    chats, each, midway = 8, 25, anyio.Event()

    async def publish(chat: int) -> None:
        for number in range(each):
            address = Address("fake", str(chat))
            assert not (
                await gateway.bus.channel("fake").publish(inbound(str(number), address))
            ).duplicate
            await anyio.sleep(0.05)

    async def serve(bus: PostgresBus) -> None:
        async with anyio.create_task_group() as tasks:
            while True:
                tasks.start_soon(work, await bus.claim())

    async def work(inbox) -> None:
        try:
            while True:
                delivery = await inbox.receive()
                seen = got.setdefault(inbox.session, [])
                number = int(delivery.inbound.id)
                if number not in seen:
                    assert number == len(seen)
                    seen.append(number)
                await delivery.ack()
                if sum(map(len, got.values())) >= chats * each // 4:
                    midway.set()
        except SessionLost:
            pass
        finally:
            inbox.release()

    async with anyio.create_task_group() as tasks:
        for one in workers:
            tasks.start_soon(serve, one.bus)
        async with anyio.create_task_group() as publishers:
            for chat in range(chats):
                publishers.start_soon(publish, chat)
            await midway.wait()
            await anyio.to_thread.run_sync(server.restart, "immediate")
        await gateway.bus.drain()
        tasks.cancel_scope.cancel()
    assert got == {f"fake:{chat}": list(range(each)) for chat in range(chats)}
