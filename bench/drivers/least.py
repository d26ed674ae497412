"""The least code that keeps a conversation: append, fsync, post, append, fsync.

``python -m bench.drivers.least HOME ADDRESS once`` says one thing and prints the answer.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bench.workload import question, reply

if TYPE_CHECKING:
    from bench.drivers.driver import Arguments, Chat


class Conversation:
    """One conversation: a file of messages."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a+", encoding="utf-8")
        self._file.seek(0)
        self.messages: list[dict[str, Any]] = []
        for line in self._file:
            self.messages.append(json.loads(line))
            if self.messages[-1]["role"] == "cut":
                self.messages.clear()

    def append(self, role: str, content: str) -> None:
        """Append a message, on the disk."""
        self.messages.append({"role": role, "content": content})
        self._file.write(json.dumps(self.messages[-1]) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())


class Least:
    """The least assistant."""

    def __init__(self, home: Path, address: str) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self._home = home
        self._url = urlsplit(address)
        self._connection = http.client.HTTPConnection(self._url.netloc, timeout=60)
        self._conversations: dict[str, Conversation] = {}

    def answer(self, chat: str, text: str, accepted: Callable[[], None]) -> str:
        """Take one turn; return what the model says."""
        if chat not in self._conversations:
            self._conversations[chat] = Conversation(self._home / f"{chat}.jsonl")
        talk = self._conversations[chat]
        talk.append("user", text)
        accepted()
        body = json.dumps({"model": "scripted", "messages": talk.messages, "stream": True})
        self._connection.request("POST", f"{self._url.path}/chat/completions", body)
        said = ""
        for line in self._connection.getresponse().read().splitlines():
            if line.startswith(b"data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    said += choice["delta"].get("content") or ""
        talk.append("assistant", said)
        return said

    # As the drivers need it.

    async def say(self, chat: str, text: str, accepted: Callable[[], None]) -> None:
        """Take one turn."""
        self.answer(chat, text, accepted)

    async def finish(self) -> None:
        """Have nothing left to do."""


class LeastDriver:
    """Drives it."""

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Least]:
        """Begin."""
        yield Least(self._arguments.home, self._arguments.address)

    async def seed(self, chats: Sequence[Chat]) -> None:
        """Write conversations."""
        self._arguments.home.mkdir(parents=True, exist_ok=True)
        for chat in chats:
            with (self._arguments.home / f"{chat.name}.jsonl").open("w", encoding="utf-8") as file:
                for turn in range(1, chat.stored // 2 + 1):
                    if 2 * turn == chat.stored - chat.view + 2 > 2:
                        file.write(json.dumps({"role": "cut"}) + "\n")
                    for role, text in (("user", question(turn)), ("assistant", reply(turn))):
                        file.write(json.dumps({"role": role, "content": text}) + "\n")


if __name__ == "__main__":
    if sys.argv[3] == "once":
        print(Least(Path(sys.argv[1]), sys.argv[2]).answer("once", question(1), lambda: None))
    else:
        from bench.drivers.driver import main

        main(LeastDriver)
