"""Calls a tool of an MCP server until it is killed; a nursery, since a fork starts at once.

In, one JSON object a line: ``{"folder", "server", "command", "times", "part", "victim"}``: the command is given, and the
process kills itself at so many changes of files and pipes from then on; or the server kills it in the middle of the
call, if ``victim`` names the file in which the server looks for it. Out: as ``forget_host``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from home_host import FAULT, emit, lives  # before ours: it stands before the operating system
from mcp_talk import obeying
from waiting import until

from bot.mcp_client import McpServer, client
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel

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


async def live(order: dict[str, Any]) -> None:
    """Open the home, give the command, and die on the way."""
    async with home(Path(order["folder"]), order["server"]) as host:
        if order["victim"] is not None:
            Path(order["victim"]).write_text(str(os.getpid()), encoding="ascii")
        FAULT.arm(order["times"], order["part"])
        sent = await host.channel.send(order["command"], message_id="step")
        await host.channel.wait_for_answer(sent, within=30)
        await host.bus.drain()
        emit(changes=FAULT.done)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    lives(live)
