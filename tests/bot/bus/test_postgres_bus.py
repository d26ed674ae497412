"""What the bus in PostgreSQL promises where several processes share it: here, two buses on one database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
import psycopg
import pytest
from databases import drop, fresh_database
from waiting import until

from bot.bus import (
    Address,
    Answer,
    DeliveryReport,
    Inbound,
    OutgoingFile,
    ReleaseRequest,
    Sender,
    SessionBusy,
    SessionLost,
)
from bot.bus.postgres import PostgresBus, held_sessions, outbound
from bot.bus.postgres.held_sessions import HeldSessions
from bot.bus.postgres.row_handler import (
    DEAD_LETTER_AFTER_DEATHS,
    DEAD_LETTER_NOTICE,
    GIVEN_UP_AFTER,
)
from bot.core.database.connections import Database
from bot.core.database.wakeups import POLL, Wakeups
from bot.runtime.sessions.writer import GAVE_UP
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply
from testkit.postgres import PostgresServer

pytestmark = pytest.mark.slow

HERE = Address("fake", "1")
DESK = Address("web", "desk.1")
SENT = datetime(2026, 2, 10, 10, 0, tzinfo=UTC)
LEASE = 1.0
"""Of one that is stopped and whose end is waited for."""

HELD = 6.0
"""Of one that must go on holding beyond it, also on a machine that stands still for a moment."""

LONG = 60.0
QUEUES = 8


def inbound(message_id: str, address: Address = HERE, text: str = "hi") -> Inbound:
    return Inbound(address, message_id, Sender("7", "Ada"), text, SENT)


@dataclass
class Process:
    """A process's bus, and what runs in it."""

    bus: PostgresBus
    life: anyio.CancelScope
    ended: anyio.Event

    async def stop(self) -> None:
        """Be stopped where it stands: it renews nothing and hears nothing."""
        self.life.cancel()
        # A statement that it was in the middle of comes to its end.
        await self.ended.wait()

    async def outlive_lease(self) -> None:
        """Wait until the one session that it holds has been renewed for longer than its lease."""

        async def outlived() -> bool:
            return (await self.bus.statistics())["renewals"] >= 4

        await until(outlived, every=0.05)


class Fleet:
    def __init__(self, url: str, tasks, folder: Path) -> None:
        self.url = url
        self._tasks = tasks
        self._folder = folder
        self._databases: list[Database] = []

    async def process(
        self, name: str, *, lease: float = LONG, limit: int = 100, sessions: int = 512
    ) -> Process:
        database = Database(self.url, connections=4)
        await database.open()
        self._databases.append(database)
        wakeups = Wakeups(database)
        bus = PostgresBus(
            database,
            wakeups,
            holder=name,
            max_queued_messages=limit,
            lease=lease,
            max_held_sessions=sessions,
            exports=self._folder / name / "exports",
        )
        process = Process(bus, anyio.CancelScope(), anyio.Event())
        self._tasks.start_soon(self._live, wakeups, process)
        return process

    async def _live(self, wakeups: Wakeups, process: Process) -> None:
        with process.life:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wakeups.run)
                tasks.start_soon(process.bus.run)
        process.ended.set()

    def end_leases(self) -> None:
        """Let the leases of whoever was stopped end now, as they do in time."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for queue in range(QUEUES):
                connection.execute(
                    f"update pgmq.q_inbound_{queue} set vt = clock_timestamp()".encode()
                )

    def rows(self, sql: str) -> list[tuple]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(sql.encode()).fetchall()

    async def until_empty(self) -> None:
        """Wait until no row is left in any queue, that of a hold neither."""
        await until(lambda: self.rows("select count(*) from tapebot.inbound") == [(0,)])

    async def close(self) -> None:
        self._tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            for one in self._databases:
                await one.close()


@asynccontextmanager
async def fleet_on(url: str, folder: Path) -> AsyncIterator[Fleet]:
    try:
        async with anyio.create_task_group() as tasks:
            fleet = Fleet(url, tasks, folder)
            try:
                yield fleet
            finally:
                await fleet.close()
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        raise group.exceptions[0] from None


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    url = fresh_database()
    async with fleet_on(url, tmp_path) as running:
        with anyio.fail_after(100):
            yield running
    drop(url)


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
        assert "Which colour?" in str(model.requests[-1].messages)


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
    with pytest.raises(SessionBusy, match="at work in b"):
        async with keeper.bus.lock_session("fake:1"):
            pass
    await delivery.ack()
    async with worker.bus.lock_session("fake:1"):
        inbox.release()


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
