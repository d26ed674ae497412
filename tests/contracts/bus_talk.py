"""The bus that the contract's tests are given, what they say over it, and how they take what comes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from bus_backends import BUSES, Backend

from bot.bus import Address, Bus, DeliveryReport, Inbound, ReceivedMessage, Sender, SessionInbox

HERE = Address("fake", "1")
DESK = Address("web", "desk.1")
SENT = datetime(2026, 2, 10, 10, 0, tzinfo=UTC)


@pytest.fixture(params=BUSES)
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    async with BUSES[request.param](tmp_path) as held:
        with anyio.fail_after(60):
            yield held


@pytest.fixture
def bus(backend: Backend) -> Bus:
    return backend.bus


def inbound(message_id: str, text: str = "hi", address: Address = HERE, **extra) -> Inbound:
    return Inbound(address, message_id, Sender("7", "Ada"), text, SENT, **extra)


async def publish(bus: Bus, *messages: Inbound) -> None:
    port = bus.channel("fake")
    for one in messages:
        assert not (await port.publish(one)).duplicate


async def take(inbox: SessionInbox, count: int) -> list[ReceivedMessage]:
    taken = []
    for _ in range(count):
        item = await inbox.receive()
        assert not isinstance(item, DeliveryReport)
        taken.append(item)
    return taken


def ids(deliveries: list[ReceivedMessage]) -> list[str]:
    return [one.inbound.id for one in deliveries]
