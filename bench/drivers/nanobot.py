"""Drives nanobot by its SDK: https://pypi.org/project/nanobot-ai/."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from loguru import logger
from nanobot import Nanobot

from bench.drivers.driver import Arguments, Chat, main
from bench.drivers.settings import nanobot_settings
from bench.workload import question, reply


class NanobotAssistant:
    """A running nanobot."""

    def __init__(self, bot: Nanobot) -> None:
        self._bot = bot

    async def say(self, chat: str, text: str, accepted: Callable[[], None]) -> None:  # noqa: ARG002
        """Take one turn; nanobot does not say when it has a message."""
        done = await self._bot.run(text, session_key=f"cli:{chat}", chat_id=chat)
        if not (done.content or "").startswith("Reply"):
            raise RuntimeError(f"nanobot answered {done.content!r}")

    async def finish(self) -> None:
        """Have nothing left to do: the turn is stored once it is answered."""


class NanobotDriver:
    """Drives it."""

    def __init__(self, arguments: Arguments) -> None:
        self._config = arguments.home / "config.json"
        arguments.home.mkdir(parents=True, exist_ok=True)
        settings = nanobot_settings(arguments.home, arguments.address)
        self._config.write_text(json.dumps(settings), encoding="utf-8")

    @asynccontextmanager
    async def open(self) -> AsyncIterator[NanobotAssistant]:
        """Run it, without logs, as its terminal does."""
        logger.disable("nanobot")
        async with Nanobot.from_config(self._config) as bot:
            yield NanobotAssistant(bot)

    async def seed(self, chats: Sequence[Chat]) -> None:
        """Ingest conversations; a summary stands for what is not in view."""
        async with Nanobot.from_config(self._config) as bot:
            for chat in chats:
                key = f"cli:{chat.name}"
                said = [
                    {"role": role, "content": text}
                    for turn in range(1, chat.stored // 2 + 1)
                    for role, text in (("user", question(turn)), ("assistant", reply(turn)))
                ]
                await bot.sessions.ingest(key, said)
                if chat.view < chat.stored:
                    # As nanobot's own consolidation does.
                    sessions = bot._loop.sessions  # noqa: SLF001 (there is no public way)
                    session = sessions.get_or_create(key)
                    session.commit_summary_checkpoint(
                        "Much was said.", insert_at=chat.stored - chat.view
                    )
                    sessions.save(session)


if __name__ == "__main__":
    main(NanobotDriver)
