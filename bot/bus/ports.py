"""The bus's contract: what a session worker, a channel and the supervisor may ask of it.

Guarantees of every implementation:

- A message that ``publish`` accepted survives a kill and is delivered until it is acknowledged.
- Within a session, messages are delivered in the order in which they were accepted.
- A session's inbox has at most one holder at a time. A holder in a process that was stopped for longer
  than its lease may not know yet that it is none any more: the tape's version is the fence.
- A message whose platform id was accepted before is not delivered again.
- Every queue is bounded: a full session refuses (``SessionFull``), though it takes some commands
  more, and partials are coalesced.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol

from bot.bus.messages import DeliveryReport, Inbound, Outbound, PublishResult, ReleaseRequest


class Delivery(Protocol):
    """One accepted message in the hands of the worker that owns its session."""

    @property
    def inbound(self) -> Inbound:
        """The message."""
        ...

    @property
    def accepted_at(self) -> datetime:
        """When the bus made it durable; nothing about it is on a tape before that."""
        ...

    @property
    def redelivered(self) -> bool:
        """True where an earlier holder may have worked on it."""
        ...

    @property
    def given_up(self) -> bool:
        """True where so many holders died with it that it is not worked again unless its person asks."""
        ...

    async def ack(self) -> None:
        """Say that its outcome is on the tape and was delivered; it never comes back.

        Of a message that waited when ``Bus.compact`` was called, nothing can be read any more when
        this returns, unless the storage refuses: then it goes with a later message. A database's
        files may hold its bytes until they are swept again.

        Raises:
            SessionLost: Another holder has the session by now, and the message.
            BusError: It could not be recorded; the message comes again.
        """
        ...


class SessionInbox(Protocol):
    """The receiving end of one session, held by one worker."""

    @property
    def session(self) -> str:
        """The session's key."""
        ...

    async def receive(self) -> Delivery | DeliveryReport | ReleaseRequest:
        """Return what comes next, waiting for it.

        Raises:
            SessionLost: The session is no longer this holder's.
        """
        ...

    def receive_nowait(self) -> Delivery | DeliveryReport | ReleaseRequest | None:
        """Return the next one if there is one."""
        ...

    def release(self, *, failed: bool = False) -> None:
        """Give the session up; messages not acknowledged are delivered to the next holder.

        Args:
            failed: The holder broke down: reports that it may not have got to come again, too.
        """
        ...


class ChannelPort(Protocol):
    """What a channel is given: one end to send and one to receive."""

    async def publish(self, inbound: Inbound) -> PublishResult:
        """Make a message durable, then return; only now may the platform be acknowledged.

        Raises:
            SessionFull: The session has too many waiting; tell the person.
            BusClosed: The program is stopping.
            BusError: The message could not be recorded; tell the person.
        """
        ...

    async def receive(self) -> Outbound:
        """Return the next thing to show in one of this channel's chats, waiting for it.

        Answers of one chat come in order; chats take turns.
        """
        ...

    async def report(self, report: DeliveryReport) -> None:
        """Say what became of an ``Answer``."""
        ...

    async def wait_drained(self) -> None:
        """Wait until nothing that was accepted waits for its answer."""
        ...


class Bus(Protocol):
    """The message bus."""

    def channel(self, name: str, *, shard: int = 0, shards: int = 1, epoch: int = 0) -> ChannelPort:
        """Return a channel's two ends.

        Args:
            name: The channel's.
            shard: Which of the channel's shards; it is given what is for the chats that it published
                from, and the first what is for none of them.
            shards: How many there are.
            epoch: That of the lease under which the channel runs: what was given to an earlier one and
                not reported on is given again.
        """
        ...

    async def claim(self) -> SessionInbox:
        """Wait for a session that has something and no holder; become its holder."""
        ...

    async def send(self, outbound: Outbound) -> None:
        """Hand something to its channel; returns at once.

        An answer whose id is on its way already is not sent again.
        """
        ...

    async def drain(self) -> None:
        """Wait until every accepted message has been acknowledged."""
        ...

    async def compact(self) -> None:
        """Keep on disk no word of messages that are done with.

        What waits stays, and is gone from the disk as soon as it is acknowledged, also by another
        process after a kill: so the request that leads to this leaves no words behind either. Ids
        by which duplicates are known stay.

        Raises:
            BusClosed: The program is stopping.
            BusError: The storage refused; nothing is lost, and it is tried again with the next
                message.
        """
        ...

    def lock_session(self, session: str) -> AbstractAsyncContextManager[None]:
        """Keep a session from having a holder in another process meanwhile.

        A holder there that has nothing to do gives it up (``LetGo``). One in this process stays.

        Raises:
            SessionBusy: Its holder has something to do.
            BusError: The storage refused.
        """
        ...

    async def run(self) -> None:
        """Do in the background what the bus needs, until cancelled: renew leases, hear of what is new."""
        ...

    async def statistics(self) -> dict[str, Any]:
        """Return a snapshot: sessions with waiting messages, how many, undelivered answers."""
        ...

    async def aclose(self) -> None:
        """Stop taking messages and close the files; nothing accepted is lost."""
        ...
