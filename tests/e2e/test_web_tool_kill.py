"""Kill -9 while a page is read or erased: it is read once, and erased whole."""

from __future__ import annotations

import random
import shutil
from functools import partial
from pathlib import Path

import pytest
from anyio import to_thread
from nursery import nursery
from odd_server import odd_server, reply
from sampling import some
from web_tool_host import home

HOST = Path(__file__).with_name("web_tool_host.py")
WORDS = "Ferries to Zanzibar leave at nine."


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
        await host.channel.send(command, message_id="step")
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
    chance = random.Random(step)
    ready = tmp_path / "prepared"
    async with odd_server() as server:
        server.answers["/"] = reply(WORDS, "text/plain")
        command = await prepared(ready, server.port, step)
        order = {"command": command, "port": server.port}
        with nursery(HOST) as children:
            whole = tmp_path / "whole"
            shutil.copytree(ready, whole)
            # In a thread: the server answers meanwhile.
            life = await to_thread.run_sync(
                partial(children.life, folder=whole, times=0, part=0.0, **order)
            )
            changes = life[0]["changes"]
            assert changes >= 4
            for number, at in some([*enumerate([*range(1, changes + 1)])]):
                folder = tmp_path / f"killed-{number}"
                shutil.copytree(ready, folder)
                part = chance.choice((0.0, 0.5, 1.0))
                await to_thread.run_sync(
                    partial(children.life, folder=folder, times=at, part=part, **order)
                )
                await finished(folder, server.port, step, command)
                shutil.rmtree(folder)
