"""Read and write the message bus in PostgreSQL while no process uses it.

Messages keep the order of their sessions. They are marked as delivered before: an earlier worker
may have started on them, so the next one first looks for them on the tape.
"""

from __future__ import annotations

from datetime import datetime

from psycopg import sql

from bot.bus import Inbound
from bot.bus.journal import AcceptedMessage, decode_in, encode_in
from bot.bus.postgres.codec import decode_key, encode_key
from bot.core.database.connections import Connection, Database
from bot.core.errors import InvalidInbound, TapebotError
from bot.transfer.storage import BusState, in_order

_SECONDS = 600.0

_SEEN = "select session, id from tapebot.seen order by at, session, id"
_KEEP_SEEN = """
insert into tapebot.seen (session, id, call, at)
    select session, id, gen_random_uuid(), now() - (cardinality(%(sessions)s::text[]) - place) * interval '1 microsecond'
    from unnest(%(sessions)s::text[], %(ids)s::text[]) with ordinality as given (session, id, place)
"""
_KEEP = "select tapebot.enqueue(tapebot.queue_of(%(session)s), %(session)s, 'in', %(content)s)"
_ANSWERS = "select count(*) from tapebot.outbox"


async def read_bus_state(database: Database) -> BusState:
    """Return the contents of the bus.

    Raises:
        TapebotError: A message is unreadable.
        DatabaseUnavailable: The database cannot be reached.
    """

    async def work(connection: Connection) -> BusState:
        # One snapshot for all statements.
        await connection.execute("set transaction isolation level repeatable read, read only")
        messages = await _messages(connection)
        waiting = {(one.session, one.id) for _, one in messages}
        cursor = await connection.execute(_SEEN)
        seen = tuple((_read(session), _read(number)) for session, number in await cursor.fetchall())
        return BusState(in_order(messages), tuple(one for one in seen if one not in waiting))

    return await database.transact(work, seconds=_SECONDS)


async def count_answers(database: Database) -> int:
    """Return how many answers wait for delivery."""
    return int((await database.fetch(_ANSWERS))[0][0])


async def write_bus_state(database: Database, waiting: BusState) -> None:
    """Write messages and ids to an empty bus; do nothing if it is not empty.

    Raises:
        DatabaseUnavailable: The database cannot be reached.
    """

    async def work(connection: Connection) -> None:
        cursor = await connection.execute("select exists (select from tapebot.seen)")
        if await cursor.fetchone() == (True,):
            # An earlier attempt whose response was lost has done it.
            return
        keys = [*waiting.seen, *((one.session, one.id) for _, one in waiting.messages)]
        sessions, ids = [encode_key(one[0]) for one in keys], [encode_key(one[1]) for one in keys]
        await connection.execute(_KEEP_SEEN, {"sessions": sessions, "ids": ids})
        for number, (at, inbound) in enumerate(waiting.messages, start=1):
            content = encode_in(AcceptedMessage(number, at, inbound)).decode()[:-1]
            await connection.execute(
                _KEEP, {"session": encode_key(inbound.session), "content": content}
            )
        for queue in await _queues(connection):
            given_out = sql.SQL(
                "update {} set read_ct = 1, headers = headers || '{{\"returned\": 1}}' "
                "where headers ->> 'kind' = 'in'"
            )
            await connection.execute(given_out.format(queue))

    await database.transact(work, seconds=_SECONDS)


async def _messages(connection: Connection) -> list[tuple[datetime, Inbound]]:
    """Return the waiting messages, those of each session in order."""
    found: list[tuple[datetime, Inbound]] = []
    for queue in await _queues(connection):
        rows = sql.SQL(
            "select message #>> '{{}}' from {} where headers ->> 'kind' = 'in' order by msg_id"
        )
        cursor = await connection.execute(rows.format(queue))
        for (content,) in await cursor.fetchall():
            record = _record(content)
            found.append((record.accepted_at, record.inbound))
    return found


def _record(content: str) -> AcceptedMessage:
    try:
        return decode_in(content)
    except (InvalidInbound, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TapebotError(
            "a message that waits in the database cannot be read: nothing of the bus was moved"
        ) from error


def _read(written: str) -> str:
    """Decode a key; return it unchanged if only its digest is known."""
    text = decode_key(written)
    return written if text is None else text


async def _queues(connection: Connection) -> list[sql.Composable]:
    cursor = await connection.execute("select queues from tapebot.bus")
    row = await cursor.fetchone()
    count = int(row[0]) if row is not None else 0
    return [sql.Identifier("pgmq", f"q_inbound_{number}") for number in range(count)]
