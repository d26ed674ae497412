"""What the tests of the servers share: a server of each kind, with people and places on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import anyio
import pytest

from testkit.discord.server import DiscordServer
from testkit.telegram.server import TelegramServer

if TYPE_CHECKING:
    from aiogram import Bot


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as listening:
        with listening.used_by_discord_py():
            yield listening


@pytest.fixture
def ann(server: DiscordServer) -> int:
    return server.user("ann", shown="Ann")


@pytest.fixture
def home(server: DiscordServer, ann: int) -> int:
    return server.guild("home", [ann])


@pytest.fixture
def general(server: DiscordServer, home: int) -> int:
    return server.channel(home, "general")


@pytest.fixture(scope="session")
def client_library() -> None:
    """Load the client before any test's clock runs: its import takes seconds."""
    import aiogram  # noqa: F401


@pytest.fixture
async def telegram(client_library) -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        with anyio.fail_after(20):
            yield server


@pytest.fixture
async def client(telegram: TelegramServer) -> AsyncIterator[Bot]:
    from aiogram import Bot
    from aiogram.client.session.aiohttp import AiohttpSession
    from aiogram.client.telegram import TelegramAPIServer

    session = AiohttpSession(api=TelegramAPIServer.from_base(telegram.url))
    yield Bot(telegram.token, session=session)
    # The session's own end waits a quarter of a second more.
    await (await session.create_session()).close()


@pytest.fixture
def ada(telegram: TelegramServer):
    return telegram.user(7, "Ada", "ada")


@pytest.fixture
def chat(telegram: TelegramServer, ada):
    return telegram.private(ada)
