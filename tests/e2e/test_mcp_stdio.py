"""``tapebot mcp``: a program starts it and just has memory, whether or not a bot runs."""

from __future__ import annotations

import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from folded import fold_entries
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from preloaded import environment
from sampling import many
from web_program import web_program

from bot.memory.session.linking.scope_registry import scope_entry
from bot.tape.entries import TapeEntry, message
from bot.tape.stores.file import FileTapeStore

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SCOPE, SEED = "person:console:local", 20_261_126


@pytest.fixture
async def home(tmp_path) -> Path:
    store = FileTapeStore(tmp_path / "home" / "tapes")
    await store.create_tape("console:local")
    ada = {"id": "local", "name": "Ada"}
    said = message("user", "My boat is called Undine.", sender=ada)
    await store.append_many("console:local", [scope_entry(SCOPE), said])
    await store.close()
    return tmp_path / "home"


@asynccontextmanager
async def program(home: Path, **settings: str) -> AsyncIterator[Client]:
    given = environment(home.parent, **settings)
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "bot", "mcp"], env=given, cwd=home
    )
    who = types.Implementation(name="Claude Desktop", version="1.0")
    async with Client(stdio_client(server), client_info=who) as client:
        yield client


async def told(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.content[0].text


async def entries_of(home: Path, tape: str) -> list[TapeEntry]:
    store = FileTapeStore(home / "tapes", read_only=True)
    try:
        return await store.read(tape)
    finally:
        await store.close()


async def pending(home: Path) -> list[str]:
    return [fact.text for fact in fold_entries(await entries_of(home, SCOPE)).pending()]


async def test_it_works_without_a_bot_beside_one_and_after_one(home, tmp_path):
    async with program(home) as client, web_program(tmp_path) as bot:
        assert len((await client.list_tools()).tools) == 5
        assert "Undine" in await told(client, "search", query="boat")
        await told(client, "propose", text="The user likes tea.")
        await bot.start()
        assert "Undine" in await told(client, "search", query="boat")
        await told(client, "propose", text="The user likes cake.")
        await bot.end(signal.SIGKILL)
        assert "Undine" in await told(client, "recall", about="boat")
        await told(client, "propose", text="The user likes pie.")
        await told(client, "propose", text="The user likes cake.")
    assert await pending(home) == [f"The user likes {one}." for one in ("tea", "cake", "pie")]
    [first, *_] = [one for one in await entries_of(home, "mcp:local:stdio") if one.id > 2]
    assert first.meta["client"] == "stdio (Claude Desktop 1.0)"


async def test_kills_below_a_program_that_repeats_propose_each_fact_once(home, tmp_path):
    chance = random.Random(SEED)
    texts = [f"The user owns book number {number}." for number in range(many(10))]
    async with web_program(tmp_path) as bot:
        await bot.start()
        token = await bot.run("web", "token", "editor", "--rights", "propose")
        for text in texts:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_insist, f"{bot.url}/mcp", token, text)
                await anyio.sleep(chance.uniform(0, 0.15))
                await bot.end(signal.SIGKILL)
                await bot.start()
        await bot.end(signal.SIGKILL)
    assert sorted(await pending(home)) == sorted(texts)
    held = [one for one in await entries_of(home, "mcp:local:editor") if one.kind == "tool_result"]
    assert sorted(one.payload["content"] for one in held) == sorted(texts)


async def _insist(url: str, token: str, text: str) -> None:
    """Propose a fact, again and again until the answer arrives."""
    while True:
        try:
            async with (
                httpx2.AsyncClient(
                    headers={"Authorization": f"Bearer {token}"}, timeout=60
                ) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                await told(client, "propose", text=text)
                return
        except* (httpx2.TransportError, MCPError):
            await anyio.sleep(0.05)
