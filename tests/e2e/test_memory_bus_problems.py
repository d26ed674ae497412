"""The memory bus's success criteria on problems: each is kept from every other, and several are worked on at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from memory_bus_life import LOOK, Life, life

from bot.core.errors import MemoryRefused
from bot.llm.base import ModelRequest
from bot.tape.search import GENERAL_PROBLEM

NOTES = ("must {}", "must-not {}", "assume {}", "ask {}?", "decide {} because {}", "draft {} {}")


async def noted(one: Life, problem: str, word: str) -> None:
    await one.say(f"/problem new {problem}")
    for note in NOTES:
        await one.say(f"/problem note {note.replace('{}', word)}")


async def shown(one: Life, text: str, **more: Any) -> str:
    """Say something; return all that the model was shown for it."""
    before = len(one.model.requests)
    await one.say(text, **more)
    return _text(one.model.requests[before:])


def _text(requests: Iterable[ModelRequest]) -> str:
    return "\n".join(str(one.messages) for one in requests if one.purpose == "turn")


# 1. Working sets are strictly isolated per problem_id.


async def test_no_problem_reads_the_working_set_of_another(tmp_path):
    words = {"p1": "zebra", "p2": "yak"}
    async with life(tmp_path) as one:
        await noted(one, "Taxes", words["p1"])
        await noted(one, "Trip", words["p2"])
        await one.say("/problem new Rest")
        await one.say("/problem new Taxes", chat="2")
        for problem, own in {"Rest": set(), "Trip": {"yak"}, "Taxes": {"zebra"}}.items():
            await one.say(f"/problem switch {problem}")
            assert _found(words.values(), await shown(one, LOOK)) == own
        # The same number in another chat is another problem.
        assert _found(words.values(), await shown(one, LOOK, chat="2")) == set()
        sets = (await one.memory()).bus.working_sets
        for problem, word in words.items():
            told = await sets.get(problem)
            assert told is not None
            assert str(told).count(word) == 8
            assert _found(words.values(), str(told)) == {word}
            assert _found(words.values(), await sets.export_summary(problem)) == {word}
        assert await sets.get("p3") is None
        assert await (await one.memory("fake:2")).bus.working_sets.get("p2") is None


async def test_a_working_set_under_another_problems_name_is_not_given(tmp_path):
    async with life(tmp_path) as one:
        await noted(one, "Taxes", "zebra")
        await one.say("/problem new Trip")
        bus = (await one.memory()).bus
        held = (await one.memory()).bus.working_sets._own.compartments.working_sets
        bus.working_sets._own.compartments.working_sets["p2"] = held["p1"]
        with pytest.raises(MemoryRefused, match="is that of p1"):
            await bus.problems.get_working_set("p2")
        with pytest.raises(MemoryRefused, match="no problem"):
            await bus.write_to_working("p9", "open_questions", ["whose?"])


def _found(words: Iterable[str], text: str) -> set[str]:
    return {word for word in words if word in text}


# 6. Multi-problem support works.


async def test_a_chat_has_problems_in_every_state_and_works_on_one(tmp_path):
    async with life(tmp_path) as one:
        for problem in ("Taxes", "Trip", "Boat", "Move"):
            await noted(one, problem, problem.lower())
        await one.say("/problem background Trip")
        await one.say("/problem done Boat")
        problems = (await one.memory()).bus.problems
        states = {found.name: found.state for found in await problems.list_by_state()}
        assert states == {
            GENERAL_PROBLEM: "paused", "Taxes": "paused", "Trip": "background", "Boat": "completed",
            "Move": "active",
        }  # fmt: skip
        assert (await problems.get_active()).name == "Move"
        # What was paused is there as it was; of what is put away the summary.
        sets = {found.name: found.working_set for found in await problems.list_by_state()}
        assert "taxes" in str(sets["Taxes"])
        assert [sets["Trip"], sets["Boat"]] == [None, None]
        assert "trip" in (await problems.get("p2")).summary
