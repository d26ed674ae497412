"""The SQL statements of the bus, one round trip each; all may be repeated."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.bus.messages import PERSON, Answer, DeliveryReport, Inbound, PartialAnswer
from bot.bus.messages import Activity as Act
from bot.bus.postgres.codec import (
    coalescing_key,
    encode,
    encode_key,
    encode_report,
    stream_coalescing_key,
)
from bot.bus.postgres.held_session import HeldSession
from bot.core.database.connections import Connection, Database, Row
from bot.core.errors import BusError, SessionLost

OUTBOUND_ROWS = 64
"""The most answers to read for a channel at once."""

_ACCEPTED = -1
_DUPLICATE = -2
_LOCKED_FOR = "5s"
_TABLES = "tapebot.inbound, tapebot.dead_letter, tapebot.outbox, tapebot.outfile, tapebot.live"

# Arrays are sent as text.
_POLL = """select * from tapebot.poll(%s, %s, %s, %s::text[], %s::bigint[], %s::int[],
    %s::bigint[], %s::bigint[], %s::int[], %s::boolean[])"""
_RENEW = "select tapebot.renew(%s, %s::bigint[], %s::int[])"
_DONE = "select tapebot.done(%s, %s, %s::bigint[])"
_RELEASE = "select tapebot.release(%s, %s, %s, %s::bigint[], %s::bigint[], %s::bigint[], %s)"
# Count these as returned, as ``release`` does: the process lost the hold but did not die.
_OUTLIVED = "update tapebot.inbound set returned = returned + 1 where id = any(%s::bigint[])"
_PUBLISH = "select tapebot.publish(%s, %s, %s, %s, %s, %s, %s)"
_HOLD = "select * from tapebot.hold(%s, %s, %s, %s)"
_SEND = "select tapebot.send(%s, %s, %s, %s, %s, %s, %s::bytea[])"
_STATISTICS = """
select count(*) filter (where kind = 'in'), count(distinct session),
    coalesce(extract(epoch from clock_timestamp()
        - min(queued_at) filter (where kind = 'in')), 0)::float,
    (select count(*) from tapebot.outbox)
from tapebot.inbound"""
_WAITING = "select exists (select from tapebot.inbound where kind = 'in')"
_FORGET = """
with gone as (
    delete from tapebot.seen where ctid = any(array(
        select ctid from tapebot.seen where at < now() - interval '90 days' limit %s
        for update skip locked))
    returning 1
)
select count(*) from gone"""
_FORGET_TOPICS = "delete from tapebot.wake where told < now() - interval '1 day'"
_FORGOTTEN_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class InboundRow:
    """A row of ``tapebot.poll``.

    Attributes:
        news: ``head`` of a session that is held now, ``more`` behind one; ``lost`` or ``wanted``
            for a hold.
        hold_index: The hold's place among those given, from 1; None for a head.
        id: The row's id, and so on: the columns of ``tapebot.inbound``; None without a row.
    """

    news: str
    hold_index: int | None
    id: int
    kind: str | None
    reads: int
    returned: int
    group: str
    body: str | None

    @property
    def deaths(self) -> int:
        """How many holders received it and never returned it."""
        return self.reads - 1 - self.returned


class Queries:
    """The database operations of the bus.

    Args:
        database: The open database.
        holder: Names this process to people.
        lease: Seconds after which a hold ends unless it is renewed.
    """

    def __init__(self, database: Database, holder: str, lease: float) -> None:
        self.database = database
        self._holder = holder
        self._lease = lease

    @property
    def topics(self) -> tuple[str, str]:
        """The topics of free sessions, and of those that this process holds."""
        return "inbound", f"inbound@{self._holder}"

    async def publish(
        self, inbound: Inbound, record: str, *, capacity: int, shard: int, shards: int
    ) -> int | None:
        """Accept a message.

        Returns:
            None if it was accepted; 0 if it is a duplicate; else the number of messages that wait
            in the full session.

        Raises:
            BusError: The database refused, or cannot be reached.
        """
        values = [encode_key(inbound.session), encode_key(inbound.id), uuid.uuid4(), record]
        # Keep the chat's shard: the author of a command from another surface is not in the chat,
        # and a schedule is on no platform.
        here = inbound.answer_to is None and inbound.cause == PERSON
        place = [shard, shards] if here else [None, None]
        [[found]] = await self.fetch(_PUBLISH, [*values, capacity, *place])
        verdict = int(found)
        return None if verdict == _ACCEPTED else 0 if verdict == _DUPLICATE else verdict

    async def poll(
        self, holds: Sequence[HeldSession], most: int, *, wary: bool
    ) -> list[InboundRow]:
        """Return new rows of these holds, and the heads of free sessions, which are now held.

        Args:
            holds: Holds to fetch more rows for.
            most: The most free sessions to take.
            wary: Whether to leave out suspects, which may kill their holders.
        """
        rows = await self.fetch(
            _POLL,
            [
                *(self._lease, self._holder, most),
                _array(_quoted(hold.group) for hold in holds),
                *_tokens(holds),
                _array(hold.after_in for hold in holds),
                _array(hold.after_report for hold in holds),
                _array(hold.capacity for hold in holds),
                _array(wary or hold.busy for hold in holds),
            ],
        )
        return [
            InboundRow(news, n, i or 0, kind, reads or 0, returned or 0, group or "", body)
            for news, n, i, kind, reads, returned, group, body in rows
        ]

    async def renew(self, holds: Sequence[HeldSession]) -> set[int]:
        """Renew holds; return the tokens of those that are still held."""
        seconds = min(10.0, self._lease / 3)
        rows = await self.fetch(_RENEW, [self._lease, *_tokens(holds)], seconds=seconds)
        return {token for (token,) in rows}

    async def done(self, hold: HeldSession, ids: Iterable[int]) -> bool:
        """Remove rows that are done; return False if the hold is lost."""
        return bool((await self.fetch(_DONE, [hold.token, hold.reads, list(ids)]))[0][0])

    async def release(self, hold: HeldSession, *, pause: float = 0.0) -> None:
        """End a hold; rows that are not done are available to others after a pause."""
        values = [hold.group, hold.token, hold.reads, hold.settled]
        await self.fetch(_RELEASE, [*values, list(hold.working), hold.fetched, pause])

    async def record_survival(self, hold: HeldSession) -> None:
        """Record that this process lost a hold but did not die."""
        await self.fetch(_OUTLIVED, [[*hold.working, *hold.fetched]])

    async def hold(self, group: str, call: str) -> tuple[int | None, int | None, str | None]:
        """Hold a free session; return token, reads and holder.

        The token is None if the session is not free.
        """
        [row] = await self.fetch(_HOLD, [group, call, self._lease, self._holder])
        token, reads, holder = row
        return token, reads, holder

    async def dead_letter(self, hold: HeldSession, row: int, notice: Answer | None) -> None:
        """Remove a message that cannot be handled from its queue, and notify its chat.

        Raises:
            SessionLost: The hold is lost.
        """

        async def work(connection: Connection) -> bool:
            cursor = await connection.execute(
                "select tapebot.bury(%s, %s, %s, %s)", [hold.group, hold.token, hold.reads, row]
            )
            kept = bool((await cursor.fetchall())[0][0])
            if kept and notice is not None:
                await connection.execute(_SEND, _sending(notice, []))
            return kept

        with self.database.errors_as(BusError):
            kept = await self.database.transact(work)
        if not kept:
            raise SessionLost(f"another process took over session {hold.session}")

    async def write_partials(self, newest: Sequence[PartialAnswer | Act]) -> None:
        """Write partials and activity for their channels."""
        columns = (
            [encode_key(one.address.session) for one in newest],
            [coalescing_key(one) for one in newest],
            [one.address.channel for one in newest],
            [encode(one) for one in newest],
        )
        await self.fetch(
            "select tapebot.show(%s::text[], %s::text[], %s::text[], %s::text[])", columns
        )

    async def write_answer(self, answer: Answer, files: Sequence[bytes | None]) -> None:
        """Write an answer for its channel, unless it is on its way already."""
        await self.fetch(_SEND, _sending(answer, files))

    async def outbound(
        self, channel: str, shard: int, shards: int, epoch: int, has: Iterable[int]
    ) -> list[tuple[int, str | None, str]]:
        """Return a channel's outbound items without the answers that it has, by their ids.

        Each is an id, the answer's key or None, and the text of ``encode``.
        """
        lease = f"channel/{channel}" + (f"/{shard}" if shards > 1 else "")
        rows = await self.fetch(
            "select id, answer, body from tapebot.take(%s, %s, %s, %s, %s, %s::bigint[], %s)",
            [channel, shard, shards, epoch, lease, _array(has), OUTBOUND_ROWS],
        )
        return [(number, answer, body) for number, answer, body in rows]

    async def files(self, answer: str) -> dict[int, bytes]:
        """Return the files of an answer by number, from 1."""
        rows = await self.fetch(
            "select number, content from tapebot.outfile where answer = %s", [answer]
        )
        return {number: bytes(content) for number, content in rows}

    async def report(self, report: DeliveryReport) -> None:
        """Write a delivery report for its session."""
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
        """Return whether any accepted message is not done."""
        return bool((await self.fetch(_WAITING))[0][0])

    async def statistics(self) -> dict[str, Any]:
        """Return how much waits and for how long, and the number of undelivered answers."""
        [[pending, sessions, seconds, answers]] = await self.fetch(_STATISTICS)
        return {
            "pending": pending,
            "sessions": sessions,
            "undelivered_answers": answers,
            "oldest_seconds": seconds,
        }

    async def forget(self) -> None:
        """Delete platform ids older than 90 days, which no platform sends again, a slice at a time.

        Topics that nobody was woken by for a day, such as those of ended processes, go, too.
        """
        count = _FORGOTTEN_AT_ONCE
        while count == _FORGOTTEN_AT_ONCE:
            [[count]] = await self.fetch(_FORGET, [_FORGOTTEN_AT_ONCE])
        await self.fetch(_FORGET_TOPICS)

    async def vacuum(self) -> None:
        """Rewrite the tables without deleted rows, and without the words of dead letters.

        A plain vacuum frees the rows' space and leaves their bytes there.
        """
        with self.database.errors_as(BusError):
            async with self.database.dedicated_connection() as connection:
                await connection.execute("update tapebot.dead_letter set body = null")
                await connection.execute(f"set lock_timeout = '{_LOCKED_FOR}'".encode())
                await connection.execute(f"vacuum (full) {_TABLES}".encode())

    async def fetch(
        self, sql: str, values: Sequence[Any] = (), *, seconds: float = 10.0
    ) -> list[Row]:
        """Run one statement.

        Raises:
            BusError: The database refused it, or cannot be reached.
        """
        with self.database.errors_as(BusError):
            return await self.database.fetch(sql, values, seconds=seconds)


def _tokens(holds: Sequence[HeldSession]) -> tuple[str, str]:
    """Return tokens and reads as PostgreSQL's arrays."""
    return _array(hold.token for hold in holds), _array(hold.reads for hold in holds)


def _array(values: Iterable[object]) -> str:
    """Return an array as PostgreSQL reads it; psycopg's own arrays took a twentieth of a worker's CPU."""
    return "{" + ",".join(map(str, values)) + "}"


def _quoted(group: str) -> str:
    escaped = group.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _sending(answer: Answer, files: Sequence[bytes | None]) -> list[Any]:
    """Return the values of the statement that writes an answer for its channel."""
    done = None if answer.stream is None else stream_coalescing_key(answer.stream)
    chat = encode_key(answer.address.session)
    told = chat if answer.report_to is None else encode_key(answer.report_to)
    key = encode_key(answer.id)
    return [answer.address.channel, chat, told, key, encode(answer), done, list(files)]
