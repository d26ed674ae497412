"""A platform in memory, and a dispatcher at work on it, for the tests of showing answers."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Self

import anyio

from bot.bus import Address, Answer, Button, DeliveryReport, Outbound
from channels.delivery.dispatcher import OutboundDispatcher
from channels.delivery.messenger import (
    FormattingRejected,
    MessageGone,
    MessengerError,
    OutgoingMessage,
    Pace,
)

LIMIT = 40
HERE = Address("paper", "1")
THERE = Address("paper", "2")


@dataclass
class Paper:
    """A platform in memory: a strip of messages per chat, and faults to come, one a call."""

    pages: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    replies: dict[str, str | None] = field(default_factory=dict)
    typed: list[str] = field(default_factory=list)
    calls: list[tuple[str, str, float]] = field(default_factory=list)
    faults: dict[str, list[MessengerError]] = field(default_factory=lambda: defaultdict(list))
    refuses_markup: bool = False
    numbers: int = 0

    def shown(self, address: Address = HERE) -> list[str]:
        return list(self.pages[address.chat_id].values())

    def rate_limit_key(self, address: Address) -> str:
        return address.chat_id

    def pace(self, _: Address) -> Pace:
        return Pace(edit=0.0, typing=0.01, first_edit=0.0)

    def render(self, text: str) -> list[str]:
        return [text[at : at + LIMIT] for at in range(0, len(text), LIMIT)]

    def render_plain(self, text: str) -> list[str]:
        return self.render(text.replace("*", ""))

    async def send(self, message: OutgoingMessage[str]) -> str:
        await self._called("send", message.address, message.piece)
        self.numbers += 1
        page = str(self.numbers)
        self.pages[message.address.chat_id][page] = message.piece
        self.replies[page] = message.reply_to
        return page

    async def edit(
        self, address: Address, message_id: str, piece: str, buttons: tuple[Button, ...] = ()
    ) -> None:
        await self._called("edit", address, piece)
        if message_id not in self.pages[address.chat_id]:
            raise MessageGone("there is no such message")
        self.pages[address.chat_id][message_id] = piece

    async def delete(self, address: Address, message_id: str) -> None:
        await self._called("delete", address, "")
        self.pages[address.chat_id].pop(message_id, None)

    async def typing(self, address: Address) -> None:
        await anyio.lowlevel.checkpoint()
        self.typed.append(address.chat_id)

    async def draft(self, address: Address, stream: str, piece: str) -> bool:
        return False

    async def _called(self, call: str, address: Address, piece: str) -> None:
        await anyio.lowlevel.checkpoint()
        self.calls.append((call, address.chat_id, anyio.current_time()))
        if self.refuses_markup and "*" in piece:
            raise FormattingRejected("can't parse entities")
        if self.faults[address.chat_id]:
            raise self.faults[address.chat_id].pop(0)


class Port:
    """A channel's two ends, held by the test."""

    def __init__(self) -> None:
        self.reports: list[DeliveryReport] = []
        self._give, self._take = anyio.create_memory_object_stream[Outbound](math.inf)
        self._reported = anyio.Event()

    def give(self, *outbound: Outbound) -> None:
        for one in outbound:
            self._give.send_nowait(one)

    async def receive(self) -> Outbound:
        return await self._take.receive()

    async def report(self, report: DeliveryReport) -> None:
        self.reports.append(report)
        self._reported.set()
        self._reported = anyio.Event()

    def finals(self) -> list[DeliveryReport]:
        return [report for report in self.reports if report.final]

    async def until_final(self, count: int, within: float = 20.0) -> None:
        with anyio.fail_after(within):
            while len(self.finals()) < count:
                await self._reported.wait()

    def close(self) -> None:
        self._give.close()
        self._take.close()


class Running:
    """A courier at work on paper."""

    def __init__(self, paper: Paper | None = None) -> None:
        self.paper = paper or Paper()
        self.port = Port()
        self.courier = OutboundDispatcher(self.port, self.paper)

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self.courier.run)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(*error)
        self.port.close()


def answer(text: str, name: str = "t1", address: Address = HERE, **more) -> Answer:
    return Answer(address, name, text, reply_to="7", stream=name, **more)
