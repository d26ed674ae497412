"""Kill -9 while something is forgotten: the confirmation comes again, and what is left goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from folded import fold_entries
from forget_home import (
    AUNT,
    CAT,
    FILE,
    PERSON,
    SHIP,
    TOWN,
    converse,
    home,
    work,
)
from forget_traces import traces
from killed_homes import STEP, killed
from sampling import many

from bot.memory.erasure.closure import FORGOTTEN_EVENT


async def asked(folder: Path, what: str) -> str:
    """Say things, ask for some to be forgotten; return the command that confirms."""
    if what == SHIP:
        await work(folder)
    async with home(folder) as host:
        if what != SHIP:
            await converse(host, folder)
        asked = await host.channel.send(f"/memory forget {what}", message_id="asked")
        await host.channel.wait_for_answer(asked)
        command: str = host.channel.answers[-1].buttons[0].command
        await host.bus.drain()
    return command


async def finished(folder: Path, command: str) -> None:
    """Open the home again: the platform repeats what it has no word of, and all comes to its end."""
    async with home(folder) as host:
        await host.channel.send(command, message_id=STEP)
        await host.bus.drain()
        texts = [e.data.get("text", "") for e in await host.tape() if e.name == "reply"]
        assert texts[-1].startswith("Forgotten: ")
        assert len(await host.events(FORGOTTEN_EVENT, PERSON)) == 1
        sent = await host.channel.send("How is the rain?", message_id="after")
        assert "rain" in await host.channel.wait_for_answer(sent)
        await host.bus.drain()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "words"),
    [("2", [TOWN]), (CAT, [CAT]), (AUNT, [AUNT, FILE]), (SHIP, [SHIP])],
)
async def test_kill_9_at_any_moment_of_an_erasure_leaves_nothing_once_it_is_confirmed_again(
    tmp_path: Path, what: str, words: list[str]
) -> None:
    prepared = tmp_path / "prepared"
    command = await asked(prepared, what)
    assert {word for _, word in traces(prepared, words)} == set(words)
    facts = fold_entries(await _entries(prepared, PERSON))
    async for folder, at in killed("forget_home", prepared, command, least=20, most=many(25)):
        await finished(folder, command)
        assert traces(folder, words) == [], at
        now = fold_entries(await _entries(folder, PERSON))
        assert now.facts.keys() == facts.facts.keys()
        assert [one.gloss for one in now.active()] == [
            one.gloss
            for one in facts.active()
            if not any(word in one.gloss.casefold() for word in map(str.casefold, words))
        ]


async def _entries(folder: Path, tape: str) -> list[Any]:
    async with home(folder) as host:
        return await host.tape(tape)
