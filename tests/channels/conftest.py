"""A Discord and its people, for the tests of its channel."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest

from testkit.discord.server import DiscordServer


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as listening:
        with anyio.fail_after(40):
            yield listening


@pytest.fixture
def ada(server) -> int:
    return server.user("ada", shown="Ada")


@pytest.fixture
def eve(server) -> int:
    return server.user("eve", shown="Eve")


@pytest.fixture
def home(server, ada, eve) -> int:
    return server.guild("home", [ada, eve])


@pytest.fixture
def place(server, ada) -> int:
    return server.direct(ada)
