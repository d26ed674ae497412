"""Kill -9 while a tool of an MCP server is called: it is called at most once, and what happened is told."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from killed_homes import STEP, killed, lives
from mcp_talk import RAW, calls_of, http_process, obeying, port_of, tool, write_tools
from sampling import is_sample
from waiting import until

from bot.mcp_client import McpServer, client
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CALL = "use mcp_files_fine"


# A busy machine may take longer to start a server than people would wait.
client._START_SECONDS = 60.0


@asynccontextmanager
async def home(folder: Path, server: dict[str, Any]) -> AsyncIterator[Host]:
    servers = {"files": McpServer(**server)}
    async with session_host(folder, ScriptedModel(obeying), mcp=servers) as host:
        assert host.mcp is not None
        connection = host.mcp.connections["files"]
        await until(lambda: connection.connected)
        yield host


@contextmanager
def serving(files: Path, wire: str) -> Iterator[None]:
    """Run a server on a socket; one over pipes is started by the program itself."""
    write_tools(files, tool("fine"))
    if wire == "stdio":
        yield
        return
    with http_process(files):
        yield


async def settings(files: Path, wire: str) -> dict[str, Any]:
    if wire == "stdio":
        return {"command": sys.executable, "args": [str(RAW), str(files)]}
    return {"url": f"http://127.0.0.1:{await port_of(files)}/mcp"}


async def prepared(folder: Path, server: dict[str, Any], step: str) -> str:
    """Bring a home to where the call is next; return its command."""
    async with home(folder, server) as host:
        how = "always" if step == "allowed" else "ask"
        assert (await host.channel.ask(f"/mcp allow files fine {how}")).startswith("Allowed")
        if step == "allowed":
            return CALL
        assert "May I run" in await host.channel.ask(CALL)
        await host.bus.drain()
        return "/approve 1"


async def finished(folder: Path, server: dict[str, Any], files: Path, command: str) -> str:
    """Open the home again, finish the step, and return what became of the call."""
    async with home(folder, server) as host:
        await host.channel.send(command, message_id=STEP)
        await host.bus.drain()
        [result] = await host.events("tool.result")
        assert len(await host.events("tool.decided")) == 1
        status = str(result.data["status"])
        written = "\n".join(str(entry.payload.get("content")) for entry in await host.tape())
    calls = len(calls_of(files))
    (files / "calls.txt").unlink(missing_ok=True)
    if status == "ok":
        assert calls == 1
    else:
        # It is said that nobody knows; never that it was done, or that it was not.
        assert status == "unknown"
        assert calls <= 1
        assert "not known whether it happened" in written
    return status


@pytest.mark.parametrize("step", ["allowed", "approve"])
@pytest.mark.parametrize("wire", ["stdio", "http"])
async def test_kill_9_at_any_moment_of_a_call_never_repeats_it(
    tmp_path: Path, wire: str, step: str
) -> None:
    files, ready = tmp_path / "files", tmp_path / "prepared"
    found: Counter[str] = Counter()
    with serving(files, wire):
        server = await settings(files, wire)
        command = await prepared(ready, server, step)
        async for folder, _ in killed("test_mcp_kill", ready, command, server=server):
            found[await finished(folder, server, files, command)] += 1
        with lives("test_mcp_kill", ready, command, server=server) as life:
            folder, _ = await life(victim=files / "victim")
        assert len(calls_of(files)) == 1
        assert await finished(folder, server, files, command) == "unknown"
    sys.stdout.write(f"{wire}, {step}: {dict(found)}\n")
    if not is_sample():
        assert found["ok"]
        assert found["unknown"]
