"""The store and the bus in PostgreSQL, beside the machine, the store of files, and the bus of one process."""

from __future__ import annotations

from bench import postgres_bus, postgres_store
from bench.postgres_server import Meter, opened, running
from bench.report import Scale, Table


async def measure(scale: Scale) -> list[Table]:
    """Measure both on one durable server."""
    with running() as server:
        async with opened(server.create()) as database:
            stored = await postgres_store.measure(scale, Meter(server, database), database)
        async with opened(server.create()) as database:
            return stored + await postgres_bus.measure(scale, Meter(server, database), database)
