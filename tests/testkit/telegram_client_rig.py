"""The real client of Telegram, at the server for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from testkit.telegram.server import TelegramServer

if TYPE_CHECKING:
    from aiogram import Bot


@asynccontextmanager
async def client_of(server: TelegramServer, token: str | None = None) -> AsyncIterator[Bot]:
    from aiogram import Bot
    from aiogram.client.session.aiohttp import AiohttpSession
    from aiogram.client.telegram import TelegramAPIServer

    session = AiohttpSession(api=TelegramAPIServer.from_base(server.url))
    bot = Bot(token or server.token, session=session)
    try:
        yield bot
    finally:
        # The session's own end waits a quarter of a second more.
        await (await session.create_session()).close()
