"""Kill -9 while problems are switched: what was asked for is done once, and told the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from killed_homes import STEP, killed

from bot.llm.base import ModelRequest
from bot.memory.records.episodes import EPISODE_EVENT
from bot.memory.records.turn_marks import turn_end
from bot.memory.session.state.fold_loader import load_fold
from bot.tape.entries import TapeEntry
from bot.tape.search import problem_of
from bot.tape.service import TapeService
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

TALK = (
    "/problem new Trip",
    "/problem note must be cheap",
    "where to?",
    "/problem new Taxes",
    "/problem note ask which year?",
    "what is due?",
)


def step(request: ModelRequest) -> Any:
    """Answer; where the newest message asks for it, open a problem, or close this one, first."""
    last = request.messages[-1]
    words = str(last["content"]).partition("<records>")[0]
    if last["role"] == "user" and "please open" in words:
        name = words.split("please open ")[1].strip()
        return tool_call_reply(("problem_note", {"op": "open", "text": name}))
    if last["role"] == "user" and "please end" in words:
        return tool_call_reply(("problem_note", {"op": "complete"}))
    return text_reply("done")


@asynccontextmanager
async def home(folder: Path) -> AsyncIterator[Host]:
    async with session_host(folder, ScriptedModel(step)) as host:
        yield host


async def prepared(folder: Path) -> None:
    async with home(folder) as host:
        for text in TALK:
            await host.channel.ask(text)
        await host.bus.drain()


async def finished(folder: Path, text: str) -> list[TapeEntry]:
    """Open the home again, the platform repeating what it has no word of; return the tape at the end."""
    async with home(folder) as host:
        await host.channel.send(text, message_id=STEP)
        await host.bus.drain()
        # What a turn wants is done before the next command is.
        await host.channel.send("/problem list", message_id="after")
        await host.bus.drain()
        return await host.tape()


def told(entries: list[TapeEntry]) -> str:
    """Return the answer to the one message, of which there is one."""
    ends = filter(None, map(turn_end, entries))
    [end] = [end for end in ends if STEP in end.data.get("inbound", ())]
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
    expected: list[TapeEntry] = []
    async for folder, at in killed("test_kill_problem_switch", tmp_path / "prepared", text):
        entries = await finished(folder, text)
        expected = expected or entries
        assert len(problems(expected)[0]) == 3
        assert told(entries) == told(expected), at
        switched, exported, changes = problems(entries)
        assert (switched, exported) == problems(expected)[:2], at
        assert len(changes) == len(set(changes)) == len(problems(expected)[2]), at
        async with home(folder) as host:
            tape = TapeService(host.store, "fake:1")
            fold = await load_fold(tape)
            assert fold.problem == active, at
            assert not fold.compartments.requested_problem
