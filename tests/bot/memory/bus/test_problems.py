"""What problems and their working sets can hold, what is refused, and what comes back with a switch."""

from __future__ import annotations

from datetime import timedelta

import pytest
from problem_rig import BOUNDS, Talk

from bot.core.errors import MemoryRefused
from bot.memory.session.bus.problem_registry import MAX_OPEN_PROBLEMS, MAX_PROBLEM_NAME
from bot.memory.session.bus.working_set import MAX_WORKING_SET_BYTES
from bot.tape.search import GENERAL_PROBLEM


@pytest.fixture
async def talk() -> Talk:
    return await Talk().open()


@pytest.mark.parametrize(
    "name", ["", "  ", "x" * (MAX_PROBLEM_NAME + 1), "a\x00b", "General", "TRIP"]
)
async def test_a_name_that_cannot_be_shown_or_is_taken_is_refused(talk, name):
    await talk.bus.problems.create("Trip")
    with pytest.raises(MemoryRefused):
        await talk.bus.problems.create(name)


async def test_names_are_given_again_once_they_are_done_and_numbers_never(talk):
    first = await talk.bus.problems.create("Trip", cause="c")
    assert await talk.bus.problems.create("Trip", cause="c") == first
    await talk.bus.problems.complete("p1")
    assert (await talk.bus.problems.create("Trip")).problem_id == "p2"
    await talk.open()
    assert (await talk.bus.problems.create("Other")).problem_id == "p3"
    for number in range(MAX_OPEN_PROBLEMS - 2):
        await talk.bus.problems.create(f"number {number}")
    with pytest.raises(MemoryRefused, match="complete one of them first"):
        await talk.bus.problems.create("one more")


async def test_nothing_is_switched_while_a_turn_runs_and_a_wish_is_done_once_it_has_ended(talk):
    problems = talk.bus.problems
    for name in ("first", "second"):
        await problems.create(name)
    turn = await talk.begin("hello")
    with pytest.raises(MemoryRefused, match="still running"):
        await problems.switch_to("p1")
    await problems.request_switch("p1")
    await problems.request_switch("p2", cause="c")
    assert (await problems.get_active()).problem_id == GENERAL_PROBLEM
    await talk.end(turn, "hi")
    await talk.open()
    assert await talk.bus.problems.apply_requested_switch()
    assert not await talk.bus.problems.apply_requested_switch()
    assert (await talk.bus.problems.get_active()).problem_id == "p2"
    version = await talk.tape.version()
    assert await talk.bus.problems.request_switch("p2", cause="c") is not False
    assert await talk.tape.version() == version


async def test_of_many_messages_the_newest_whole_turns_come_back_up_to_a_quarter_of_the_view(talk):
    first = await talk.problem("first")
    for number in range(15):
        await talk.say(f"number {number}")
    await talk.bus.problems.pause(first)
    assert talk.view() == []
    await talk.bus.problems.switch_to(first)
    assert talk.view()[:2] == ["number 10", "re: number 10"]
    assert len(talk.view()) * 4 == BOUNDS["max_messages"]
    await talk.say("y" * 5_000)
    await talk.bus.problems.pause(first)
    await talk.bus.problems.switch_to(first)
    # One turn that is over the bound does not come back at all.
    assert talk.view() == []


@pytest.mark.parametrize(("asked", "lives"), [(None, 2), (0.5, 0.5), (1_000, 24)])
async def test_a_set_lives_two_hours_or_as_it_says_and_never_over_a_day(talk, asked, lives):
    made = await talk.bus.working_sets.create(
        GENERAL_PROBLEM, **({"ttl_hours": asked} if asked else {})
    )
    assert made.expires_at - made.created_at == timedelta(hours=lives)
    for hours in (0, -1, float("nan")):
        with pytest.raises(MemoryRefused, match="more than 0 hours"):
            await talk.bus.working_sets.create("p1", ttl_hours=hours)
    settable = await Talk(hours=100).open()
    assert (await settable.bus.working_sets.create(GENERAL_PROBLEM)).ttl_hours == 24


@pytest.mark.parametrize(
    ("fields", "why"),
    [({"mood": []}, "has no 'mood'"), ({"open_questions": "why?"}, "must be a list"),
     ({"open_questions": [1]}, "must be texts"), ({"constraints": []}, "must be a dict"),
     ({"constraints": {"must": [1]}}, "lists by name"),
     ({"assumptions": ["it rains"]}, "must have a text 'a'"), ({"open_questions": ["?"] * 51}, "pass 50"),
     ({"partial_artifacts": {"draft": "x" * MAX_WORKING_SET_BYTES}}, "would pass 16000 bytes"),
     ({"partial_artifacts": {"draft": {1, 2}}}, "holds JSON only")],
)  # fmt: skip
async def test_what_cannot_be_kept_is_refused_and_changes_nothing(talk, fields, why):
    await talk.bus.working_sets.update(GENERAL_PROBLEM, open_questions=["kept?"])
    before = await talk.tape.version()
    with pytest.raises(MemoryRefused, match=why):
        await talk.bus.working_sets.update(GENERAL_PROBLEM, **fields)
    assert await talk.tape.version() == before
