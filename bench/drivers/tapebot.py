"""Drives tapebot by a channel of its own, as a chat platform does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio

from bench.drivers.driver import Arguments, Chat, main
from bench.program import Program, program
from bench.seed import Seeder
from bot.tape.stores.file import FileTapeStore

_WIDE = {"context_tokens": 100_000_000, "memory_window": 100_000}


class TapebotAssistant:
    """A running tapebot."""

    def __init__(self, running: Program) -> None:
        self._running = running

    async def say(self, chat: str, text: str, accepted: Callable[[], None]) -> None:
        """Take one turn; it is over when the session is idle."""
        await self._running.crowd.say(chat, text, accepted)

    async def finish(self) -> None:
        """Wait until the receipts are stored."""
        await self._running.app.bus.drain()


class TapebotDriver:
    """Drives it."""

    def __init__(self, arguments: Arguments) -> None:
        self._home = arguments.home
        self._settings: dict[str, Any] = {
            "model_api_base": arguments.address,
            "model_api_key": "bench",
            **(_WIDE if arguments.wide else {}),
        }

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TapebotAssistant]:
        """Run it."""
        async with program(self._home, "openai/scripted", **self._settings) as running:
            yield TapebotAssistant(running)

    async def seed(self, chats: Sequence[Chat]) -> None:
        """Write conversations; a consolidation stands for what is not in view."""
        store = FileTapeStore(self._home / "tapes", sync=False)
        for chat in chats:
            seeder = Seeder(store, chat.name)
            await seeder.begin()
            hidden = chat.stored - chat.view
            await seeder.turns(hidden // 2)
            if hidden:
                await seeder.hand_off()
            await seeder.turns(chat.view // 2)
        await store.close()


if __name__ == "__main__":
    main(TapebotDriver, anyio.run)
