"""A database of very many sessions, loaded by SQL into the real tables, and its queues in several states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from bench.postgres_bus import inbound
from bench.workload import question
from bot.bus.journal import AcceptedMessage, encode_in
from bot.bus.postgres.held_session import HeldSession
from bot.core.clock import SystemClock
from bot.core.database.connections import Database
from bot.tape.codec import encode_entries
from bot.tape.entries import message
from bot.tape.stores.changes import stamp

CHAT = "bench:"
_LONG = 200.0

ENTRIES = 1
SEEN = 1
"""Rows of a session: entries of its tape, and platform ids that are remembered."""

_SESSIONS = (
    """insert into tapebot.tape (workspace, name, version, live, made_by)
    select '', convert_to('bench:' || n, 'UTF8'), 1, 1, gen_random_uuid() from generate_series(1, %s) n""",
    """insert into tapebot.entry (tape, id, kind, name, body)
    select id, 1, 'message', null, %s::bytea from tapebot.tape""",
    """insert into tapebot.seen (session, id, call, at)
    select 'bench:' || n, -i, gen_random_uuid(), now() - make_interval(days => 80 - i)
    from generate_series(1, %s) i, generate_series(1, %s) n""",
    "insert into tapebot.route (session, shard, shards) select 'bench:' || n, 0, 1 from generate_series(1, %s) n",
    # Which queue each of them has; the first are held, those from the middle on wait.
    """create table public.place as select n, tapebot.queue_of('bench:' || n) as queue
    from generate_series(1, %s) n where n <= %s or n > %s - %s""",
)
_PUT = """
insert into pgmq.q_inbound_{queue} (read_ct, vt, message, headers)
select %s, clock_timestamp() + %s::interval, to_jsonb(%s::text),
    jsonb_build_object('x-pgmq-group', 'bench:' || n, 'kind', %s::text, 'holder', 'bench')
from public.place where queue = {queue} and n > %s and n <= %s
"""
_HELD = """
select queue, headers ->> 'x-pgmq-group', msg_id, read_ct from tapebot.inbound
where headers ->> 'kind' = 'done' order by random() limit %s
"""
_SIZES = """
select coalesce(sum(pg_table_size(oid)), 0)::bigint, coalesce(sum(pg_indexes_size(oid)), 0)::bigint
from pg_class where relkind in ('r', 'p') and relnamespace::regnamespace::text || '.' || relname like any (%s)
"""


@dataclass(frozen=True, slots=True)
class State:
    """What is in the queues.

    Attributes:
        held: Sessions that have a holder, and idle.
        waiting: Sessions with a message and no holder.
        behind: Messages of held sessions that arrived more than a minute ago.
    """

    held: int
    waiting: int = 0
    behind: int = 0

    def __str__(self) -> str:
        """Name it as a row."""
        waiting = f", {self.waiting:,} waiting" if self.waiting else ""
        return f"{self.held:,} held{waiting}" + (f", {self.behind:,} behind" if self.behind else "")


async def load(database: Database, sessions: int, most: int) -> None:
    """Load sessions; queues can be filled with ``most`` of them that are held and as many that wait."""
    [said] = stamp([message("user", question(1))], SystemClock())
    body = encode_entries([replace(said, id=1)])[:-1]
    values = ([sessions], [body], [SEEN, sessions], [sessions], [sessions, most, sessions, most])
    for sql, given in zip(_SESSIONS, values, strict=True):
        await database.fetch(sql, given, seconds=_LONG)
    await database.fetch("analyze", seconds=_LONG)


async def fill(database: Database, state: State, sessions: int) -> None:
    """Bring the queues into a state."""
    [[queues]] = await database.fetch("select queues from tapebot.bus")
    record = AcceptedMessage(0, datetime.now(UTC), inbound("1"))
    body = encode_in(record).decode("ascii").rstrip("\n")
    for queue in range(queues):
        await database.fetch(f"truncate pgmq.q_inbound_{queue}", seconds=_LONG)
        put = _PUT.format(queue=queue)
        held = [1, "1 hour", None, "done", 0, state.held]
        waiting = [0, "0 s", body, "in", sessions - state.waiting, sessions]
        behind = [0, "0 s", body, "in", 0, state.behind]
        for values in (held, behind, waiting):
            await database.fetch(put, values, seconds=_LONG)
        await database.fetch(f"vacuum analyze pgmq.q_inbound_{queue}", seconds=_LONG)


async def holds(database: Database, most: int) -> list[HeldSession]:
    """Return some of the sessions that are held."""
    rows = await database.fetch(_HELD, [most], seconds=_LONG)
    last = 2**62
    return [
        HeldSession(group, group, queue, token, reads, 0.0, after_in=last, after_report=last)
        for queue, group, token, reads in rows
    ]


async def sizes(database: Database, *names: str) -> tuple[int, int]:
    """Return the bytes of tables and of their indexes, by patterns of their names."""
    [[tables, indexes]] = await database.fetch(_SIZES, [list(names)], seconds=_LONG)
    return tables, indexes
