"""Wrap a bus with metrics and tracing; its contract stays the same.

A trace follows its message: ``publish`` starts it, the session's turn continues it, the answer
carries it to the channel, and the final delivery report ends it.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

from bot.bus.messages import (
    Answer,
    DeliveryReport,
    Inbound,
    Outbound,
    PublishResult,
    ReleaseRequest,
)
from bot.bus.ports import Bus, ChannelPort, ReceivedMessage, SessionInbox
from bot.core.errors import SessionFull
from bot.core.telemetry import metrics
from bot.core.telemetry.instruments import MetricSample
from bot.core.telemetry.tracing import (
    Span,
    current_traceparent,
    find_traceparent,
    save_traceparent,
    span,
    start_span,
)

_UNDER_WAY = 10_000
"""The most answers without a final report that one channel measures; the oldest are dropped."""


class InstrumentedBus:
    """A bus with metrics and tracing; see ``bot.bus.ports.Bus`` for the contract."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def channel(self, name: str, *, shard: int = 0, shards: int = 1, epoch: int = 0) -> ChannelPort:
        """Return a channel's port."""
        return InstrumentedPort(
            name, self._bus.channel(name, shard=shard, shards=shards, epoch=epoch)
        )

    async def claim(self) -> SessionInbox:
        """Wait for a session that has items and no holder."""
        return InstrumentedInbox(await self._bus.claim())

    async def send(self, outbound: Outbound) -> None:
        """Send an answer, partial or activity to its channel."""
        if isinstance(outbound, Answer) and outbound.trace is None:
            trace = find_traceparent(outbound.session, outbound.id, outbound.reply_to)
            trace = trace or current_traceparent()
            outbound = outbound if trace is None else replace(outbound, trace=trace)
        await self._bus.send(outbound)

    async def drain(self) -> None:
        """Wait until every accepted message has been acknowledged."""
        await self._bus.drain()

    async def purge(self) -> None:
        """Remove the words of done messages from the disk."""
        await self._bus.purge()

    def lock_session(self, session: str) -> AbstractAsyncContextManager[None]:
        """Keep a session from having a holder in another process meanwhile."""
        return self._bus.lock_session(session)

    async def run(self) -> None:
        """Run the bus's background work."""
        await self._bus.run()

    async def statistics(self) -> dict[str, Any]:
        """Return a snapshot of the bus's queues."""
        return await self._bus.statistics()

    async def aclose(self) -> None:
        """Accept no more messages, and close the files."""
        await self._bus.aclose()

    async def metric_samples(self) -> list[MetricSample]:
        """Return the statistics as metrics, for ``MonitoringServer.sample``."""
        return bus_samples(await self._bus.statistics())


class InstrumentedInbox:
    """One session's inbox with metrics and tracing."""

    def __init__(self, inbox: SessionInbox) -> None:
        self._inbox = inbox

    @property
    def session(self) -> str:
        """The session's key."""
        return self._inbox.session

    async def receive(self) -> ReceivedMessage | DeliveryReport | ReleaseRequest | None:
        """Return the next item, waiting for it; None if ``wake`` is called first."""
        item = await self._inbox.receive()
        return None if item is None else _seen(item)

    def wake(self) -> None:
        """End the waiting of ``receive``."""
        self._inbox.wake()

    def receive_nowait(self) -> ReceivedMessage | DeliveryReport | ReleaseRequest | None:
        """Return the next item; None if there is none."""
        item = self._inbox.receive_nowait()
        return None if item is None else _seen(item)

    def release(self, *, failed: bool = False) -> None:
        """Release the session."""
        self._inbox.release(failed=failed)


class InstrumentedPort:
    """A channel's port with metrics and tracing."""

    def __init__(self, name: str, port: ChannelPort) -> None:
        self._name = name
        self._port = port
        self._under_way: OrderedDict[tuple[str, str], tuple[float, Span]] = OrderedDict()

    async def publish(self, inbound: Inbound) -> PublishResult:
        """Make a message durable."""
        outcome = "refused"
        try:
            with span("publish", inbound.trace, channel=self._name) as here:
                if (trace := current_traceparent()) is not None:
                    inbound = replace(inbound, trace=trace)
                accepted = await self._port.publish(inbound)
                outcome = "duplicate" if accepted.duplicate else "accepted"
                here.set(outcome=outcome)
        except SessionFull:
            outcome = "full"
            raise
        finally:
            metrics.PUBLISHED.add(1, self._name, outcome)
        return accepted

    async def receive(self) -> Outbound:
        """Return the next item to show."""
        outbound = await self._port.receive()
        if isinstance(outbound, Answer):
            key = (outbound.session, outbound.id)
            self._over(key, "again")
            self._under_way[key] = (
                time.monotonic(),
                start_span("deliver", outbound.trace, channel=self._name),
            )
            if len(self._under_way) > _UNDER_WAY:
                self._over(next(iter(self._under_way)), "unknown")
        return outbound

    async def report(self, report: DeliveryReport) -> None:
        """Report the delivery of an answer."""
        await self._port.report(report)
        if report.final:
            outcome = "delivered" if report.delivered else "refused"
            self._over((report.session, report.answer), outcome)

    async def wait_drained(self) -> None:
        """Wait until every accepted message is acknowledged."""
        await self._port.wait_drained()

    def _over(self, key: tuple[str, str], outcome: str) -> None:
        taken = self._under_way.pop(key, None)
        if taken is None:
            return
        since, here = taken
        here.set(outcome=outcome)
        if outcome == "refused":
            here.fail("refused")
        here.end()
        metrics.DELIVERY_SECONDS.observe(time.monotonic() - since, self._name, outcome)


def bus_samples(statistics: Mapping[str, Any]) -> list[MetricSample]:
    """Return a bus's statistics as metrics; missing values are left out."""
    return [MetricSample(of, statistics[key]) for of, key in _SAMPLED if key in statistics]


_SAMPLED = (
    (metrics.INBOUND_DEPTH, "pending"),
    (metrics.INBOUND_AGE, "oldest_seconds"),
    (metrics.UNDELIVERED, "undelivered_answers"),
    (metrics.HOLDS, "held"),
    (metrics.HOLDS_LOST, "lost"),
    (metrics.HOLDS_RENEWED, "renewals"),
    (metrics.ACKS_FENCED, "fenced"),
    (metrics.POISON, "poison"),
)


def _seen(
    item: ReceivedMessage | DeliveryReport | ReleaseRequest,
) -> ReceivedMessage | DeliveryReport | ReleaseRequest:
    if not isinstance(item, DeliveryReport | ReleaseRequest):
        if item.redelivered:
            metrics.REDELIVERED.add(1)
        inbound = item.inbound
        save_traceparent(inbound.session, inbound.id, inbound.trace)
    return item
