"""The statements of the bus, one round trip each; they may all be repeated."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from bot.bus.messages import Activity as Act
from bot.bus.messages import Answer, DeliveryReport, Inbound, Partial
from bot.bus.postgres.codec import (
    coalescing_key,
    encode,
    encode_key,
    encode_report,
    stream_coalescing_key,
)
from bot.bus.postgres.held_session import HeldSession
from bot.core.database.connections import Connection, Database, Row
from bot.core.errors import BusError, DatabaseUnavailable, SessionLost

_ACCEPTED = -1
_DUPLICATE = -2
_LOCKED_FOR = "5s"

# Compared as bigint and so on, whatever is the smallest type that holds the numbers of a list.
_LOOK = """select * from tapebot.look(%s, %s, %s, %s::int[], %s::int[], %s::text[], %s::bigint[], %s::int[],
    %s::bigint[], %s::bigint[], %s::int[], %s::boolean[])"""
_RENEW = "select * from tapebot.renew(%s, %s::int[], %s::bigint[], %s::int[])"
_DONE = "select tapebot.done(%s, %s, %s, %s::bigint[])"
_RELEASE = """select tapebot.release(
    %s, %s, %s, %s, %s::bigint[], %s::bigint[], %s::bigint[], %s)"""
# As ``release`` counts: who lost a hold and goes on has not died over what it held.
_OUTLIVED = """update pgmq.q_inbound_{} set headers = headers || jsonb_build_object(
    'returned', coalesce((headers ->> 'returned')::int, 0) + 1) where msg_id = any(%s::bigint[])"""
_PUBLISH = "select tapebot.publish(%s, %s, %s, %s, %s, %s, %s)"
# From which shard a chat was last heard of stays as it is: whoever gives a command from elsewhere is not there.
_PUBLISH_ELSEWHERE = """
select tapebot.publish(%s, %s, %s, %s, %s, coalesce(r.shard, 0), coalesce(r.shards, 1))
from (select) as once left join tapebot.route r on r.session = %s"""
_SEND = "select tapebot.send(%s, %s, %s, %s, %s, %s::bytea[])"
# ``send`` looks for a last report in the session of the chat; this one waits in another.
_SEND_ELSEWHERE = f"""{_SEND} where not exists (
    select from tapebot.inbound where headers ->> 'x-pgmq-group' = %s
        and headers ->> 'kind' = 'report' and headers ->> 'answer' = %s)"""
_STATISTICS = """
select queue, count(*) filter (where headers ->> 'kind' = 'in'),
    count(distinct headers ->> 'x-pgmq-group'),
    coalesce(extract(epoch from clock_timestamp()
        - min(enqueued_at) filter (where headers ->> 'kind' = 'in')), 0)::float
from tapebot.inbound group by queue order by queue"""
_WAITING = "select exists (select from tapebot.inbound where headers ->> 'kind' = 'in')"
_FORGET = "delete from tapebot.seen where at < now() - interval '90 days'"


@dataclass(frozen=True, slots=True)
class InboundRow:
    """A row of ``look``: what it is, of which hold (its place in what was given), and the message."""

    kind: str
    hold_index: int | None
    queue: int
    id: int
    reads: int
    body: str | None
    headers: dict[str, Any]

    @property
    def deaths(self) -> int:
        """How often a holder had it and never gave it back."""
        return self.reads - 1 - int(self.headers.get("returned", 0))


class Queries:
    """What the bus asks of the database.

    Args:
        database: Open.
        holder: Names this process to people.
        lease: Seconds for which a hold lasts without being renewed.
    """

    def __init__(self, database: Database, holder: str, lease: float) -> None:
        self.database = database
        self._holder = holder
        self._lease = lease

    async def publish(
        self, inbound: Inbound, record: str, *, room: int, shard: int, shards: int
    ) -> int | None:
        """Accept a message.

        Returns:
            How many wait where the session is full; 0 where it is a duplicate, None where not.

        Raises:
            BusError: The database refused, or is gone.
        """
        session = encode_key(inbound.session)
        values = [session, encode_key(inbound.id), uuid.uuid4(), record, room]
        if inbound.via is None:
            [[found]] = await self.fetch(_PUBLISH, [*values, shard, shards])
        else:
            [[found]] = await self.fetch(_PUBLISH_ELSEWHERE, [*values, session])
        verdict = int(found)
        return None if verdict == _ACCEPTED else 0 if verdict == _DUPLICATE else verdict

    async def poll(
        self, holds: Sequence[HeldSession], queues: Collection[int], most: int, *, wary: bool
    ) -> list[InboundRow]:
        """Return what is new for these holds, and free sessions, which are held from now on.

        Args:
            holds: Where to look for more.
            queues: Where to look for free sessions.
            most: How many of them to take.
            wary: What may be what kills its holders is not begun now.
        """
        rows = await self.fetch(
            _LOOK,
            [
                *(self._lease, self._holder, most, list(queues)),
                *_columns(holds),
                [one.after_in for one in holds],
                [one.after_report for one in holds],
                [one.room for one in holds],
                [wary or one.busy for one in holds],
            ],
        )
        return [InboundRow(w, n, q, i or 0, r or 0, b, h or {}) for w, n, q, i, r, b, h in rows]

    async def renew(self, holds: Sequence[HeldSession]) -> set[tuple[int, int]]:
        """Renew holds; return queue and token of those that are kept."""
        queues, _, tokens, reads = _columns(holds)
        seconds = min(10.0, self._lease / 3)
        rows = await self.fetch(_RENEW, [self._lease, queues, tokens, reads], seconds=seconds)
        return {(queue, token) for queue, token in rows}

    async def done(self, hold: HeldSession, ids: Iterable[int]) -> bool:
        """Say that rows are done with; False where the hold is lost."""
        return bool(
            (await self.fetch(_DONE, [hold.queue, hold.token, hold.reads, list(ids)]))[0][0]
        )

    async def release(self, hold: HeldSession, *, pause: float = 0.0) -> None:
        """End a hold; what is not done with may be held by another after a pause."""
        values = [hold.queue, hold.group, hold.token, hold.reads, hold.settled]
        await self.fetch(_RELEASE, [*values, list(hold.working), hold.fetched, pause])

    async def record_survival(self, hold: HeldSession) -> None:
        """Say that this process lost a hold and is alive: that was no death."""
        await self.fetch(_OUTLIVED.format(hold.queue), [[*hold.working, *hold.fetched]])

    async def hold(self, group: str, call: str) -> tuple[int, int | None, int | None, str | None]:
        """Hold a free session; return its queue, token, reads and holder. The token is None where it is not free."""
        [row] = await self.fetch(
            "select * from tapebot.hold(%s, %s, %s, %s, %s)",
            [group, call, "", self._lease, self._holder],
        )
        queue, token, reads, holder = row
        return queue, token, reads, holder

    async def dead_letter(self, hold: HeldSession, row: int, notice: Answer | None) -> None:
        """Take out of its queue what nobody can work, and tell its chat.

        Raises:
            SessionLost: The hold is lost.
        """

        async def work(connection: Connection) -> bool:
            cursor = await connection.execute(
                "select tapebot.bury(%s, %s, %s, %s, %s)",
                [hold.queue, hold.group, hold.token, hold.reads, row],
            )
            kept = bool((await cursor.fetchall())[0][0])
            if kept and notice is not None:
                sql, values = _sending(notice, [])
                await connection.execute(sql.encode(), values)
            return kept

        try:
            kept = await self.database.transact(work)
        except (DatabaseUnavailable, psycopg.Error) as error:
            raise refusal(error) from error
        if not kept:
            raise SessionLost(f"session {hold.session} went to another holder")

    async def show(self, newest: Sequence[Partial | Act]) -> None:
        """Hand partials and activity to their channels."""
        columns = (
            [encode_key(one.address.session) for one in newest],
            [coalescing_key(one) for one in newest],
            [one.address.channel for one in newest],
            [encode(one) for one in newest],
        )
        await self.fetch(
            "select tapebot.show(%s::text[], %s::text[], %s::text[], %s::text[])", columns
        )

    async def send(self, answer: Answer, files: Sequence[bytes | None]) -> None:
        """Hand an answer to its channel, unless it is on its way."""
        await self.fetch(*_sending(answer, files))

    async def take(
        self, channel: str, shard: int, shards: int, mark: int, most: int
    ) -> list[tuple[str | None, str]]:
        """Return what a channel has to show: an answer's key, or None, and the text of ``encode``."""
        lease = f"channel/{channel}" + (f"/{shard}" if shards > 1 else "")
        rows = await self.fetch(
            "select answer, body from tapebot.take(%s, %s, %s, %s, %s, %s)",
            [channel, shard, shards, mark, lease, most],
        )
        return [(answer, body) for answer, body in rows]

    async def files(self, answer: str) -> dict[int, bytes]:
        """Return the files of an answer by their places, from 1."""
        rows = await self.fetch(
            "select number, content from tapebot.outfile where answer = %s", [answer]
        )
        return {number: bytes(content) for number, content in rows}

    async def report(self, report: DeliveryReport) -> None:
        """Hand a channel's word to its session."""
        await self.fetch(
            "select tapebot.report(%s, %s, %s, %s)",
            [
                encode_key(report.session),
                encode_key(report.answer),
                report.final,
                encode_report(report),
            ],
        )

    async def waiting(self) -> bool:
        """Say whether any accepted message is not done with."""
        return bool((await self.fetch(_WAITING))[0][0])

    async def statistics(self) -> dict[str, Any]:
        """Return what waits in the queues, and how many answers are not delivered."""
        queues = await self.fetch(_STATISTICS)
        [[answers]] = await self.fetch("select count(*) from tapebot.outbox")
        [[count]] = await self.fetch("select queues from tapebot.bus")
        depth = dict.fromkeys(range(count), 0) | {row[0]: row[1] for row in queues}
        age = dict.fromkeys(range(count), 0.0) | {row[0]: row[3] for row in queues}
        return {
            "pending": sum(depth.values()),
            "sessions": sum(row[2] for row in queues),
            "undelivered_answers": answers,
            "depth": depth,
            "oldest_seconds": age,
        }

    async def queues(self) -> int:
        """Return how many queues there are."""
        return int((await self.fetch("select queues from tapebot.bus"))[0][0])

    async def forget(self) -> None:
        """Forget platform ids that no platform sends again."""
        await self.fetch(_FORGET)

    async def vacuum(self) -> None:
        """Write the tables anew without what was deleted, and without words of what was buried.

        An ordinary vacuum frees the places of rows and leaves their bytes there.
        """
        count = await self.queues()
        tables = [f"pgmq.{letter}_inbound_{n}" for n in range(count) for letter in "qa"]
        tables += ["tapebot.outbox", "tapebot.outfile", "tapebot.live"]
        try:
            async with self.database.dedicated_connection() as connection:
                await connection.execute("select tapebot.silence()")
                await connection.execute(f"set lock_timeout = '{_LOCKED_FOR}'".encode())
                await connection.execute(f"vacuum (full) {', '.join(tables)}".encode())
        except (DatabaseUnavailable, psycopg.Error) as error:
            raise refusal(error) from error

    async def fetch(
        self, sql: str, values: Sequence[Any] = (), *, seconds: float = 10.0
    ) -> list[Row]:
        """Run one statement.

        Raises:
            BusError: The database refused it, or is gone.
        """
        try:
            return await self.database.fetch(sql, values, seconds=seconds)
        except (DatabaseUnavailable, psycopg.Error) as error:
            raise refusal(error) from error


def refusal(error: Exception) -> BusError:
    """Return the bus's error for one of the database's."""
    if isinstance(error, DatabaseUnavailable):
        return BusError(str(error))
    why = str(error).strip().splitlines() or [type(error).__name__]
    return BusError(f"the database refused ({why[0]}); see its log, then try again")


def _columns(holds: Sequence[HeldSession]) -> tuple[list[int], list[str], list[int], list[int]]:
    return (
        [one.queue for one in holds],
        [one.group for one in holds],
        [one.token for one in holds],
        [one.reads for one in holds],
    )


def _sending(answer: Answer, files: Sequence[bytes | None]) -> tuple[str, list[Any]]:
    """Return the statement that hands an answer to its channel, and its values."""
    done = None if answer.stream is None else stream_coalescing_key(answer.stream)
    chat, known_by = encode_key(answer.address.session), encode_key(answer.id)
    values = [answer.address.channel, chat, known_by, encode(answer), done, list(files)]
    if answer.of is None:
        return _SEND, values
    return _SEND_ELSEWHERE, [*values, encode_key(answer.of), known_by]
