"""Kill -9 while a tool of an MCP server is called: it is called at most once, and what happened is told."""

from __future__ import annotations

import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp_kill_host import home
from mcp_talk import RAW, calls_of, http_process, port_of, tool, write_tools
from nursery import Nursery, nursery
from sampling import is_sample, some

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HOST = Path(__file__).with_name("mcp_kill_host.py")
CALL = "use mcp_files_fine"


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
        await host.channel.send(command, message_id="step")
        await host.bus.drain()
        [result] = await host.events("tool.result")
        assert len(await host.events("tool.decided")) == 1
        status = str(result.data["status"])
        written = "\n".join(str(entry.payload.get("content")) for entry in await host.tape())
    calls = len(calls_of(files))
    if status == "ok":
        assert calls == 1
    else:
        # It is said that nobody knows; never that it was done, or that it was not.
        assert status == "unknown"
        assert calls <= 1
        assert "not known whether it happened" in written
    return status


class Lives:
    """Lives that begin where the call is next, each in a copy of the home."""

    def __init__(
        self, children: Nursery, ready: Path, files: Path, server: dict[str, Any], command: str
    ) -> None:
        self._children = children
        self._ready = ready
        self._files = files
        self._order = {"server": server, "command": command}
        self._count = 0

    def live(self, *, times: int = 0, part: float = 0.0, victim: Path | None = None) -> Any:
        """Let one live and die; return its home and what it said."""
        self._count += 1
        folder = self._ready.with_name(f"life-{self._count}")
        shutil.copytree(self._ready, folder)
        (self._files / "calls.txt").unlink(missing_ok=True)
        order = {"folder": folder, "times": times, "part": part, "victim": victim}
        return folder, self._children.life(**order, **self._order)


@pytest.mark.parametrize("step", ["allowed", "approve"])
@pytest.mark.parametrize("wire", ["stdio", "http"])
async def test_kill_9_at_any_moment_of_a_call_never_repeats_it(
    tmp_path: Path, wire: str, step: str
) -> None:
    chance = random.Random(f"{wire} {step}")
    files, ready = tmp_path / "files", tmp_path / "prepared"
    found: Counter[str] = Counter()
    with serving(files, wire), nursery(HOST) as children:
        server = await settings(files, wire)
        command = await prepared(ready, server, step)
        lives = Lives(children, ready, files, server, command)
        _, [done, _] = lives.live()
        assert done["changes"] >= 4
        for at in some([*range(1, done["changes"] + 1)]):
            folder, _ = lives.live(times=at, part=chance.choice((0.0, 0.5, 1.0)))
            found[await finished(folder, server, files, command)] += 1
        folder, _ = lives.live(victim=files / "victim")
        assert len(calls_of(files)) == 1
        assert await finished(folder, server, files, command) == "unknown"
    sys.stdout.write(f"{wire}, {step}: {dict(found)}\n")
    if not is_sample():
        assert found["ok"]
        assert found["unknown"]
