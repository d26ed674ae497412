"""The registry of problems: how they are made and found, their states, their switches and what comes back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problem_rig import BOUNDS, HOUR, Talk
from sampling import examples

from bot.core.errors import MemoryRefused
from bot.memory.session.bus.problem_registry import MAX_OPEN_PROBLEMS, MAX_PROBLEM_NAME
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.fold_loader import load_fold, load_resumed_entries
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.search import GENERAL_PROBLEM


@pytest.fixture
async def talk() -> Talk:
    return await Talk().open()


async def states(talk: Talk) -> dict[str, str]:
    return {one.problem_id: one.state for one in await talk.bus.problems.list_by_state()}


async def test_a_problem_is_made_waits_and_is_worked_on_until_it_is_done(talk):
    problems = talk.bus.problems
    made = await problems.create("  Trip   to Rome ", priority=7)
    assert (made.problem_id, made.name, made.priority) == ("p1", "Trip to Rome", 7)
    assert await states(talk) == {GENERAL_PROBLEM: "active", "p1": "paused"}
    second = await talk.problem("second")
    assert await problems.resume("p1")
    assert await states(talk) == {GENERAL_PROBLEM: "paused", "p1": "active", second: "paused"}
    assert await problems.complete("p1")
    assert (await problems.get_active()).problem_id == GENERAL_PROBLEM
    for change in (problems.switch_to, problems.resume, problems.pause, problems.background):
        assert not await change("p1")
    assert (await states(talk))["p1"] == "completed"
    with pytest.raises(MemoryRefused, match="there is no problem p9"):
        await problems.switch_to("p9")
    for change in (problems.pause, problems.complete, problems.background):
        assert not await change(GENERAL_PROBLEM)


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


@pytest.mark.parametrize("way", ["pause", "background", "complete"])
async def test_each_way_to_leave_exports_the_summary_to_the_trace_of_that_problem(talk, way):
    first = await talk.problem("first")
    await talk.bus.working_sets.update(first, open_questions=["why?", "when?"])
    await talk.bus.working_sets.update(first, open_questions=["when?"])
    assert await getattr(talk.bus.problems, way)(first)
    [episode] = await talk.bus.episodic.query(problem_id=first, entry_type="summary")
    assert episode.content["text"] == "open: when?"
    assert await talk.bus.working_sets.export_summary(first) == "open: when?"
    left = await talk.bus.problems.get(first)
    # Only a paused one keeps its working set, for a day; of the others the summary stays.
    assert (left.working_set is not None) == (way == "pause")
    talk.clock.advance(24 * HOUR)
    assert await talk.bus.working_sets.get(first) is None


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


STEPS = st.lists(
    st.sampled_from(["say", "new", "p1", "p2", GENERAL_PROBLEM, "note", "want", "hour"]), min_size=4
)


@settings(max_examples=examples(40))
@given(steps=STEPS)
async def test_opened_at_any_point_the_tape_tells_what_the_running_session_knows(steps):
    talk = await Talk().open()
    said: dict[str, list[str]] = {}
    for number, step in enumerate(steps):
        active, known = talk.fold.problem, await states(talk)
        if step == "say":
            await talk.say(f"{active} {number}")
            said.setdefault(active, []).append(f"{active} {number}")
        elif step == "new":
            await talk.bus.problems.create(f"name {number}")
        elif step == "note":
            await talk.bus.working_sets.add(active, "open_questions", f"{active} {number}?")
        elif step == "hour":
            talk.clock.advance(HOUR)
            await talk.bus.working_sets.expire_stale()
        elif step == "want":
            await talk.bus.problems.request_switch("p1" if "p1" in known else GENERAL_PROBLEM)
        elif step in known:
            await talk.bus.problems.switch_to(step)
        # All that is in view is of the problem at hand, its newest words last.
        asked = [text for text in talk.view() if not text.startswith("re: ")]
        mine = said.get(talk.fold.problem, [])
        assert asked == mine[len(mine) - len(asked) :]
        assert bool(asked) == bool(mine)
        for fold in (await load_fold(talk.tape, **BOUNDS), await folded_whole(talk)):
            assert fold.compartments == talk.fold.compartments
            assert fold.problem == fold.window.problem == talk.fold.window.problem
            assert fold.window.conversation() == talk.fold.window.conversation()
            assert fold.window.unconsolidated == talk.fold.window.unconsolidated


async def folded_whole(talk: Talk) -> SessionFold:
    fold = SessionFold(WindowFold(**BOUNDS))
    for entry in await talk.tape.read_entries():
        fold.apply(entry)
    await load_resumed_entries(talk.tape, fold.window)
    return fold
