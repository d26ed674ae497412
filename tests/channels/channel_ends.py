"""Who is let in, and the bus's end of a channel, for the rigs of channels."""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio

from bot.bus import (
    AccessDecision,
    AccessRequest,
    BusError,
    ChannelPort,
    DeliveryReport,
    Inbound,
    PublishResult,
    Role,
)


@dataclass
class Door:
    """Lets in whom and what chats it knows, tells strangers the reply, and keeps knocks in order."""

    people: dict[str, Role] = field(default_factory=dict)
    places: set[str] = field(default_factory=set)
    reply: str | None = None
    replies_in_public: bool = False
    broken: bool = False
    knocks: list[AccessRequest] = field(default_factory=list)

    async def authorize(self, access_request: AccessRequest) -> AccessDecision:
        if self.broken:
            raise BusError("the list of people cannot be written")
        self.knocks.append(access_request)
        role = self.people.get(access_request.sender.id)
        if role is None and self.places & {*access_request.chat_ids}:
            role = "member"
        told = role is None and (access_request.private or self.replies_in_public)
        return AccessDecision(role, self.reply if told else None)


class Port:
    """The bus's port, which refuses what it was told to, and lets nothing pass a shut gate."""

    def __init__(self, port: ChannelPort, refusals: list[BusError]) -> None:
        self._port = port
        self.receive, self.wait_drained = port.receive, port.wait_drained
        self.refusals = refusals
        self.gate: anyio.Event | None = None
        self.reports: list[DeliveryReport] = []
        self.reported = anyio.Event()

    async def publish(self, inbound: Inbound) -> PublishResult:
        if self.gate is not None:
            await self.gate.wait()
        if self.refusals:
            raise self.refusals.pop(0)
        return await self._port.publish(inbound)

    async def report(self, report: DeliveryReport) -> None:
        self.reports.append(report)
        await self._port.report(report)
        self.reported.set()
        self.reported = anyio.Event()
