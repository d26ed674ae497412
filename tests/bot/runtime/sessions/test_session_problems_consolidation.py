"""A hand-off, /new and a consolidation keep the problems of a session apart."""

from __future__ import annotations

from typing import Any

import pytest
from session_problems_rig import fold_of, last, shown
from session_rig import settled

from bot.core.errors import ContextOverflow
from bot.llm.base import ModelRequest
from bot.memory.records.event_names import HISTORY_EVENT
from bot.tape.entries import CONTEXT_OVERFLOW, MEMORY_CONSOLIDATED, SESSION_NEW, TapeEntry
from bot.tape.search import GENERAL_PROBLEM, problem_of
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import ScriptedModel, consolidation_reply, text_reply


async def test_a_hand_off_inside_a_problem_keeps_the_problem_and_drops_what_came_back(tmp_path):
    tripped = []

    def step(request: ModelRequest) -> Any:
        if "too much" in shown(request) and not tripped:
            tripped.append(1)
            return ContextOverflow("too long")
        return text_reply("ok")

    model = ScriptedModel(step, summary=lambda _: text_reply("summed up"))
    async with session_host(tmp_path, model) as host:
        ask = host.channel.ask
        await ask("general talk")
        await ask("/problem new Music")
        for number in range(4):
            await ask(f"music {number}")
        await ask("/problem switch general")
        await ask("/problem switch music")
        await ask("too much")
        [boundary] = await host.events(CONTEXT_OVERFLOW)
        assert problem_of(boundary) == "p1"
        summarised = "".join(shown(one) for one in model.requests_for("summary"))
        assert "music 0" in summarised
        assert "general talk" not in summarised
        assert "summed up" in last(model)
        assert "music 0" not in last(model)
        assert await ask("go on") == "ok"
        await ask("/problem switch general")
        await ask("/problem switch music")
        await ask("again")
        assert "too much" in last(model)
        assert "general talk" not in last(model)
        opened = await fold_of(host)
    assert opened.problem == opened.window.problem == "p1"


async def test_new_inside_a_problem_begins_it_anew_and_leaves_the_others_alone(tmp_path):
    model = ScriptedModel(
        lambda _: text_reply("ok"),
        consolidation=lambda r: consolidation_reply(f"history of {words(r)}"),
    )
    async with session_host(tmp_path, model) as host:
        ask = host.channel.ask
        await ask("general talk")
        await ask("/problem new Music")
        await ask("/problem note must be quiet")
        await ask("music talk")
        assert await ask("/new") == "New session started."
        [boundary] = await host.events(SESSION_NEW)
        assert boundary.data["summary"].endswith("] history of music talk")
        assert problem_of(boundary) == "p1"
        await ask("what now?")
        assert "general talk" not in last(model)
        assert "must: be quiet" in last(model)
        assert "music talk" not in str(model.requests_for()[-1].messages[1:])
        await ask("/problem switch general")
        await ask("and here?")
        # It came back from the sealed part of the tape.
        assert "general talk" in last(model)
        assert "music talk" not in last(model)
        fold = await fold_of(host)
        entries = [e for e in await host.tape() if e.name == HISTORY_EVENT]
    assert fold.problem == GENERAL_PROBLEM
    assert [(told_in(e), problem_of(e)) for e in entries] == [
        ("history of general talk", GENERAL_PROBLEM),
        ("history of music talk", "p1"),
    ]


def told_in(history: TapeEntry) -> str:
    """Return what a history entry tells, without its date."""
    return str(history.data["entry"]).partition("] ")[2]


def words(request: ModelRequest) -> str:
    """Return the words of people in a request to consolidate."""
    text = shown(request)
    return " and ".join(one for one in ("general talk", "music talk", "tax talk") if one in text)


@pytest.mark.parametrize("last_problem", ["general", "music", "taxes"])
async def test_each_portion_of_a_consolidation_is_of_one_problem_and_none_is_left(
    tmp_path, last_problem
):
    model = ScriptedModel(
        lambda _: text_reply("ok"),
        consolidation=lambda r: consolidation_reply(f"history of {words(r)}"),
    )
    bounds = HostLimits(window=1_000)
    async with session_host(tmp_path, model, bounds=bounds) as host:
        ask = host.channel.ask
        await ask("/problem new Music")
        await ask("/problem new Taxes")
        talk = {"general": "general talk", "music": "music talk", "taxes": "tax talk"}
        for name in ("general", "music", "taxes", "general", last_problem):
            await ask(f"/problem switch {name}")
            await ask(talk[name])
        await ask("/new")
        fold = await fold_of(host)
        entries = [e for e in await host.tape() if e.name == HISTORY_EVENT]
    told = [(told_in(e), problem_of(e)) for e in entries]
    wanted = {
        "history of general talk": GENERAL_PROBLEM,
        "history of music talk": "p1",
        "history of tax talk": "p2",
    }
    assert {one for one, _ in told} == set(wanted)
    assert all(wanted[text] == problem for text, problem in told)
    assert fold.window.unconsolidated == 0
    assert fold.window.unconsolidated_tokens == 0


async def test_in_the_background_what_was_left_behind_is_consolidated_once_it_is_enough(tmp_path):
    model = ScriptedModel(
        lambda _: text_reply("ok"),
        consolidation=lambda r: consolidation_reply(f"history of {words(r)}"),
    )
    async with session_host(tmp_path, model) as host:
        ask = host.channel.ask
        for _ in range(3):
            await ask("general talk")
        await ask("/problem new Music")
        await ask("music talk")
        assert not await host.events(MEMORY_CONSOLIDATED)
        await ask("/problem switch general")
        await ask("general talk")
        await ask("/problem switch music")
        await ask("music talk")
        await host.wait_for_event(MEMORY_CONSOLIDATED)
        await settled(host)
        entries = [e for e in await host.tape() if e.name == HISTORY_EVENT]
        fold = await fold_of(host)
    # A few messages that were left elsewhere are worth no call.
    assert [problem_of(e) for e in entries] == [GENERAL_PROBLEM]
    assert fold.window.unconsolidated == 6


async def test_what_came_back_is_not_consolidated_twice(tmp_path):
    asked: list[str] = []

    def consolidation(request: ModelRequest) -> Any:
        asked.append(shown(request))
        return consolidation_reply("history")

    model = ScriptedModel(lambda _: text_reply("ok"), consolidation=consolidation)
    async with session_host(tmp_path, model) as host:
        ask = host.channel.ask
        await ask("/problem new Music")
        for number in range(5):
            await ask(f"melody-{number}")
        await ask("/problem switch general")
        await ask("something else")
        await host.wait_for_event(MEMORY_CONSOLIDATED)
        await ask("/problem switch music")
        await ask("melody-5")
        await ask("/new")
        fold = await fold_of(host)
    for number in range(6):
        assert sum(f"melody-{number}" in one for one in asked) == 1, number
    assert fold.window.unconsolidated == 0
