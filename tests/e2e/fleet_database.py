"""What the database of a fleet says, read by SQL beside what tapebot's own store reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import psycopg
from fleet_books import ReadTape
from fleet_processes import Fleet, Member

from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from bot.tape.stores.postgres import PostgresTapeStore

_HEARD = """
select convert_from(tape.name, 'UTF8'), convert_from(entry.line, 'UTF8')::json -> 'meta' ->> 'inbound', count(*)
from tapebot.entry join tapebot.tape on tape.id = entry.tape
where entry.kind = 'message' group by 1, 2
having convert_from(min(entry.line), 'UTF8')::json -> 'meta' ->> 'inbound' is not null
"""

_GAPS = """
select convert_from(tape.name, 'UTF8'), tape.version, count(*), min(entry.id), max(entry.id)
from tapebot.tape join tapebot.entry on entry.tape = tape.id group by tape.id
having count(*) <> tape.version or min(entry.id) <> 1 or max(entry.id) <> tape.version
"""

_LEFT = {
    "messages in the queues": "select count(*) from tapebot.inbound",
    "answers on their way": "select count(*) from tapebot.outbox",
    "files of answers": "select count(*) from tapebot.outfile",
    "updates in the spool": "select count(*) from tapebot.spool where raw is not null",
    "leases": "select count(*) from tapebot.lease where until > clock_timestamp()",
}


@asynccontextmanager
async def tapes_in(address: str) -> AsyncIterator[ReadTape]:
    database = Database(address)
    await database.open()
    try:
        store = PostgresTapeStore(database, Wakeups(database))

        async def read(session: str) -> list[Any]:
            return await store.read(session) if session in await store.list_tapes() else []

        yield read
    finally:
        with anyio.CancelScope(shield=True):
            await database.close()


async def rows(fleet: Fleet, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Run one statement on a connection of its own; return its rows."""
    assert fleet.world.database is not None
    async with await psycopg.AsyncConnection.connect(
        fleet.world.database, autocommit=True, application_name="trial"
    ) as connection:
        cursor = await connection.execute(sql.encode(), values)
        return await cursor.fetchall() if cursor.description is not None else []


async def elected(fleet: Fleet) -> Member | None:
    found = await rows(
        fleet,
        "select holder from tapebot.lease where name like 'channel/telegram%%'"
        " and until > clock_timestamp()",
    )
    pids = {int(holder.split("/")[1]) for (holder,) in found}
    return next((one for one in fleet.gateways if one.pid in pids), None)


async def until_elected(fleet: Fleet, but: Member | None = None) -> Member:
    """Wait until a gateway, another than this, holds Telegram's lease; return it."""
    with anyio.fail_after(60.0):
        while True:
            found = await elected(fleet)
            if found is not None and found is not but:
                return found
            await anyio.sleep(0.1)


async def asleep(fleet: Fleet) -> list[tuple[int, Member]]:
    """Return the processes whose statements sleep in the database, each with its backend there."""
    found = await rows(
        fleet, "select pid, application_name from pg_stat_activity where wait_event = 'PgSleep'"
    )
    # Tapebot puts its own name before the one that is given to it.
    named = [(pid, name.split()[-1]) for pid, name in found if name]
    return [(pid, fleet.members[name]) for pid, name in named if name in fleet.members]


async def check_database(fleet: Fleet) -> None:
    """See that the tables say the same as the ledger, and that nothing is left to do."""
    ledger = fleet.world.ledger
    wanted = {(f"telegram:{one.chat}", one.id) for one in ledger.said}
    heard = Counter({(tape, one): times for tape, one, times in await rows(fleet, _HEARD)})
    assert heard == Counter(wanted), "by SQL"
    seen = set(await rows(fleet, "select session, id from tapebot.seen"))
    assert seen == wanted, f"the seen-table: {len(seen ^ wanted)} differ: {[*seen ^ wanted][:10]}"
    await check_nothing_left(fleet)


async def check_nothing_left(fleet: Fleet) -> None:
    """See that tapes are whole, that nothing is left to do, and that nothing was buried."""
    assert not await rows(fleet, _GAPS), "tapes with gaps"
    for what, sql in _LEFT.items():
        [[count]] = await rows(fleet, sql)
        assert not count, f"{count} {what} are left"
    [[buried]] = await rows(fleet, "select count(*) from tapebot.dead_letter")
    assert not buried, f"{buried} messages were buried"
