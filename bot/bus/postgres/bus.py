"""The PostgreSQL bus and its channel port; see ``bot.bus.ports`` for the contract."""

from __future__ import annotations

import logging
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio

from bot.bus.journal import AcceptedMessage, encode_in
from bot.bus.messages import Answer, DeliveryReport, Inbound, Outbound, PublishResult
from bot.bus.postgres.held_session import PostgresInbox
from bot.bus.postgres.held_sessions import HeldSessions
from bot.bus.postgres.outbound import OutboundReader, OutboundWriter
from bot.bus.postgres.queries import Queries
from bot.bus.queue_limits import check_length, queue_limit, session_full_error
from bot.core.clock import Clock, SystemClock
from bot.core.database.connections import Database
from bot.core.database.wakeups import POLL, Wakeups
from bot.core.errors import BusClosed, BusError
from bot.core.i18n import _

logger = logging.getLogger(__name__)

_HOUR = 3600.0
_SHUTDOWN_SECONDS = 5.0


class PostgresBus:
    """A message bus that many processes share.

    Args:
        database: The open database, at this version's schema; the caller closes it after the bus.
        wakeups: Running notifications.
        holder: Names this process to people.
        max_queued_messages: The most messages that wait in one session.
        max_held_sessions: The most sessions to hold at once; idle ones make place for others.
        lease: Seconds after which a hold ends unless it is renewed.
        clock: Dates acceptance.
        exports: The folder to put files of answers in for channels to send.
    """

    def __init__(
        self,
        database: Database,
        wakeups: Wakeups,
        *,
        holder: str,
        max_queued_messages: int,
        exports: Path,
        max_held_sessions: int = 512,
        lease: float = 30.0,
        clock: Clock | None = None,
    ) -> None:
        self._queries = Queries(database, holder, lease)
        self._wakeups = wakeups
        self._limit = max_queued_messages
        self._clock = clock or SystemClock()
        self._exports = exports
        self._sessions = HeldSessions(
            self._queries, wakeups, max_sessions=max_held_sessions, lease=lease
        )
        self._outbound_writer = OutboundWriter(self._queries)
        self._outbound_readers: dict[tuple[str, int, int, int], OutboundReader] = {}
        self._closed = False

    def channel(
        self, name: str, *, shard: int = 0, shards: int = 1, epoch: int = 0
    ) -> PostgresPort:
        """Return a channel's port."""
        which = (name, shard, shards, epoch)
        reader = self._outbound_readers.get(which)
        if reader is None:
            reader = OutboundReader(
                self._queries,
                self._wakeups,
                name,
                shard=shard,
                shards=shards,
                epoch=epoch,
                exports=self._exports,
            )
            self._outbound_readers[which] = reader
        return PostgresPort(self, reader)

    async def publish(self, inbound: Inbound, *, shard: int = 0, shards: int = 1) -> PublishResult:
        """Make a message durable; see ``ChannelPort.publish``."""
        self._open()
        check_length(inbound)
        record = (
            encode_in(AcceptedMessage(0, self._clock.now(), inbound)).decode("ascii").rstrip("\n")
        )
        waiting = await self._queries.publish(
            inbound, record, capacity=queue_limit(inbound, self._limit), shard=shard, shards=shards
        )
        if waiting:
            raise session_full_error(waiting)
        return PublishResult(duplicate=waiting is not None)

    async def claim(self) -> PostgresInbox:
        """Wait for a session that has items and no holder; become its holder."""
        return await self._sessions.claim()

    async def send(self, outbound: Outbound) -> None:
        """Send an item to its channel.

        Raises:
            BusError: An answer could not be recorded.
        """
        if isinstance(outbound, Answer):
            await self._outbound_writer.send(outbound)
        else:
            self._outbound_writer.put(outbound)

    async def drain(self) -> None:
        """Wait until every accepted message has been acknowledged."""
        while True:
            try:
                if not await self._queries.waiting():
                    return
            except BusError as error:
                logger.info("cannot tell whether messages wait: %s", error)
            await anyio.sleep(POLL / 2)

    async def purge(self) -> None:
        """Remove deleted rows from the tables' files; see ``bot.bus.ports.Bus``.

        A pending message leaves its table when it is acknowledged, and the file with the next
        vacuum. The server's write-ahead log and backups keep words for as long as they are
        configured to.
        """
        self._open()
        await self._queries.vacuum()

    def lock_session(self, session: str) -> AbstractAsyncContextManager[None]:
        """Keep a session from having a holder in another process meanwhile."""
        return self._sessions.lock_session(session)

    async def run(self) -> None:
        """Renew holds, listen for new items, and write partials, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._sessions.run)
            tasks.start_soon(self._outbound_writer.run)
            tasks.start_soon(self._forget)

    async def statistics(self) -> dict[str, Any]:
        """Return a snapshot: the queues of all processes, and this process's holds.

        Raises:
            BusError: The database cannot be reached.
        """
        counts = self._sessions.counts
        return {
            **await self._queries.statistics(),
            "held": len(self._sessions.held),
            **{name: counts[name] for name in ("lost", "renewals", "fenced", "poison")},
        }

    async def aclose(self) -> None:
        """Accept no more messages; release the held sessions."""
        self._closed = True
        with anyio.move_on_after(_SHUTDOWN_SECONDS, shield=True):
            await self._sessions.aclose()

    def _open(self) -> None:
        if self._closed:
            raise BusClosed(_("tapebot is stopping"))

    async def _forget(self) -> None:
        while True:
            try:
                await self._queries.forget()
            except BusError as error:
                logger.info("old ids will be deleted later: %s", error)
            await anyio.sleep(_HOUR)


class PostgresPort:
    """A channel's port."""

    def __init__(self, bus: PostgresBus, reader: OutboundReader) -> None:
        self._bus = bus
        self._outlet = reader

    async def publish(self, inbound: Inbound) -> PublishResult:
        """Make a message durable."""
        reader = self._outlet
        return await self._bus.publish(inbound, shard=reader.shard, shards=reader.shards)

    async def receive(self) -> Outbound:
        """Return the next item to show."""
        return await self._outlet.receive()

    async def report(self, report: DeliveryReport) -> None:
        """Report the delivery of an answer."""
        await self._outlet.report(report)

    async def wait_drained(self) -> None:
        """Wait until every accepted message is acknowledged."""
        await self._bus.drain()
