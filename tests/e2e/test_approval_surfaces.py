"""A call that waits is answered on Telegram, Discord and the site at once: one answer counts, all are told which."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest
from kill_checks import read_tape
from mcp_talk import RAW, calls_of
from platform_program import PROGRAM, environment, running
from waiting import until

from testkit.discord.server import DiscordServer
from testkit.openai_server import Call, Reply, ScriptedOpenAI
from testkit.ports import kept_port
from testkit.telegram.server import TelegramServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROUNDS = 2
ADA = 7


def obeying(body: dict[str, Any]) -> Reply:
    """Call the tool when the newest message asks for that."""
    last = body["messages"][-1]
    if last["role"] == "user" and "use it" in str(last["content"]):
        return Reply(calls=(Call("mcp_files_fine", {}),))
    return Reply("All right.")


@dataclass(slots=True)
class Surfaces:
    """Where an owner can answer.

    Attributes:
        telegram: The platform on which the call is asked for.
        discord: Another platform.
        direct: The owner's chat there.
        ada: The owner there.
        site: A client of the site's API.
    """

    telegram: TelegramServer
    discord: DiscordServer
    direct: int
    ada: int
    site: httpx.AsyncClient

    async def by_telegram(self, number: int) -> None:
        """Press the button below the question."""
        asked = f"(call {number})"
        shown = next(one for one in self.telegram.records.messages(ADA) if asked in one.text)
        self.telegram.press(shown, f"Approve {number}")

    async def by_discord(self, number: int, word: str = "approve") -> None:
        """Give the command in another chat."""
        self.discord.slash(self.direct, self.ada, word, {"what": str(number)})

    async def by_site(self, number: int, word: str = "approve") -> str:
        """Give the command on the site's page of the chat; return what it is told."""
        given = {"session": f"telegram:{ADA}", "text": f"/{word} {number}"}
        answer = await self.site.post("/api/v1/commands", json=given)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["text"])

    async def told_on_discord(self, number: int) -> None:
        """Wait until Discord says what became of a call."""
        known = re.compile(
            rf"[Cc]all {number}\b.*(approved|denied|not run)|Approved: call {number}\b"
        )
        await self.discord.until(
            lambda _: any(known.search(one.content) for one in self.discord.answers(self.direct))
        )


@asynccontextmanager
async def surfaces(folder: Path, files: Path, port: int) -> AsyncIterator[Surfaces]:
    """Run the program between both platforms, with its site and a server whose tool waits for a yes."""
    async with TelegramServer() as telegram, DiscordServer() as discord:
        telegram.private(telegram.user(ADA, "Ada"))
        ada = discord.user("Ada")
        server = {"command": sys.executable, "args": [str(RAW), str(files)]}
        async with ScriptedOpenAI(obeying) as model:
            settings = {
                "TAPEBOT_TELEGRAM_TOKEN": telegram.token,
                "TAPEBOT_TELEGRAM_API_BASE": telegram.url,
                "TAPEBOT_DISCORD_TOKEN": discord.token,
                "TAPEBOT_DISCORD_API_BASE": discord.api_url,
                "TAPEBOT_DISCORD_GATEWAY_URL": discord.gateway_url,
                "TAPEBOT_OWNERS": f"telegram:{ADA},discord:{ada}",
                "TAPEBOT_WEB_LISTEN": f"127.0.0.1:{port}",
                "TAPEBOT_MODEL": "openai/test",
                "TAPEBOT_MODEL_API_BASE": model.base_url,
                "TAPEBOT_MODEL_API_KEY": "sk-of-nobody",
                "TAPEBOT_MCP": json.dumps({"files": server}),
            }
            async with running(folder, **settings):
                await telegram.until(lambda books: books.polling)
                await discord.until_connected(within=60)
                async with await site(folder, port, settings) as client:
                    await until(lambda: server_is_there(client), every=0.1)
                    yield Surfaces(telegram, discord, discord.direct(ada), ada, client)


async def site(folder: Path, port: int, settings: dict[str, str]) -> httpx.AsyncClient:
    """Return a client of the site."""
    made = await anyio.to_thread.run_sync(
        lambda: subprocess.run(
            [*PROGRAM, "web", "token", "test"],
            cwd=folder,
            env=environment(folder, **settings),
            check=True,
            capture_output=True,
            text=True,
        )
    )
    headers = {"Authorization": f"Bearer {made.stdout.split()[-1]}"}
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60)


async def server_is_there(client: httpx.AsyncClient) -> bool:
    found = (await client.get("/api/v1/mcp")).json()
    return bool(found["servers"][0]["connected"])


async def told_already(folder: Path, number: int, times: int) -> bool:
    """Say whether the chat that asked told so many that a call was decided already."""
    entries = await read_tape(folder / "home", f"telegram:{ADA}")
    said = [str(one.payload) for one in entries if one.kind == "event"]
    told = re.compile(rf"Call {number} was (approved|denied) already")
    return sum(told.search(one) is not None for one in said) >= times


async def test_of_answers_from_three_platforms_at_once_exactly_one_counts(tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    with kept_port() as port:
        async with surfaces(tmp_path, files, port) as here:
            telegram = here.telegram
            chat = telegram.private(ADA)
            telegram.say(chat, ADA, "/mcp allow files fine ask")
            await telegram.until(lambda books: any("Allowed" in one for one in books.texts(ADA)))
            for number in range(1, ROUNDS + 1):
                telegram.say(chat, ADA, f"please use it, number {number}")
                asked = f"(call {number})"
                await telegram.until(
                    lambda books, asked=asked: any(asked in one for one in books.texts(ADA))
                )
                word = "deny" if number % 2 == 0 else "approve"
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(here.by_site, number, word)
                    tasks.start_soon(here.by_discord, number)
                    tasks.start_soon(here.by_telegram, number)
                await here.told_on_discord(number)
                assert f"Call {number} was " in await here.by_site(number)
                await until(partial(told_already, tmp_path, number, 3), every=0.2)
    entries = await read_tape(tmp_path / "home", f"telegram:{ADA}")
    decided = [one.data for one in entries if one.name == "tool.decided"]
    assert [one["number"] for one in decided] == [*range(1, ROUNDS + 1)]
    approved = [one for one in decided if one["decision"] == "yes"]
    assert len(calls_of(files)) == len(approved) >= ROUNDS // 2
    results = [one.data for one in entries if one.name == "tool.result"]
    assert [one["status"] for one in results] == ["ok"] * len(approved)
