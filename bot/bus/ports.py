"""The bus's contract with session workers, channels and the supervisor.

Guarantees of every implementation:

- A message that ``publish`` accepted survives a kill and is delivered until it is acknowledged.
- Within a session, messages are delivered in the order in which they were accepted.
- A session's inbox has at most one holder at a time. A holder whose process was stopped for longer
  than its lease may not know yet that it lost the session: the tape's version is the fence.
- A message whose platform id was accepted before is not delivered again.
- Every queue is bounded: a full session refuses messages (``SessionFull``), with a reserve for
  commands, and partials are coalesced.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol

from bot.bus.messages import DeliveryReport, Inbound, Outbound, PublishResult, ReleaseRequest


class ReceivedMessage(Protocol):
    """An accepted message, delivered to the worker that holds its session."""

    @property
    def inbound(self) -> Inbound:
        """The message."""
        ...

    @property
    def accepted_at(self) -> datetime:
        """When the bus made it durable, before anything about it is on a tape."""
        ...

    @property
    def redelivered(self) -> bool:
        """Whether an earlier holder may have handled it."""
        ...

    @property
    def given_up(self) -> bool:
        """Whether too many holders died with it: it is not handled again unless its person asks."""
        ...

    async def ack(self) -> None:
        """Acknowledge it: its outcome is on the tape and was delivered; it never comes back.

        If it was pending when ``Bus.purge`` was called, its words are gone when this returns. If
        the storage refuses, they go with a later message. A database's files may hold its bytes
        until the next vacuum.

        Raises:
            SessionLost: Another holder has the session, and the message.
            BusError: It could not be recorded; the message is delivered again.
        """
        ...


class SessionInbox(Protocol):
    """One session's inbox, held by one worker."""

    @property
    def session(self) -> str:
        """The session's key."""
        ...

    async def receive(self) -> ReceivedMessage | DeliveryReport | ReleaseRequest | None:
        """Return the next item, waiting for it; None if ``wake`` is called first.

        Raises:
            SessionLost: This holder has lost the session.
        """
        ...

    def wake(self) -> None:
        """End the waiting of ``receive``, or of its next call."""
        ...

    def receive_nowait(self) -> ReceivedMessage | DeliveryReport | ReleaseRequest | None:
        """Return the next item; None if there is none."""
        ...

    def release(self, *, failed: bool = False) -> None:
        """Release the session; unacknowledged messages are delivered to the next holder.

        Args:
            failed: Whether the holder broke down: reports that it may not have handled are
                delivered again, too.
        """
        ...


class ChannelPort(Protocol):
    """A channel's port to the bus: it publishes messages and receives what to show."""

    async def publish(self, inbound: Inbound) -> PublishResult:
        """Make a message durable; the platform may be acknowledged only after this returns.

        Raises:
            SessionFull: Too many messages wait in the session; tell the person.
            BusClosed: The program is stopping.
            BusError: The message could not be recorded; tell the person.
        """
        ...

    async def receive(self) -> Outbound:
        """Return the next item to show in one of this channel's chats, waiting for it.

        Answers of one chat keep their order; chats take turns.
        """
        ...

    async def report(self, report: DeliveryReport) -> None:
        """Report the delivery of an ``Answer``."""
        ...

    async def wait_drained(self) -> None:
        """Wait until every accepted message is acknowledged."""
        ...


class Bus(Protocol):
    """The message bus."""

    def channel(self, name: str, *, shard: int = 0, shards: int = 1, epoch: int = 0) -> ChannelPort:
        """Return a channel's port.

        Args:
            name: The channel's name.
            shard: The shard's number; a shard receives items for the chats that it published from,
                and the first also items for chats of none.
            shards: How many shards there are.
            epoch: Epoch of the lease under which the channel runs: answers that an earlier holder
                received and did not report on are delivered again.
        """
        ...

    async def claim(self) -> SessionInbox:
        """Wait for a session that has items and no holder; become its holder."""
        ...

    async def send(self, outbound: Outbound) -> None:
        """Send an item to its channel; returns at once.

        An answer whose id is already on its way is not sent again.
        """
        ...

    async def drain(self) -> None:
        """Wait until every accepted message is acknowledged."""
        ...

    async def purge(self) -> None:
        """Remove the words of done messages from the disk.

        Pending messages stay until they are acknowledged, then go at once, also in another process
        after a kill: so the request that causes this leaves no words behind either. Ids that
        identify duplicates stay.

        Raises:
            BusClosed: The program is stopping.
            BusError: The storage refused; nothing is lost, and the next message tries again.
        """
        ...

    def lock_session(self, session: str) -> AbstractAsyncContextManager[None]:
        """Keep a session from having a holder in another process meanwhile.

        An idle holder there releases it (``ReleaseRequest``). A holder in this process stays.

        Raises:
            SessionBusy: The holder is not idle.
            BusError: The storage refused.
        """
        ...

    async def run(self) -> None:
        """Run background work until cancelled: renew leases, listen for new items."""
        ...

    async def statistics(self) -> dict[str, Any]:
        """Return a snapshot of the queues: sessions, pending messages, undelivered answers."""
        ...

    async def aclose(self) -> None:
        """Accept no more messages and close the files; nothing accepted is lost."""
        ...
