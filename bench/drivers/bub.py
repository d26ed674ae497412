"""Drives bub as its command ``bub run`` does: https://pypi.org/project/bub/."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.drivers.driver import Arguments, Chat, main
from bench.drivers.settings import bub_environment
from bench.workload import question, reply

_MARK = 990_000_001


class BubAssistant:
    """A running bub."""

    def __init__(self, framework: Any) -> None:
        self._framework = framework

    async def say(self, chat: str, text: str, accepted: Callable[[], None]) -> None:  # noqa: ARG002
        """Take one turn; bub does not say when it has a message."""
        from bub.channels.message import ChannelMessage

        message = ChannelMessage(f"cli:{chat}", "cli", text, chat, context={"sender_id": "human"})
        done = await self._framework.process_inbound(message)
        if not done.model_output.startswith("Reply"):
            raise RuntimeError(f"bub answered {done.model_output!r}")

    async def finish(self) -> None:
        """Have nothing left to do: the turn is stored once it is answered."""


class BubDriver:
    """Drives it."""

    def __init__(self, arguments: Arguments) -> None:
        self._home = arguments.home
        self._home.mkdir(parents=True, exist_ok=True)
        os.environ.update(bub_environment(arguments.home, arguments.address))
        os.chdir(arguments.home)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[BubAssistant]:
        """Run it, without logs."""
        # Imported late: it reads its settings from the environment.
        from bub import BubFramework
        from loguru import logger

        logger.disable("bub")
        framework = BubFramework(self._home / "config.yml")
        framework.load_hooks()
        async with framework.running():
            yield BubAssistant(framework)

    async def seed(self, chats: Sequence[Chat]) -> None:
        """Take one turn in each, and repeat what bub wrote for it with other words."""
        for chat in chats:
            before = set(self._tapes())
            async with self.open() as assistant:
                await assistant.say(chat.name, question(_MARK), lambda: None)
            (tape,) = set(self._tapes()) - before
            _multiply(tape, chat)

    def _tapes(self) -> list[Path]:
        return list((self._home / "tapes").glob("*.jsonl"))


def _multiply(tape: Path, chat: Chat) -> None:
    entries = [json.loads(line) for line in tape.read_text(encoding="utf-8").splitlines()]
    first = next(at for at, one in enumerate(entries) if one["kind"] != "anchor")
    head, turn = entries[:first], json.dumps(entries[first:])
    said = next(one["payload"]["content"] for one in entries if _is_reply(one))
    written = list(head)
    for number in range(1, chat.stored // 2 + 1):
        if chat.view < chat.stored and number == (chat.stored - chat.view) // 2 + 1:
            written.append({**head[0], "payload": {"name": "handoff", "state": {}}})
        text = turn.replace(question(_MARK), question(number)).replace(said, reply(number))
        written += json.loads(text)
    with tape.open("w", encoding="utf-8") as file:
        for at, entry in enumerate(written, 1):
            file.write(json.dumps({**entry, "id": at}, ensure_ascii=False) + "\n")


def _is_reply(entry: dict[str, Any]) -> bool:
    return bool(entry["kind"] == "message" and entry["payload"].get("role") == "assistant")


if __name__ == "__main__":
    main(BubDriver)
