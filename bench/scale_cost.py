"""What each statement of the bus costs with very many sessions, held and waiting, on the real tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from bench.postgres_bus import inbound
from bench.postgres_server import Meter, Spent
from bench.scale_load import State, fill, holds, sizes
from bot.bus.journal import AcceptedMessage, encode_in
from bot.bus.postgres.held_session import HeldSession
from bot.bus.postgres.queries import Queries
from bot.core.clock import SystemClock
from bot.core.database.connections import Database

_new = count(1)
LEASE = 30.0
HOLDS = 64
"""What one process holds at most, as it comes."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What statements cost in one state.

    Attributes:
        publish: Of a message to a session that is free; claim: of a free session; ack, release: of that.
        poll: A look for news of 64 holds, and for one free session, which finds nothing; None where it would.
        poll_many: The same with 1,000 holds; poll_one: with those of the 64 that are in one queue, and there.
        renew: Of one hold, 64 in a statement; renew_many: 1,000 in one.
        grouped_head: pgmq's own read of one head in one queue.
        table: Bytes of the queues; indexes: of their indexes.
    """

    publish: Spent
    claim: Spent
    ack: Spent
    release: Spent
    poll: Spent | None
    poll_many: Spent | None
    poll_one: Spent | None
    renew: Spent
    renew_many: Spent
    grouped_head: Spent
    table: int
    indexes: int


async def costs(meter: Meter, database: Database, state: State, sessions: int, times: int) -> Costs:
    """Bring the queues into a state, and measure each statement."""
    await fill(database, state, sessions)
    table, indexes = await sizes(database, "pgmq.q_inbound_%")
    queries = Queries(database, "bench", LEASE)
    held = await holds(database, 1_000)
    found: dict[str, Any] = await _carried(meter, queries, times)
    queues = range(await queries.queues())

    async def look(these: Sequence[HeldSession], where: Collection[int] = queues) -> None:
        assert not await queries.poll(these, where, 1, wary=False)

    async def renew(these: Sequence[HeldSession]) -> None:
        assert len(await queries.renew(these)) == len(these)

    async def grouped_head(_: int) -> None:
        await queries.fetch("select * from pgmq.read_grouped_head('inbound_0', 0, 1)")

    rare = max(3, times // 10)
    for suffix, these, often in (("", held[:HOLDS], times), ("_many", held, rare)):
        looked = None
        # It would take what waits.
        if not state.waiting:
            looked = await meter.each(lambda _, t=these: look(t), often)  # type: ignore[misc]
        found[f"poll{suffix}"] = looked
        found[f"renew{suffix}"] = await meter.each(
            lambda _, t=these: renew(t),  # type: ignore[misc]
            often,
            holds=len(these),
        )
    found["poll_one"] = None
    if not state.waiting:
        one = [hold for hold in held[:HOLDS] if hold.queue == 0]
        found["poll_one"] = await meter.each(lambda _: look(one, (0,)), times)
    found["grouped_head"] = await meter.each(grouped_head, rare)
    return Costs(**found, table=table, indexes=indexes)


async def _carried(meter: Meter, queries: Queries, times: int) -> dict[str, Spent]:
    """Carry messages of new sessions."""
    queues = range(await queries.queues())
    taken: list[HeldSession] = []

    async def publish(_: int) -> None:
        message = inbound(f"new-{next(_new)}")
        record = (
            encode_in(AcceptedMessage(0, SystemClock().now(), message)).decode("ascii").rstrip("\n")
        )
        assert await queries.publish(message, record, capacity=100, shard=0, shards=1) is None

    async def claim(_: int) -> None:
        [head] = await queries.poll([], queues, 1, wary=False)
        group = str(head.headers["x-pgmq-group"])
        taken.append(HeldSession(group, group, head.queue, head.id, head.reads, 0.0))

    async def ack(number: int) -> None:
        assert await queries.done(taken[number], [taken[number].token])

    async def release(number: int) -> None:
        await queries.release(taken[number])

    works = {"publish": publish, "claim": claim, "ack": ack, "release": release}
    return {name: await meter.each(work, times) for name, work in works.items()}
