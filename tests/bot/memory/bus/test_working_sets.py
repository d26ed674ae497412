"""Working sets: kept apart by problem, ended by time, told of elsewhere only in short."""

from __future__ import annotations

from datetime import timedelta

import pytest
from problem_rig import HOUR, Talk

from bot.core.errors import MemoryRefused
from bot.memory.records.episodes import EPISODE_EVENT
from bot.memory.records.fact_fold import bus_entry
from bot.memory.records.problem_notes import (
    NOTE_KINDS,
    note_lines,
    with_note,
    without_note,
    without_text,
)
from bot.memory.session.bus.working_set import (
    MAX_LIFETIME_HOURS,
    MAX_WORKING_SET_BYTES,
    expiring_assumption,
)
from bot.memory.session.state.fold_loader import load_fold
from bot.tape.search import GENERAL_PROBLEM


@pytest.fixture
async def talk() -> Talk:
    return await Talk().open()


async def test_a_working_set_lives_two_hours_unless_it_says_otherwise_and_never_over_a_day(talk):
    sets = talk.bus.working_sets
    made = await sets.create(GENERAL_PROBLEM)
    assert made.expires_at - made.created_at == timedelta(hours=2)
    assert (made.problem_id, made.lane_id, made.empty) == (GENERAL_PROBLEM, "fake:1", True)
    short = await talk.bus.problems.create("short")
    long = await talk.bus.problems.create("long")
    brief = await sets.create(short.problem_id, ttl_hours=0.5)
    assert brief.expires_at - brief.created_at == timedelta(minutes=30)
    lasting = await sets.create(long.problem_id, ttl_hours=1_000)
    assert lasting.expires_at - lasting.created_at == timedelta(hours=MAX_LIFETIME_HOURS)
    assert await sets.create(GENERAL_PROBLEM) == made


async def test_the_hours_that_are_set_are_bounded_too():
    talk = await Talk(hours=100).open()
    made = await talk.bus.working_sets.create(GENERAL_PROBLEM)
    assert made.ttl_hours == MAX_LIFETIME_HOURS


async def test_what_is_not_used_is_gone_at_its_time_and_not_a_moment_before(talk):
    sets = talk.bus.working_sets
    await sets.update(GENERAL_PROBLEM, open_questions=["why?"])
    talk.clock.advance(2 * HOUR - 1)
    assert (await sets.get(GENERAL_PROBLEM)).open_questions == ["why?"]
    talk.clock.advance(1)
    assert await sets.get(GENERAL_PROBLEM) is None
    assert (await talk.bus.problems.get_active()).working_set is None
    # Nobody swept: it is the time alone.
    assert not await talk.named(EPISODE_EVENT)


async def test_a_write_and_a_turn_of_its_problem_keep_it_alive(talk):
    sets = talk.bus.working_sets
    await sets.update(GENERAL_PROBLEM, open_questions=["why?"])
    for _ in range(3):
        talk.clock.advance(1.5 * HOUR)
        await talk.say("go on")
        talk.clock.advance(1.5 * HOUR)
        await sets.add(GENERAL_PROBLEM, "open_questions", f"what of {talk.clock.monotonic()}?")
    assert len((await sets.get(GENERAL_PROBLEM)).open_questions) == 4
    talk.clock.advance(2 * HOUR)
    assert await sets.get(GENERAL_PROBLEM) is None


async def test_a_turn_of_another_problem_keeps_it_not(talk):
    sets = talk.bus.working_sets
    first = await talk.problem("first")
    await sets.update(first, open_questions=["why?"])
    await talk.problem("second")
    for _ in range(23):
        talk.clock.advance(HOUR)
        await talk.say("elsewhere")
    assert await sets.get(first) is not None
    talk.clock.advance(HOUR)
    await talk.say("elsewhere")
    assert await sets.get(first) is None


async def test_the_sweep_ends_what_is_stale_once_and_keeps_its_summary(talk):
    sets, first = talk.bus.working_sets, await talk.problem("first")
    await sets.update(first, local_decisions=[{"d": "by train", "why": "quiet"}])
    await sets.create(GENERAL_PROBLEM)
    assert await sets.expire_stale() == 0
    talk.clock.advance(3 * HOUR)
    before = await talk.tape.version()
    assert await sets.expire_stale() == 2
    assert await sets.expire_stale() == 0
    assert talk.fold.compartments.working_sets == {}
    [episode] = await talk.named(EPISODE_EVENT)
    assert episode.data == {
        "type": "summary",
        "content": {"text": "decided: by train (quiet)", "why": "expired"},
    }
    assert episode.meta["problem"] == first
    # The change and the episode, and nothing for the one that was empty.
    assert await talk.tape.version() == before + 2
    assert await sets.export_summary(first) == "decided: by train (quiet)"


async def test_a_write_after_its_time_begins_a_new_one_and_the_old_one_leaves_its_summary(talk):
    sets = talk.bus.working_sets
    await sets.update(GENERAL_PROBLEM, open_questions=["old?"], constraints={"must": ["old"]})
    talk.clock.advance(3 * HOUR)
    await sets.add(GENERAL_PROBLEM, "open_questions", "new?")
    held = await sets.get(GENERAL_PROBLEM)
    assert (held.open_questions, held.constraints) == (["new?"], {})
    assert await sets.export_summary(GENERAL_PROBLEM) == "open: new?\nmust: old\nopen: old?"
    assert [one.data["content"]["text"] for one in await talk.named(EPISODE_EVENT)] == [
        "must: old\nopen: old?"
    ]


async def test_a_problem_that_is_left_after_its_set_expired_still_exports_it(talk):
    sets, first = talk.bus.working_sets, await talk.problem("first")
    await sets.update(first, open_questions=["why?"])
    talk.clock.advance(3 * HOUR)
    await talk.bus.problems.pause(first)
    assert (await talk.bus.problems.get(first)).summary == "open: why?"
    assert len(await talk.named(EPISODE_EVENT)) == 1


async def test_a_summary_tells_all_in_short_and_of_drafts_the_names_alone(talk):
    await talk.bus.working_sets.update(
        GENERAL_PROBLEM,
        constraints={"must": ["cheap", "near"], "must_not": ["loud"]},
        assumptions=[{"a": "it rains", "confidence": 0.5}, {"a": "pending", "fact": 3}],
        open_questions=["when?\nwhere?"],
        partial_artifacts={"letter": "Dear Sir"},
        local_decisions=[{"d": "by train", "why": "quiet"}, {"d": "x" * 500}],
    )
    told = await talk.bus.working_sets.export_summary(GENERAL_PROBLEM)
    assert told.splitlines() == [
        "must: cheap; near",
        "must not: loud",
        f"decided: by train (quiet); {'x' * 200}…",
        "assumed: it rains",
        "open: when? where?",
        "drafts: letter",
    ]
    assert await talk.bus.working_sets.export_summary("p9") == ""


async def test_one_problem_reads_nothing_of_another(talk):
    sets = talk.bus.working_sets
    first = await talk.bus.problems.create("first")
    second = await talk.bus.problems.create("second")
    await sets.update(first.problem_id, open_questions=["secret?"])
    assert await sets.get(second.problem_id) is None
    await sets.update(second.problem_id, open_questions=["other?"])
    assert "secret?" not in str(await sets.get(second.problem_id))
    assert "secret?" not in await sets.export_summary(second.problem_id)
    await sets.isolate(first.problem_id)
    talk.fold.compartments.working_sets["p1"] = talk.fold.compartments.working_sets["p2"]
    with pytest.raises(MemoryRefused, match="working set of p1 is that of p2"):
        await sets.isolate("p1")
    with pytest.raises(MemoryRefused, match="it is not shown"):
        await talk.bus.problems.get_working_set("p1")


async def test_every_write_names_a_problem_that_there_is(talk):
    sets = talk.bus.working_sets
    for write in (
        sets.create("p9"),
        sets.update("p9", open_questions=[]),
        sets.add("p9", "open_questions", "why?"),
    ):
        with pytest.raises(MemoryRefused, match="there is no problem p9"):
            await write


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"mood": []}, "has no 'mood'"),
        ({"expires_at": []}, "has no 'expires_at'"),
        ({"open_questions": "why?"}, "must be a list"),
        ({"open_questions": [1]}, "must be texts"),
        ({"constraints": []}, "must be a dict"),
        ({"constraints": {"must": "cheap"}}, "must be lists by name"),
        ({"assumptions": ["it rains"]}, "must have a text 'a'"),
        ({"local_decisions": [{"why": "so"}]}, "must have a text 'd'"),
        ({"open_questions": ["?"] * 51}, "would pass 50"),
        ({"partial_artifacts": {"draft": "x" * MAX_WORKING_SET_BYTES}}, "would pass 16000 bytes"),
        ({"partial_artifacts": {"draft": {1, 2}}}, "holds JSON only"),
    ],
)
async def test_what_cannot_be_kept_is_refused_and_changes_nothing(talk, fields, why):
    await talk.bus.working_sets.update(GENERAL_PROBLEM, open_questions=["kept?"])
    before = await talk.tape.version()
    with pytest.raises(MemoryRefused, match=why):
        await talk.bus.working_sets.update(GENERAL_PROBLEM, **fields)
    assert await talk.tape.version() == before
    assert (await talk.bus.working_sets.get(GENERAL_PROBLEM)).open_questions == ["kept?"]


async def test_the_same_cause_writes_once_and_what_is_there_is_not_written_again(talk):
    sets = talk.bus.working_sets
    for _ in range(2):
        await sets.add(GENERAL_PROBLEM, "open_questions", "why?", cause="call:1")
    await sets.add(GENERAL_PROBLEM, "open_questions", "why?", cause="call:2")
    await sets.add(GENERAL_PROBLEM, "partial_artifacts", {"letter": "Dear"})
    await sets.add(GENERAL_PROBLEM, "partial_artifacts", {"list": ["milk"]})
    held = await sets.get(GENERAL_PROBLEM)
    assert held.open_questions == ["why?"]
    assert held.partial_artifacts == {"letter": "Dear", "list": ["milk"]}
    assert await talk.bus.write_to_working(GENERAL_PROBLEM, "open_questions", ["what?"])
    assert (await sets.get(GENERAL_PROBLEM)).open_questions == ["what?"]


async def test_a_change_of_a_problem_that_is_not_worked_on_carries_its_name(talk):
    made = await talk.bus.problems.create("aside")
    await talk.bus.working_sets.update(made.problem_id, open_questions=["why?"])
    entries = await talk.named("memory.bus")
    assert [entry.meta.get("problem") for entry in entries] == [None, made.problem_id]


async def test_opened_again_a_working_set_is_what_it_was_also_when_it_ends(talk):
    sets, first = talk.bus.working_sets, await talk.problem("first")
    await sets.update(first, constraints={"must": ["cheap"]}, open_questions=["why?"])
    talk.clock.advance(HOUR)
    await talk.say("go on")
    await talk.say("and on")
    before = talk.fold.compartments.working_set(first, talk.clock.now())
    await talk.open()
    assert talk.fold.compartments.working_set(first, talk.clock.now()) == before
    talk.clock.advance(2 * HOUR - 1)
    assert await talk.bus.working_sets.get(first) is not None
    talk.clock.advance(1)
    assert await talk.bus.working_sets.get(first) is None


async def test_a_set_of_another_shape_from_elsewhere_does_not_keep_anybody_from_leaving(talk):
    first = await talk.problem("first")
    odd = {
        "problem": first,
        "created": "2026-02-10T10:00:00+00:00",
        "expires": "2026-02-10T12:00:00+00:00",
        "assumptions": ["bare", {"confidence": 1}],
        "local_decisions": [None],
        "open_questions": [{"deep": 1}],
    }
    await talk.tape.append(bus_entry(talk.fold.facts, {"working": [odd]}))
    held = await talk.bus.working_sets.get(first)
    assert note_lines(held, "assume") == ["bare", "{'confidence': 1}"]
    assert "bare" in await talk.bus.working_sets.compile(first)
    assert await talk.bus.problems.pause(first)
    fold = await load_fold(talk.tape, **talk.bounds)
    assert fold.problem == GENERAL_PROBLEM


async def test_notes_of_each_kind_are_made_listed_and_taken_away(talk):
    sets = talk.bus.working_sets
    for kind in NOTE_KINDS:
        await sets.change(GENERAL_PROBLEM, lambda one, kind=kind: with_note(one, kind, "so", "as"))
        await sets.change(
            GENERAL_PROBLEM, lambda one, kind=kind: with_note(one, kind, "other", "then")
        )
        await sets.change(
            GENERAL_PROBLEM, lambda one, kind=kind: with_note(one, kind, "other", "then")
        )
    held = await sets.get(GENERAL_PROBLEM)
    assert held.constraints == {"must": ["so", "other"], "must_not": ["so", "other"]}
    assert note_lines(held, "decide") == ["so (because as)", "other (because then)"]
    assert note_lines(held, "draft") == ["as: so", "then: other"]
    assert [len(note_lines(held, kind)) for kind in NOTE_KINDS] == [2] * len(NOTE_KINDS)
    for kind in NOTE_KINDS:
        await sets.change(GENERAL_PROBLEM, lambda one, kind=kind: without_note(one, kind, 1))
        for number in (0, 2):
            with pytest.raises(MemoryRefused, match=f"there is no note {kind} {number}"):
                await sets.change(
                    GENERAL_PROBLEM, lambda one, kind=kind, n=number: without_note(one, kind, n)
                )
    for text in ["OTHER", "other", "other", "other", "other", "then"]:
        await sets.change(GENERAL_PROBLEM, lambda one, text=text: without_text(one, text))
    assert (await sets.get(GENERAL_PROBLEM)).empty
    with pytest.raises(MemoryRefused, match="no note says this"):
        await sets.change(GENERAL_PROBLEM, lambda one: without_text(one, "other"))


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [("ask", " ", ""), ("must", "x" * 1_001, ""), ("draft", "x", ""), ("draft", "x", "n" * 61)],
)
async def test_a_note_that_says_nothing_or_too_much_is_refused(talk, kind, text, why):
    with pytest.raises(MemoryRefused, match="characters"):
        await talk.bus.working_sets.change(
            GENERAL_PROBLEM, lambda one: with_note(one, kind, text, why)
        )


async def test_what_is_contested_is_in_the_packet_for_its_hours_and_in_no_summary():
    talk = await Talk().open()
    sets = talk.bus.working_sets
    held = expiring_assumption(
        "the deadline is in June", 0.8, talk.clock.now() + timedelta(hours=1)
    )
    await sets.add(GENERAL_PROBLEM, "assumptions", held)
    assert "in June" in await sets.compile(GENERAL_PROBLEM)
    assert await sets.export_summary(GENERAL_PROBLEM) == ""
    talk.clock.advance(HOUR)
    assert await sets.get(GENERAL_PROBLEM) is not None
    assert "in June" not in await sets.compile(GENERAL_PROBLEM)
