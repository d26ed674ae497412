"""What arrives in a session wakes its holder alone, and costs nothing to anybody who looks for free sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import psycopg
import pytest
from postgres_fleet import QUEUES, Fleet, inbound
from waiting import until

from bot.bus.messages import DeliveryReport
from bot.core.database.wakeups import Wakeups, line_of

pytestmark = pytest.mark.slow

_CLAIM_AS_BEFORE = """
select headers ->> 'x-pgmq-group' from tapebot.look(
    60, 'before', 1, array[0, 1, 2, 3, 4, 5, 6, 7], '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')
"""


@asynccontextmanager
async def wakeups_of(fleet: Fleet, *topics: str) -> AsyncIterator[list[str]]:
    """Give the topics that are told meanwhile to all, and to who waits for some topics."""
    told: list[str] = []
    lines = {"tapebot", *map(line_of, topics)}

    async def listen(task_status: anyio.abc.TaskStatus[None]) -> None:
        async with await psycopg.AsyncConnection.connect(fleet.url, autocommit=True) as connection:
            for line in lines:
                await connection.execute(f'listen "{line}"'.encode())
            task_status.started()
            async for one in connection.notifies():
                told.append(one.payload)  # noqa: PERF401 (as it comes)

    async with anyio.create_task_group() as tasks:
        await tasks.start(listen)
        yield told
        tasks.cancel_scope.cancel()


async def test_a_message_to_a_held_session_wakes_its_holder_alone(fleet):
    gateway, holder = await fleet.process("gateway"), await fleet.process("holder")
    port = gateway.bus.channel("fake")
    held = [f"inbound:{queue}@holder" for queue in range(QUEUES)]
    async with wakeups_of(fleet) as told_all, wakeups_of(fleet, *held) as told:
        await port.publish(inbound("m1"))
        await until(lambda: told)
        assert "@" not in told[0], "nobody holds it yet: all that have time for it look"
        inbox = await holder.bus.claim()
        await until(lambda: told_all)
        told.clear()
        told_all.clear()
        await port.publish(inbound("m2"))
        await until(lambda: told)
    assert [one.partition("@")[2] for one in told] == ["holder"]
    assert told_all == [], "other processes sleep on"
    assert [(await inbox.receive()).inbound.id for _ in range(2)] == ["m1", "m2"]


async def test_a_report_wakes_nobody_and_reaches_the_holder_with_its_next_look(fleet):
    gateway, holder = await fleet.process("gateway"), await fleet.process("holder")
    port = gateway.bus.channel("fake")
    await port.publish(inbound("m1"))
    inbox = await holder.bus.claim()
    await inbox.receive()
    held = [f"inbound:{queue}@holder" for queue in range(QUEUES)]
    async with wakeups_of(fleet, *held) as told:
        # A topic is told of at most every 20 ms.
        await anyio.sleep(0.05)
        await port.report(DeliveryReport("fake:1", "turn-1", ("7",), final=True))
        assert (await inbox.receive()).answer == "turn-1"
    assert told == []


async def test_who_waits_for_one_more_topic_is_woken_for_it_while_listening(fleet):
    holder = await fleet.process("holder")
    wakeups = Wakeups(holder.bus._queries.database)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wakeups.run)
        await until(lambda: wakeups.listening)
        for topic in ("outbound:fake", "lease:fake"):
            # The first may end because it began to listen only now.
            for _ in range(2):
                event = wakeups.event(topic)
                await anyio.sleep(0.05)
                fleet.rows(f"select tapebot.tell('{topic}', '0')")
                with anyio.fail_after(10):
                    await event.wait()
        tasks.cancel_scope.cancel()


async def test_a_topic_has_the_same_line_here_and_in_the_database(fleet):
    topics = [
        "inbound:3",
        "inbound:3@häuser:7",
        "outbound:telegram",
        "outbound:%_",
        "lease:channel/x",
    ]
    with psycopg.connect(fleet.url) as connection:
        for topic in topics:
            [(line,)] = connection.execute("select tapebot.line_of(%s)", [topic]).fetchall()
            assert line == line_of(topic)


async def test_a_holder_of_the_version_before_is_woken_as_it_listens(fleet):
    gateway = await fleet.process("gateway")
    port = gateway.bus.channel("fake")
    await port.publish(inbound("m1"))
    assert fleet.rows(_CLAIM_AS_BEFORE) == [("fake:1",)]
    async with wakeups_of(fleet) as told:
        # A topic is told of at most every 20 ms.
        await anyio.sleep(0.05)
        await port.publish(inbound("m2"))
        await until(lambda: told)
    assert "@" not in told[0]


async def test_messages_behind_a_held_session_stay_out_of_the_search_for_free_ones(fleet):
    gateway, holder = await fleet.process("gateway"), await fleet.process("holder")
    port = gateway.bus.channel("fake")
    await port.publish(inbound("m1"))
    inbox = await holder.bus.claim()
    await inbox.receive()
    for number in range(2, 6):
        await port.publish(inbound(f"m{number}"))
    soon = "select count(*) from tapebot.inbound where vt < clock_timestamp() + interval '30 minutes' and headers ->> 'kind' = 'in'"
    assert fleet.rows(soon) == [(1,)], "but for the first, whose lease is the hold"
    inbox.release()
    heir = await holder.bus.claim()
    assert [(await heir.receive()).inbound.id for _ in range(5)] == [f"m{n}" for n in range(1, 6)]


async def test_old_platform_ids_are_forgotten_a_slice_at_a_time(fleet):
    fleet.rows(
        "with made as (insert into tapebot.seen (session, id, call, at) select 's', n::text, gen_random_uuid(),"
        " now() - interval '91 days' from generate_series(1, 12000) n returning 1) select count(*) from made"
    )
    gateway = await fleet.process("gateway")
    await gateway.bus.channel("fake").publish(inbound("m1"))
    await until(lambda: fleet.rows("select session, id from tapebot.seen") == [("fake:1", "m1")])
    assert (await gateway.bus.channel("fake").publish(inbound("m1"))).duplicate


async def test_a_session_that_is_claimed_while_its_claimer_leaves_is_given_back(fleet):
    gateway, leaving = await fleet.process("gateway"), await fleet.process("leaving")
    claimed, answered = anyio.Event(), anyio.Event()
    poll = leaving.bus._queries.poll

    async def slow_poll(*given, **named):
        rows = await poll(*given, **named)
        if rows and not claimed.is_set():
            claimed.set()
            await answered.wait()
        return rows

    leaving.bus._queries.poll = slow_poll
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(leaving.bus.claim)
        await gateway.bus.channel("fake").publish(inbound("m1"))
        await claimed.wait()
        tasks.cancel_scope.cancel()
    answered.set()
    with anyio.fail_after(10):
        heir = await gateway.bus.claim()
        assert (await heir.receive()).inbound.id == "m1"


_POLL = """
select what, msg_id, read_ct from tapebot.poll(60, 'me', true, 1, array[0], array[0], array['g1'],
    array[%(token)s::bigint], array[%(reads)s::int], array[%(token)s::bigint], array[0::bigint], array[9], array[false])
"""
_ADD = """
insert into pgmq.q_inbound_0 (vt, message, headers)
select clock_timestamp() + %s * interval '1 hour', '"x"', jsonb_build_object('x-pgmq-group', 'g' || n, 'kind', 'in')
from generate_series(%s::int, %s::int) n
"""
_ROWS_READ = (
    "select idx_tup_fetch + seq_tup_read from pg_stat_xact_all_tables where relname = 'q_inbound_0'"
)


async def test_a_plan_of_when_a_queue_was_nearly_empty_does_not_read_it_whole_later(fleet):
    """Reading the one row that there is costs no more than the index, and the plan is kept."""
    with psycopg.connect(fleet.url, autocommit=True) as connection:
        connection.execute(_ADD.encode(), [-1, 1, 1])
        connection.execute(b"vacuum (analyze) pgmq.q_inbound_0")
        hold = {"token": 0, "reads": 0}
        head = connection.execute(_POLL.encode(), hold).fetchall()[-1]
        assert head[0] == "head"
        hold = {"token": head[1], "reads": head[2]}
        assert connection.execute(_POLL.encode(), hold).fetchall() == []
        connection.execute(_ADD.encode(), [1, 2, 5_000])
        connection.execute(_ADD.encode(), [-1, 5_001, 5_002])
        with connection.transaction():
            [found] = connection.execute(_POLL.encode(), hold).fetchall()
            [[rows]] = connection.execute(_ROWS_READ.encode()).fetchall()
    assert found[0] == "head"
    assert rows < 1_000
