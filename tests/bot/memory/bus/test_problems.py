"""The registry of problems: how they are made and found, their states and their switches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problem_rig import HOUR, Talk
from sampling import examples

from bot.core.errors import MemoryRefused
from bot.memory.records.episodes import EPISODE_EVENT
from bot.memory.records.problem_lookup import match_problem
from bot.memory.session.bus.problem_registry import MAX_OPEN_PROBLEMS, MAX_PROBLEM_NAME
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.fold_loader import load_fold, load_resumed_entries
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.search import GENERAL_PROBLEM, problem_of


async def states(talk: Talk) -> dict[str, str]:
    return {one.problem_id: one.state for one in await talk.bus.problems.list_by_state()}


# Making and finding them.


async def test_a_session_works_on_the_general_problem_from_the_start(talk):
    active = await talk.bus.problems.get_active()
    assert (active.problem_id, active.state, active.lane_id) == (
        GENERAL_PROBLEM,
        "active",
        "fake:1",
    )
    assert await states(talk) == {GENERAL_PROBLEM: "active"}
    assert await talk.bus.problems.get("p1") is None
    assert not await talk.bus.problems.pause(GENERAL_PROBLEM)
    assert not await talk.bus.problems.complete(GENERAL_PROBLEM)
    assert not await talk.bus.problems.background(GENERAL_PROBLEM)


async def test_a_problem_that_is_made_waits_until_it_is_switched_to(talk):
    made = await talk.bus.problems.create("  Trip   to Rome ", priority=7)
    assert (made.problem_id, made.name, made.state, made.priority) == (
        "p1",
        "Trip to Rome",
        "paused",
        7,
    )
    assert await talk.bus.problems.get("p1") == made
    assert (await talk.bus.problems.get_active()).problem_id == GENERAL_PROBLEM


@pytest.mark.parametrize("name", ["", "  ", "x" * (MAX_PROBLEM_NAME + 1), "a\x00b", "General"])
async def test_a_name_that_cannot_be_shown_or_is_taken_is_refused(talk, name):
    with pytest.raises(MemoryRefused):
        await talk.bus.problems.create(name)
    assert await states(talk) == {GENERAL_PROBLEM: "active"}


async def test_names_are_given_again_only_once_they_are_done_and_numbers_never(talk):
    problems = talk.bus.problems
    await problems.create("Trip")
    with pytest.raises(MemoryRefused, match="there is a problem 'TRIP' already"):
        await problems.create("TRIP")
    await problems.complete("p1")
    assert (await problems.create("Trip")).problem_id == "p2"
    await talk.open()
    assert (await talk.bus.problems.create("Other")).problem_id == "p3"


async def test_the_same_cause_makes_one_problem_also_after_others_and_a_restart(talk):
    first = await talk.bus.problems.create("first", cause="c")
    await talk.bus.problems.create("second")
    await talk.open()
    assert await talk.bus.problems.create("first", cause="c") == first
    assert len(await talk.bus.problems.list_by_state()) == 3


async def test_there_is_a_most_of_open_problems_and_what_is_done_does_not_count(talk):
    for number in range(MAX_OPEN_PROBLEMS):
        await talk.bus.problems.create(f"number {number}")
    with pytest.raises(MemoryRefused, match="complete one of them first"):
        await talk.bus.problems.create("one more")
    await talk.bus.problems.complete("p7")
    assert (await talk.bus.problems.create("one more")).problem_id == f"p{MAX_OPEN_PROBLEMS + 1}"


async def test_problems_are_listed_by_priority_and_then_by_use(talk):
    problems = talk.bus.problems
    for name in ("a", "b", "c"):
        talk.clock.advance(60)
        await problems.create(name)
    assert await problems.prioritise("p1", 9)
    assert not await problems.prioritise("p1", 9)
    assert [one.name for one in await problems.list_by_state("paused")] == ["a", "c", "b"]
    assert [one.name for one in await problems.list_by_state("active")] == [GENERAL_PROBLEM]
    assert await problems.list_by_state("completed") == []
    for wrong in (0, 10):
        with pytest.raises(MemoryRefused, match="from 1 to 9"):
            await problems.prioritise("p1", wrong)


async def test_a_problem_is_meant_by_id_number_name_and_the_beginning_of_its_name(talk):
    problems = talk.bus.problems
    for name in ("Trip to Rome", "Trip to Oslo", "2", "Taxes"):
        await problems.create(name)
    await problems.complete("p4")
    await problems.create("Taxes")
    known = await problems.list_by_state()
    for said, wanted in {
        "p2": "p2",
        "2": "p2",
        "TRIP  to rome": "p1",
        "trip to o": "p2",
        "gen": GENERAL_PROBLEM,
        "taxes": "p5",
        "tax": "p5",
        "4": "p4",
    }.items():
        assert match_problem(known, said).problem_id == wanted, said
    assert match_problem(known, "nothing") is match_problem(known, " ") is None
    with pytest.raises(MemoryRefused, match=r"Trip to \w+ \(p\d\), Trip to"):
        match_problem(known, "trip")


# Their states.


async def test_a_switch_pauses_the_one_and_works_on_the_other(talk):
    first = await talk.problem("first")
    second = await talk.problem("second")
    assert await states(talk) == {GENERAL_PROBLEM: "paused", first: "paused", second: "active"}
    assert not await talk.bus.problems.switch_to(second)
    assert await talk.bus.problems.resume(first)
    assert await states(talk) == {GENERAL_PROBLEM: "paused", first: "active", second: "paused"}
    with pytest.raises(MemoryRefused, match="there is no problem p9"):
        await talk.bus.problems.switch_to("p9")


@pytest.mark.parametrize(
    ("way", "state"),
    [("pause", "paused"), ("background", "background"), ("complete", "completed")],
)
@pytest.mark.parametrize("active", [True, False])
async def test_a_problem_is_put_aside_and_general_takes_its_place(talk, way, state, active):
    first = await talk.problem("first")
    await talk.bus.working_sets.update(first, open_questions=["why?"])
    if not active:
        await talk.bus.problems.background(first)
        await talk.problem("second")
        if state == "background":
            await talk.bus.problems.switch_to(first)
            await talk.bus.problems.switch_to("p2")
    done = await getattr(talk.bus.problems, way)(first)
    assert done
    assert (await states(talk))[first] == state
    assert (await talk.bus.problems.get_active()).problem_id == (
        GENERAL_PROBLEM if active else "p2"
    )
    assert not await getattr(talk.bus.problems, way)(first)
    left = await talk.bus.problems.get(first)
    # Only a paused one keeps its working set; of the others the summary stays.
    assert (left.working_set is not None) == (state == "paused" and active)
    assert await talk.bus.working_sets.export_summary(first) == "open: why?"


async def test_what_is_done_is_never_worked_on_again(talk):
    first = await talk.problem("first")
    await talk.bus.problems.complete(first)
    problems = talk.bus.problems
    assert not await problems.switch_to(first)
    assert not await problems.resume(first)
    assert not await problems.pause(first)
    assert not await problems.background(first)
    with pytest.raises(MemoryRefused, match="is completed"):
        await problems.request_switch(first)
    assert (await states(talk))[first] == "completed"


async def test_each_way_to_leave_exports_the_summary_to_the_trace_of_that_problem(talk):
    first = await talk.problem("first")
    for number, way in enumerate(("pause", "background", "complete")):
        await talk.bus.problems.switch_to(first)
        await talk.bus.working_sets.add(first, "open_questions", f"{number}?")
        await getattr(talk.bus.problems, way)(first)
    episodes = await talk.named(EPISODE_EVENT)
    assert [one.data["content"] for one in episodes] == [
        {"text": "open: 0?", "why": "paused"},
        {"text": "open: 0?; 1?", "why": "background"},
        {"text": "open: 2?", "why": "completed"},
    ]
    assert {problem_of(one) for one in episodes} == {first}


async def test_a_question_that_was_answered_is_in_no_later_summary(talk):
    first = await talk.problem("first")
    await talk.bus.working_sets.update(first, open_questions=["why?", "when?"])
    await talk.bus.problems.pause(first)
    await talk.bus.problems.switch_to(first)
    assert talk.fold.boundary.data["summary"] == "open: why?; when?"
    await talk.bus.working_sets.update(first, open_questions=["when?"])
    await talk.bus.problems.pause(first)
    assert await talk.bus.working_sets.export_summary(first) == "open: when?"
    await talk.bus.problems.switch_to(first)
    assert talk.fold.boundary.data["summary"] == "open: when?"


async def test_a_paused_problem_keeps_its_working_set_for_a_day(talk):
    first = await talk.problem("first")
    await talk.bus.working_sets.update(first, open_questions=["why?"])
    await talk.bus.problems.pause(first)
    talk.clock.advance(24 * HOUR - 1)
    await talk.bus.problems.switch_to(first)
    assert (await talk.bus.problems.get_working_set(first)).open_questions == ["why?"]
    # From then on its own hours count again.
    talk.clock.advance(2 * HOUR)
    assert (await talk.bus.problems.get_working_set(first)).open_questions == []


async def test_a_problem_opened_after_a_day_has_its_summary_and_a_new_working_set(talk):
    first = await talk.problem("first")
    await talk.bus.working_sets.update(first, open_questions=["why?"])
    await talk.bus.problems.pause(first)
    talk.clock.advance(25 * HOUR)
    await talk.bus.problems.switch_to(first)
    assert talk.fold.boundary.data["summary"] == "open: why?"
    assert (await talk.bus.problems.get_working_set(first)).empty


# Switching.


async def test_the_same_cause_switches_once_and_says_so_again(talk):
    first = await talk.problem("first")
    problems = talk.bus.problems
    assert await problems.switch_to(GENERAL_PROBLEM, cause="c")
    version = await talk.tape.version()
    assert await problems.switch_to(GENERAL_PROBLEM, cause="c")
    assert await problems.pause(first, cause="c")
    assert await problems.prioritise(first, 3, cause="c")
    assert await talk.tape.version() == version


async def test_nothing_is_switched_while_a_turn_runs(talk):
    made = await talk.bus.problems.create("first")
    turn = await talk.begin("hello")
    for change in (
        talk.bus.problems.switch_to(made.problem_id),
        talk.bus.problems.resume(made.problem_id),
    ):
        with pytest.raises(MemoryRefused, match="still running"):
            await change
    await talk.end(turn, "hi")
    assert await talk.bus.problems.switch_to(made.problem_id)


async def test_a_wish_is_done_once_what_runs_has_ended_and_the_last_one_counts(talk):
    problems = talk.bus.problems
    for name in ("first", "second"):
        await problems.create(name)
    turn = await talk.begin("hello")
    await problems.request_switch("p1")
    await problems.request_switch("p2", cause="c")
    await problems.request_switch("p2", cause="c")
    assert (await problems.get_active()).problem_id == GENERAL_PROBLEM
    await talk.end(turn, "hi")
    await talk.open()
    assert talk.fold.compartments.requested_problem == "p2"
    assert await talk.bus.problems.apply_requested_switch()
    assert not await talk.bus.problems.apply_requested_switch()
    assert (await talk.bus.problems.get_active()).problem_id == "p2"


async def test_a_wish_for_the_one_at_hand_takes_the_earlier_one_back(talk):
    await talk.problem("first")
    problems = talk.bus.problems
    await problems.request_switch(GENERAL_PROBLEM, leave="completed")
    await problems.request_switch("p1")
    assert not await problems.apply_requested_switch()
    assert await states(talk) == {GENERAL_PROBLEM: "paused", "p1": "active"}
    await problems.request_switch(GENERAL_PROBLEM)
    assert await problems.apply_requested_switch()
    assert (await states(talk))["p1"] == "paused"


@pytest.mark.parametrize("state", ["paused", "background", "completed"])
async def test_a_wish_may_say_in_which_state_the_one_at_hand_is_left(talk, state):
    first = await talk.problem("first")
    await talk.bus.working_sets.update(first, open_questions=["why?"])
    await talk.bus.problems.create("second")
    await talk.bus.problems.request_switch(GENERAL_PROBLEM, leave=state)
    # Where to go may still change; and until then it is worked on.
    await talk.bus.problems.request_switch("p2")
    await talk.bus.problems.prioritise(first, 8)
    await talk.open()
    assert (await states(talk))[first] == "active"
    assert await talk.bus.problems.apply_requested_switch()
    left = await talk.bus.problems.get(first)
    assert (left.state, left.priority) == (state, 8)
    assert (left.working_set is not None) == (state == "paused")
    assert await talk.bus.working_sets.export_summary(first) == "open: why?"
    assert (await talk.bus.problems.get_active()).problem_id == "p2"


# Opened at any point.


STEPS = st.lists(
    st.sampled_from(["say", "new", "p1", "p2", GENERAL_PROBLEM, "note", "want", "hour"])
)


@settings(max_examples=examples(60))
@given(steps=STEPS.filter(lambda steps: len(steps) > 3))
async def test_opened_at_any_point_the_tape_tells_what_the_running_session_knows(steps):
    talk = await Talk().open()
    said: dict[str, list[str]] = {}
    for number, step in enumerate(steps):
        active = talk.fold.problem
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
            await talk.bus.problems.request_switch(
                "p1" if "p1" in await states(talk) else GENERAL_PROBLEM
            )
        elif step in await states(talk):
            await talk.bus.problems.switch_to(step)
        view = talk.view()
        # All that is in view is of the problem at hand, its newest words last.
        assert all(text.removeprefix("re: ").split()[0] == talk.fold.problem for text in view)
        mine = said.get(talk.fold.problem, [])
        assert [text for text in view if not text.startswith("re: ")] == mine[-(len(view) // 2) :]
        assert bool(view) == bool(mine)
        for fold in (await load_fold(talk.tape, **talk.bounds), await folded_whole(talk)):
            assert fold.compartments == talk.fold.compartments
            assert fold.window.problem == talk.fold.window.problem == fold.problem
            assert fold.window.resume_plan == talk.fold.window.resume_plan
            assert [e.id for e in fold.window.conversation()] == [
                e.id for e in talk.fold.window.conversation()
            ]
            assert fold.window.messages == talk.fold.window.messages
            assert fold.window.tokens == talk.fold.window.tokens
            assert fold.window.unconsolidated == talk.fold.window.unconsolidated


async def folded_whole(talk: Talk) -> SessionFold:
    fold = SessionFold(WindowFold(**talk.bounds))
    for entry in await talk.tape.read_entries():
        fold.apply(entry)
    await load_resumed_entries(talk.tape, fold.window)
    return fold
