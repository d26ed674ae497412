"""A chat with a model that calls the MCP tools that a person names, over servers that tests direct."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import httpx
from waiting import until

from bot.llm.base import ModelReply, ModelRequest
from bot.mcp_client import McpServer
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

SCRIPT = Path(__file__).with_name("mcp_server.py")
RAW = Path(__file__).with_name("mcp_raw_server.py")
LOGIN = Path(__file__).with_name("mcp_login_server.py")
_NUMBERS = count()
_ORDER = re.compile(r"use (\w[\w-]*)(?: (\{.*\}))?")


def tool(name: str, description: str = "Does it.", **schema: Any) -> dict[str, Any]:
    fields = {"text": {"type": "string"}, "size": {"type": "integer"}}
    given = {"type": "object", "properties": fields} | schema
    return {"name": name, "description": description, "inputSchema": given}


def write_tools(folder: Path, *tools: dict[str, Any], file: str = "tools.json") -> None:
    folder.mkdir(exist_ok=True)
    (folder / file).write_text(json.dumps(tools))


def stdio_server(folder: Path, **settings: Any) -> McpServer:
    return McpServer(command=sys.executable, args=(str(SCRIPT), str(folder)), **settings)


def raw_server(folder: Path) -> McpServer:
    folder.mkdir(exist_ok=True)
    return McpServer(command=sys.executable, args=(str(RAW), str(folder)), timeout=20)


@contextmanager
def http_process(
    folder: Path, port: int = 0, *, guarded: bool = False, script: Path = SCRIPT
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server on a socket; a guarded one lets in who has a key or a login of a program."""
    (folder / "port").unlink(missing_ok=True)
    more = ["guarded"] if guarded else []
    process = subprocess.Popen([sys.executable, str(script), str(folder), str(port), *more])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def port_of(folder: Path) -> int:
    return int(await until(lambda: (folder / "port").exists() and (folder / "port").read_text()))


def calls_of(folder: Path) -> list[str]:
    path = folder / "calls.txt"
    return path.read_text().splitlines() if path.exists() else []


def obeying(request: ModelRequest) -> ModelReply:
    """Call the tools that the newest message names; then say what the last result was."""
    last = request.messages[-1]
    if last["role"] == "user" and (found := _ORDER.findall(str(last["content"]))):
        return tool_call_reply(*((name, given or "{}") for name, given in found))
    return text_reply(f"It said: {last['content']}")


def offered(host: Host) -> list[str]:
    model = host.services.agent.model
    assert isinstance(model, ScriptedModel)
    return [one.name for one in model.requests_for()[-1].tools if one.name.startswith("mcp_")]


@asynccontextmanager
async def talk(home: Path, **servers: McpServer) -> AsyncIterator[Host]:
    """Run the program with these servers, once they are connected."""
    async with session_host(home, ScriptedModel(obeying), mcp=servers) as host:
        await connected(host)
        yield host


async def ask(host: Host, text: str) -> str:
    """Say something and return the answer; also in a home that was opened before."""
    sent = await host.channel.send(text, message_id=f"ask-{next(_NUMBERS)}")
    return await host.channel.wait_for_answer(sent)


async def link_of(host: Host, server: str = "files") -> str:
    told = await ask(host, f"/mcp login {server}")
    found = re.search(r"<(http\S+)>", told)
    assert found is not None, told
    return found[1]


async def browsed(link: str) -> str:
    """Open a login's link, as a browser does; return the address that it is led to."""
    async with httpx.AsyncClient() as browser:
        answer = await browser.get(link)
    return str(answer.headers["location"])


async def connected(host: Host, name: str | None = None) -> None:
    assert host.mcp is not None
    found = [one for key, one in host.mcp.connections.items() if name in (None, key)]
    await until(lambda: all(one.connected for one in found))


async def gone(host: Host, name: str = "files") -> None:
    assert host.mcp is not None
    connection = host.mcp.connections[name]
    await until(lambda: not connection.connected)
