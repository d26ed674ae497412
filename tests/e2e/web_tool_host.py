"""Reads a page until it is killed; a nursery, since a fork starts at once.

In, one JSON object a line: ``{"folder", "port", "times", "part"}``: the page of that port is asked for, and the
process kills itself at so many changes of files from then on. Out: as ``forget_host``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from forget_host import FAULT, emit, lives  # before ours: it stands before the operating system
from odd_server import known_as_local

from bot.agent.tools.web import web_tools
from bot.bus.media.blobs import FolderBlobs
from bot.core.fetch.fetcher import Fetcher
from bot.llm.base import ModelReply, ModelRequest
from bot.runtime.app.residual_files import ResidualFiles
from bot.testing.host import Host, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply


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


async def live(order: dict[str, Any]) -> None:
    """Open the home, ask for the page or forget it, and die on the way."""
    async with home(Path(order["folder"]), order["port"]) as host:
        FAULT.arm(order["times"], order["part"])
        sent = await host.channel.send(order["command"], message_id="step")
        await host.channel.wait_for_answer(sent, within=30)
        await host.bus.drain()
        emit(changes=FAULT.done)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    lives(live)
