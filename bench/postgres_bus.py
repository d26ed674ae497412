"""The bus in PostgreSQL, beside the bus of one process with its journal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count
from time import perf_counter

import anyio

from bench.postgres_server import Meter, listening
from bench.report import Cell, Scale, Table, ms, p50, p95, us
from bench.workload import question
from bot.bus import (
    Address,
    Answer,
    Bus,
    ChannelPort,
    Inbound,
    ReceivedMessage,
    Sender,
    SessionInbox,
)
from bot.bus.local import LocalBus
from bot.bus.messages import DeliveryReport, ReleaseRequest
from bot.bus.postgres import PostgresBus
from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups

CHANNEL = "bench"
_numbers = count(1)


def inbound(chat: object) -> Inbound:
    """Return a message in a chat that nobody has sent yet."""
    number = next(_numbers)
    words = question(number)
    return Inbound(
        Address(CHANNEL, str(chat)), str(number), Sender("1", "Ada"), words, datetime.now(UTC)
    )


@asynccontextmanager
async def _pair(scale: Scale, database: Database) -> AsyncIterator[dict[str, tuple[Bus, Bus]]]:
    """Yield a gateway's and a worker's bus: two of PostgreSQL, and the one of a single process."""
    local = LocalBus(scale.work / "bus", max_queued_messages=100_000)
    async with (
        listening(database) as there,
        listening(database) as here,
        anyio.create_task_group() as tasks,
    ):

        def bus(wakeups: Wakeups, holder: str) -> PostgresBus:
            folder = scale.work / "exports"
            return PostgresBus(
                database,
                wakeups,
                holder=holder,
                max_queued_messages=100_000,
                max_held_sessions=1_000,
                exports=folder,
            )

        gateway, worker = bus(there, "gateway"), bus(here, "worker")
        for one in (gateway, worker, local):
            tasks.start_soon(one.run)
        yield {"PostgreSQL": (gateway, worker), "one process": (local, local)}
        for one in (gateway, worker, local):
            await one.aclose()
        tasks.cancel_scope.cancel()


async def measure(scale: Scale, meter: Meter, database: Database) -> list[Table]:
    """Measure both buses in turns."""
    async with _pair(scale, database) as pair:
        return [await _rates(scale, meter, pair), await _latencies(scale, pair)]


async def _rates(scale: Scale, meter: Meter, pair: dict[str, tuple[Bus, Bus]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    total = scale.pick(300, 40)
    for name, (gateway, worker) in pair.items():
        port = gateway.channel(CHANNEL)
        taken: list[tuple[SessionInbox, ReceivedMessage]] = []

        async def publish(number: int, port: ChannelPort = port) -> None:
            await port.publish(inbound(f"many-{number}"))

        async def claim(
            _: int, worker: Bus = worker, taken: list[tuple[SessionInbox, ReceivedMessage]] = taken
        ) -> None:
            inbox = await worker.claim()
            taken.append((inbox, await _message(inbox)))

        async def ack(
            number: int, taken: list[tuple[SessionInbox, ReceivedMessage]] = taken
        ) -> None:
            await taken[number][1].ack()

        found = {"publish": await meter.each(publish, total)}
        found["claim"] = await meter.each(claim, total)
        found["acknowledge"] = await meter.each(ack, total)
        for inbox, _ in taken:
            inbox.release()
        taken.clear()
        found["publish, 16 at once"] = await meter.each(publish, total, beside=16)
        found["claim after that"] = await meter.each(claim, total)
        found["acknowledge, 16 at once"] = await meter.each(ack, total, beside=16)
        for inbox, _ in taken:
            inbox.release()
        server = name == "PostgreSQL"
        rows += [
            (f"{what}: {name}", spent.rate, ms(spent.p50), ms(spent.p95))
            + ((us(spent.cpu), spent.wal) if server else ())
            for what, spent in found.items()
        ]
    head = ("", "a second", "ms p50", "p95", "server's CPU µs", "log bytes")
    notes = [f"{total} messages, each of another session; a process claims one after the other"]
    return Table("The bus: how much", head, rows, notes)


async def _message(inbox: SessionInbox) -> ReceivedMessage:
    """Return the next message of a session; what its channel reported is passed over."""
    while isinstance(one := await inbox.receive(), DeliveryReport | ReleaseRequest):
        pass
    return one


async def _latencies(scale: Scale, pair: dict[str, tuple[Bus, Bus]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, (gateway, worker) in pair.items():
        port = gateway.channel(CHANNEL)
        found: dict[str, list[float]] = {
            "to a free session": [],
            "to a held session": [],
            "an answer": [],
        }
        for number in range(scale.pick(150, 10)):
            address = Address(CHANNEL, f"late-{number}")
            began = perf_counter()
            await port.publish(inbound(address.chat_id))
            inbox = await worker.claim()
            delivery = await _message(inbox)
            found["to a free session"].append(perf_counter() - began)
            await delivery.ack()
            began = perf_counter()
            await port.publish(inbound(address.chat_id))
            delivery = await _message(inbox)
            found["to a held session"].append(perf_counter() - began)
            began = perf_counter()
            await worker.send(Answer(address, f"answer-{name}-{number}", "All right."))
            await port.receive()
            found["an answer"].append(perf_counter() - began)
            await port.report(DeliveryReport(address.session, f"answer-{name}-{number}"))
            assert isinstance(await inbox.receive(), DeliveryReport)
            await delivery.ack()
            inbox.release()
        rows += [
            (f"{what}: {name}", ms(p50(taken)), ms(p95(taken))) for what, taken in found.items()
        ]
    notes = [
        "from before publish to a worker's receive, from before send to a channel's receive",
        "one at a time: a wake-up within 20 ms of another waits for the next look",
    ]
    return Table("The bus: how soon", ("", "ms p50", "p95"), rows, notes)
