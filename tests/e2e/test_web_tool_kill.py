"""Kill -9 while a page is read or erased: it is read once, and erased whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from killed_homes import STEP, killed
from odd_server import known_as_local, odd_server, reply

from bot.agent.tools.web import web_tools
from bot.bus.media.blobs import FolderBlobs
from bot.core.fetch.fetcher import Fetcher
from bot.llm.base import ModelReply, ModelRequest
from bot.runtime.app.residual_files import ResidualFiles
from bot.testing.host import Host, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

WORDS = "Ferries to Zanzibar leave at nine."


@asynccontextmanager
async def home(folder: Path, port: int) -> AsyncIterator[Host]:
    """Run the program with the web tools, and a model that reads the page when asked to."""

    def script(request: ModelRequest) -> ModelReply:
        last = request.messages[-1]
        if last["role"] == "user" and "read the page" in str(last["content"]):
            return tool_call_reply(("web_fetch", {"url": f"http://page.example:{port}/"}))
        return text_reply("I see.")

    blobs, clock = FolderBlobs(folder / "blobs"), ManualClock()
    fetcher = Fetcher(resolve=known_as_local, local=[("127.0.0.1", port)])
    made = session_host(
        folder,
        ScriptedModel(script),
        clock=clock,
        tools=web_tools(None, fetcher.fetch, blobs, clock),
        traces=lambda bus: ResidualFiles(folder, bus, blobs).erase,
    )
    async with made as host:
        yield host


def kept(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in (folder / "blobs").rglob("*") if file.is_file()]


async def prepared(folder: Path, port: int, step: str) -> str:
    """Bring a home to where a step is next; return its command."""
    async with home(folder, port) as host:
        if step == "read":
            return "read the page"
        await host.channel.ask("read the page")
        await host.channel.ask("/memory forget Zanzibar")
        await host.bus.drain()
        return host.channel.answers[-1].buttons[0].command


async def finished(folder: Path, port: int, step: str, command: str) -> None:
    async with home(folder, port) as host:
        await host.channel.send(command, message_id=STEP)
        await host.bus.drain()
        [result] = [entry for entry in await host.tape() if entry.kind == "tool_result"]
        if step == "read":
            assert WORDS in result.payload["content"]
            assert {one.text for one in host.channel.answers} <= {"I see."}
            assert kept(folder) == [WORDS.encode()]
        else:
            assert "Zanzibar" not in str(await host.tape())
            assert "attachments" not in result.meta
            assert kept(folder) == []


@pytest.mark.slow
@pytest.mark.parametrize("step", ["read", "forget"])
async def test_kill_9_at_any_moment_of_a_page_leaves_all_of_it_or_nothing(
    tmp_path: Path, step: str
) -> None:
    ready = tmp_path / "prepared"
    async with odd_server() as server:
        server.answers["/"] = reply(WORDS, "text/plain")
        command = await prepared(ready, server.port, step)
        async for folder, _ in killed("test_web_tool_kill", ready, command, port=server.port):
            await finished(folder, server.port, step, command)
