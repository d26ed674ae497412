"""Kill -9 while something is forgotten: the confirmation comes again, and what is left goes."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from forget_home import AUNT, CAT, CONFIRMATION, FILE, TOWN, converse, home
from forget_traces import traces

from bot.memory.facts.fold import folded
from bot.memory.forgetting.plan import FORGOTTEN
from bot.tape.stores.examine import examine

HOST = Path(__file__).with_name("forget_host.py")
ROOT = Path(__file__).parents[2]
KILLS = 25


class Nursery:
    """The process whose children erase and are killed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def life(self, folder: Path, command: str, times: int = 0, part: float = 0.0) -> int:
        """Let a child erase; return how many changes it took where it was not killed before, else 0."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"folder": str(folder), "command": command, "times": times, "part": part}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        changes = 0
        for line in self._process.stdout:
            heard: dict[str, Any] = json.loads(line)
            if "dead" in heard:
                assert heard["dead"], "it died of something else"
                return changes
            changes = heard["changes"]
        raise AssertionError("the nursery is gone")


@contextmanager
def nursery() -> Iterator[Nursery]:
    with subprocess.Popen(
        [sys.executable, str(HOST)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{HOST.parent}", "PATH": ""},
    ) as process:
        try:
            yield Nursery(process)
        finally:
            process.kill()


async def asked(folder: Path, what: str) -> str:
    """Say things, ask for some to be forgotten; return the command that confirms."""
    async with home(folder) as host:
        await converse(host, folder)
        await host.channel.ask(f"/memory forget {what}")
        command: str = host.channel.answers[-1].buttons[0].command
        await host.bus.drain()
    return command


async def finished(folder: Path, command: str) -> None:
    """Open the home again: the platform repeats what it has no word of, and all comes to its end."""
    async with home(folder) as host:
        await host.channel.send(command, message_id=CONFIRMATION)
        await host.bus.drain()
        texts = [e.data.get("text", "") for e in await host.tape() if e.name == "reply"]
        assert texts[-1].startswith("Forgotten: ")
        assert len(await host.events(FORGOTTEN, "person:fake:7")) == 1
        sent = await host.channel.send("How is the rain?", message_id="after")
        assert "rain" in await host.channel.answer_to(sent)
        await host.bus.drain()


@pytest.mark.slow
@pytest.mark.parametrize(("what", "words"), [("2", [TOWN]), (CAT, [CAT]), (AUNT, [AUNT, FILE])])
async def test_kill_9_at_any_moment_of_an_erasure_leaves_nothing_once_it_is_confirmed_again(
    tmp_path: Path, what: str, words: list[str]
) -> None:
    chance = random.Random(what)
    prepared = tmp_path / "prepared"
    command = await asked(prepared, what)
    assert {word for _, word in traces(prepared, words)} == set(words)
    facts = folded(await _entries(prepared, "person:fake:7"))
    with nursery() as children:
        whole = tmp_path / "whole"
        shutil.copytree(prepared, whole)
        changes = children.life(whole, command)
        assert changes > 20
        for number in range(KILLS):
            folder = tmp_path / f"killed-{number}"
            shutil.copytree(prepared, folder)
            at = 1 + number * changes // KILLS + chance.randrange(max(1, changes // KILLS))
            children.life(folder, command, at, chance.choice((0.0, 0.5, 1.0)))
            await finished(folder, command)
            assert traces(folder, words) == [], at
            assert not examine(folder / "tapes", "").problems, at
            now = folded(await _entries(folder, "person:fake:7"))
            assert now.facts.keys() == facts.facts.keys()
            assert [one.text for one in now.active()] == [
                one.text
                for one in facts.active()
                if not any(word in one.text.casefold() for word in map(str.casefold, words))
            ]
            shutil.rmtree(folder)


async def _entries(folder: Path, tape: str) -> list[Any]:
    async with home(folder) as host:
        return await host.tape(tape)
