"""Kill -9 while problems are switched: what was asked for is done once, and told the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from nursery import nursery
from problem_home import MESSAGE, TALK, home
from sampling import some

from bot.memory.records.episodes import EPISODE_EVENT
from bot.memory.records.turn_marks import turn_end
from bot.memory.session.state.fold_loader import load_fold
from bot.tape.entries import TapeEntry
from bot.tape.search import problem_of
from bot.tape.service import TapeService

HOST = Path(__file__).with_name("problem_host.py")


async def prepared(folder: Path) -> None:
    async with home(folder) as host:
        for text in TALK:
            await host.channel.ask(text)
        await host.bus.drain()


async def finished(folder: Path, text: str) -> list[TapeEntry]:
    """Open the home again, the platform repeating what it has no word of; return the tape at the end."""
    async with home(folder) as host:
        await host.channel.send(text, message_id=MESSAGE)
        await host.bus.drain()
        # What a turn wants is done before the next command is.
        await host.channel.send("/problem list", message_id="after")
        await host.bus.drain()
        return await host.tape()


def told(entries: list[TapeEntry]) -> str:
    """Return the answer to the one message, of which there is one."""
    ends = filter(None, map(turn_end, entries))
    [end] = [end for end in ends if MESSAGE in end.data.get("inbound", ())]
    said = next(e for e in reversed(entries[: end.id - entries[0].id + 1]) if e.meta.get("turn"))
    return str(said.data.get("text") or said.payload.get("content"))


def problems(entries: list[TapeEntry]) -> tuple[list[str], list[tuple[str, str]], list[str]]:
    """Return what was switched to, what was exported, and the causes of changes, in order."""
    switched = [str(e.name) for e in entries if e.kind == "anchor" and "problem/" in str(e.name)]
    exported = [
        (problem_of(e), str(e.data["content"]["text"])) for e in entries if e.name == EPISODE_EVENT
    ]
    changes = [str(e.data["key"]) for e in entries if e.name == "memory.bus" and "key" in e.data]
    return switched, exported, changes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "active"),
    [
        ("/problem switch trip", "p1"),
        ("/problem done", "general"),
        ("/problem new Song", "p3"),
        ("please open Trip", "p1"),
        ("please open Song", "p3"),
        ("please end it", "general"),
    ],
)
async def test_a_switch_that_is_killed_at_any_change_of_a_file_is_done_once_and_told_the_same(
    tmp_path: Path, text: str, active: str
) -> None:
    await prepared(tmp_path / "prepared")
    whole = tmp_path / "whole"
    shutil.copytree(tmp_path / "prepared", whole)
    with nursery(HOST) as children:
        [done, _] = children.life(folder=whole, text=text, times=0, part=0.0)
        expected = await finished(whole, text)
        assert len(problems(expected)[0]) == 3
        for at in some(range(1, done["changes"] + 1)):
            folder = tmp_path / f"killed-{at}"
            shutil.copytree(tmp_path / "prepared", folder)
            children.life(folder=folder, text=text, times=at, part=(0.0, 0.5, 1.0)[at % 3])
            entries = await finished(folder, text)
            assert told(entries) == told(expected), at
            switched, exported, changes = problems(entries)
            assert (switched, exported) == problems(expected)[:2], at
            assert len(changes) == len(set(changes)) == len(problems(expected)[2]), at
            async with home(folder) as host:
                tape = TapeService(host.store, "fake:1")
                fold = await load_fold(tape, max_messages=200, max_tokens=96_000)
                assert fold.problem == active, at
                assert not fold.compartments.requested_problem
            shutil.rmtree(folder)
