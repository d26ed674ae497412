"""What tools of the outside cost whoever uses none of them: in the prompt, at the start, and in memory."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from time import sleep
from typing import Any

import anyio

from bench.models import InstantModel
from bench.processes import ROOT
from bench.program import Program, program
from bench.report import Cell, Scale, Table, ms, p50
from bench.start import Start, prompt
from bot.llm.base import estimate_tokens
from bot.llm.openai_format import tools_json
from bot.mcp_client import McpServer
from bot.mcp_client.rights import EVERYBODY, Right

_SERVER = Path(__file__).with_name("tool_server.py")
_TOOL = "current_time"
_OFF = {"web_search": "off", "web_fetch": "off"}
_HIDDEN = '''
"""Hides the libraries of extras, as if they were not installed."""
import sys
from importlib.machinery import PathFinder

class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in {"ddgs", "trafilatura", "mcp", "mcp_types", "httpx2"}:
            return None
        return super().find_spec(name, path, target)

sys.meta_path = [Hiding if finder is PathFinder else finder for finder in sys.meta_path]
'''


async def measure(scale: Scale) -> list[Table]:
    """Measure prompts in process, and starts in processes of their own."""
    return [await _prompts(scale), await anyio.to_thread.run_sync(_starts, scale)]


async def _prompts(scale: Scale) -> Table:
    rows: list[tuple[Cell, ...]] = []
    before: tuple[int, int] | None = None
    for number, (way, settings) in enumerate(_ways(scale.work / "listed").items()):
        size = await _prompt_size(scale.work / f"prompt-{number}", settings)
        before = before or size
        rows.append((way, *size, size[0] - before[0], size[1] - before[1]))
    return Table(
        "System prompt and tools of a new session",
        ("with", "characters", "tokens", "characters more", "tokens more"),
        rows,
        ["characters as JSON; tokens are estimated"],
    )


def _ways(listed: Path) -> dict[str, dict[str, Any]]:
    """Return the settings that are compared."""
    return {
        "no tool of the outside": _OFF,
        "an MCP server, no tool allowed": {**_OFF, "mcp": _server(listed)},
        "one MCP tool allowed": {**_OFF, "mcp": _server(listed), "allowed": True},
        "web search and pages": {},
    }


def _server(listed: Path) -> dict[str, McpServer]:
    return {"time": McpServer(command=sys.executable, args=(str(_SERVER), str(listed)))}


async def _prompt_size(home: Path, settings: Mapping[str, Any]) -> tuple[int, int]:
    """Return the characters and tokens of system prompt and tools."""
    given = dict(settings)
    allowed = given.pop("allowed", False)
    model = InstantModel()
    async with program(home, model, **given) as running, _servers(running, allowed=allowed):
        await running.turn("tools")
    assert model.last is not None
    system = str(model.last.messages[0]["content"])
    tools = json.dumps(tools_json(model.last.tools))
    return len(system) + len(tools), estimate_tokens(system) + estimate_tokens(tools)


@asynccontextmanager
async def _servers(running: Program, *, allowed: bool) -> AsyncIterator[None]:
    """Connect to the program's MCP servers, and allow their tool."""
    mcp = running.app.mcp
    if mcp is None:
        yield
        return
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(mcp.run)
        await mcp.connections["time"].wait_until_tried()
        definition = mcp.definition("time", _TOOL)
        assert definition is not None
        if allowed:
            await mcp.rights.decide(Right("time", _TOOL, EVERYBODY, "always", definition.digest))
        yield
        tasks.cancel_scope.cancel()


def _starts(scale: Scale) -> Table:
    """Start the program at a terminal again and again, each time in a new home."""
    hidden = scale.work / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(_HIDDEN, encoding="utf-8")
    homes = (scale.work / f"home-{number}" for number in count())
    off = {f"TAPEBOT_{name.upper()}": value for name, value in _OFF.items()}
    plain = {"PYTHONPATH": f"{hidden}{os.pathsep}{ROOT}"}
    ways: dict[str, Callable[[], Start]] = {
        "the extras not installed": partial(_start, scale.work, homes, plain),
        "installed, switched off": partial(_start, scale.work, homes, off),
        "installed, nothing set": partial(_start, scale.work, homes, {}),
        "an MCP server, connected": partial(_start_server, scale.work, homes, off),
    }
    runs = scale.pick(7, 2)
    taken: dict[str, list[Start]] = {way: [] for way in ways}
    for run in range(-1, runs):
        for way, start in ways.items():
            one = start()
            if run >= 0:
                taken[way].append(one)
    rows = [
        (
            way,
            ms(p50([one.wall for one in found])),
            p50([(one.resident or 0) / 1000 for one in found]),
        )
        for way, found in taken.items()
    ]
    return Table(
        "From the command to the prompt, offline responder",
        ("with", "ms p50", "MB"),
        rows,
        [f"median of {runs} after one to warm the file cache; extras: mcp, web-tools"],
    )


def _start(work: Path, homes: Any, variables: Mapping[str, str]) -> Start:
    return prompt(work, {"TAPEBOT_HOME": str(next(homes)), **variables})


def _start_server(work: Path, homes: Any, variables: Mapping[str, str]) -> Start:
    home = next(homes)
    listed = work / f"{home.name}-listed"
    server = {"command": sys.executable, "args": [str(_SERVER), str(listed)]}

    def connected() -> None:
        while not listed.exists():
            sleep(0.05)

    given = {"TAPEBOT_HOME": str(home), "TAPEBOT_MCP": json.dumps({"time": server}), **variables}
    return prompt(work, given, connected)
