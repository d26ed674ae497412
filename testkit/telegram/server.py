"""A Telegram Bot API server for tests on a real socket, with user actions and exact records.

An unmodified bot client runs against it, by polling or webhook (aiogram:
``TelegramAPIServer.from_base(telegram.url)``)::

    async with TelegramServer() as telegram:
        chat = telegram.private(telegram.user(7, "Ada"))
        telegram.say(chat, 7, "Hello?")
        await telegram.until_messages(chat, 1)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self

import anyio
from aiohttp import web
from anyio.abc import TaskGroup

from testkit.loopback import LoopbackServer, Signal
from testkit.telegram.api import BotApiHandler
from testkit.telegram.faults import TelegramFaults
from testkit.telegram.records import TelegramRecords
from testkit.telegram.user_actions import TelegramUserActions
from testkit.telegram.world import Chat

TELEGRAM_TEST_TOKEN = "4200001:TEST-TOKEN-of-the-test-server"  # noqa: S105 - opens nothing


class TelegramServer(TelegramUserActions, LoopbackServer):
    """The server; an async context manager."""

    def __init__(self, token: str = TELEGRAM_TEST_TOKEN) -> None:
        super().__init__()
        self.token = token
        self.me = self.bot(token)
        self.port = 0
        self.faults = TelegramFaults()
        self._api = BotApiHandler(self.world, self.faults)
        self._changed = Signal()
        self.records.changed = self._changed.set
        self._stack = AsyncExitStack()
        self._tasks: TaskGroup
        self._site: web.TCPSite | None = None
        app = self.application()
        app.router.add_route("*", "/bot{token:[^/]+}/{method}", self._api.call)
        app.router.add_get("/file/bot{token:[^/]+}/{path:.+}", self._api.download)

    async def __aenter__(self) -> Self:
        self._stack.push_async_callback(self._runner.cleanup)
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._api.tasks = self._tasks
        await self._runner.setup()
        await self.up()
        return self

    async def __aexit__(self, *_raised: object) -> None:
        self._api.end_polls()
        self._tasks.cancel_scope.cancel()
        await self._stack.aclose()

    async def down(self) -> None:
        """Refuse new connections and break open ones, until ``up``."""
        assert self._site is not None, "the server is down already"
        await self._site.stop()
        self._site = None
        self.records.changed()
        for handler in self._runner.server.connections if self._runner.server else ():
            if handler.transport is not None:
                handler.transport.abort()
        self._api.end_polls()

    async def up(self) -> None:
        """Listen again on the same port."""
        self._site = await self.listen()
        self.records.changed()

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        await self.down()
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await self.up()

    async def until(self, claim: Callable[[TelegramRecords], Any], within: float = 60.0) -> None:
        """Wait until a predicate on the records holds."""
        with anyio.move_on_after(within):
            while not claim(self.records):
                await self._changed.wait()
            return
        raise TimeoutError(f"not within {within} s: {self.records.statistics()}")

    async def until_messages(self, chat: Chat, count: int, within: float = 60.0) -> None:
        number = self._room(chat).chat.id
        await self.until(lambda books: len(books.messages(number)) >= count, within)

    async def until_confirmed(self, within: float = 60.0) -> None:
        await self.until(lambda books: not books.unconfirmed, within)
