"""Working sets: kept apart by problem, ended by time, told of elsewhere only in short."""

from __future__ import annotations

from datetime import timedelta

import pytest
from problem_rig import HOUR, Talk

from bot.core.clock import parse_time
from bot.core.errors import MemoryRefused
from bot.memory.gate.write_gate import WriteSignals
from bot.memory.session.bus.working_set import MAX_WORKING_SET_BYTES
from bot.tape.search import GENERAL_PROBLEM


@pytest.fixture
async def talk() -> Talk:
    return await Talk().open()


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


async def test_it_is_gone_two_hours_after_its_last_use_and_not_a_moment_before(talk):
    sets = talk.bus.working_sets
    await sets.update(GENERAL_PROBLEM, open_questions=["why?"])
    for number in range(3):
        talk.clock.advance(1.5 * HOUR)
        await talk.say("go on")
        talk.clock.advance(1.5 * HOUR)
        await sets.add(GENERAL_PROBLEM, "open_questions", f"what of {number}?")
    talk.clock.advance(2 * HOUR - 1)
    assert len((await sets.get(GENERAL_PROBLEM)).open_questions) == 4
    talk.clock.advance(1)
    assert await sets.get(GENERAL_PROBLEM) is None
    await talk.open()
    assert await talk.bus.working_sets.get(GENERAL_PROBLEM) is None


async def test_the_sweep_counts_what_is_stale_once_and_its_summary_stays_without_a_drafts_text(
    talk,
):
    sets, first = talk.bus.working_sets, await talk.problem("first")
    await sets.update(
        first, constraints={"must": ["cheap", "near"]}, partial_artifacts={"letter": "Dear Sir"},
        assumptions=[{"a": "it rains", "confidence": 0.5}], open_questions=["when?\nwhere?"],
        local_decisions=[{"d": "by train", "why": "quiet"}, {"d": "x" * 500}],
    )  # fmt: skip
    await sets.create(GENERAL_PROBLEM)
    assert await sets.expire_stale() == 0
    talk.clock.advance(3 * HOUR)
    assert await sets.expire_stale() == 2
    assert await sets.expire_stale() == 0
    told = await sets.export_summary(first)
    assert told.splitlines() == [
        "must: cheap; near",
        f"decided: by train (quiet); {'x' * 200}…",
        "assumed: it rains",
        "open: when? where?",
        "drafts: letter",
    ]
    [episode] = await talk.bus.episodic.query(problem_id=first, entry_type="summary")
    assert episode.content == {"text": told, "why": "expired"}


async def test_one_problem_reads_nothing_of_another_and_every_write_names_one_that_there_is(talk):
    sets = talk.bus.working_sets
    for name in ("first", "second"):
        await talk.bus.problems.create(name)
    await sets.update("p1", open_questions=["secret?"])
    assert await sets.get("p2") is None
    await sets.update("p2", open_questions=["other?"])
    assert "secret?" not in f"{await sets.get('p2')}{await sets.export_summary('p2')}"
    talk.fold.compartments.working_sets["p1"] = talk.fold.compartments.working_sets["p2"]
    with pytest.raises(MemoryRefused, match="it is not shown"):
        await talk.bus.problems.get_working_set("p1")
    for write in (
        sets.create("p9"),
        sets.update("p9", open_questions=[]),
        sets.add("p9", "open_questions", "why?"),
    ):
        with pytest.raises(MemoryRefused, match="there is no problem p9"):
            await write


@pytest.mark.parametrize(
    ("fields", "why"),
    [({"mood": []}, "has no 'mood'"), ({"open_questions": "why?"}, "must be a list"),
     ({"open_questions": [1]}, "must be texts"), ({"constraints": []}, "must be a dict"),
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


async def test_what_the_gate_holds_back_ends_in_a_working_set_after_two_hours(talk):
    await talk.say("The budget is 500 euros.")
    source, contested = f"fake:1#{talk.fold.version}", WriteSignals(conflict_level="high")
    written = await talk.bus.write_to_shared("budget", 500, source, contested, by="person")
    assert written.is_assumption
    [assumed] = (await talk.bus.working_sets.get(GENERAL_PROBLEM)).assumptions
    assert parse_time(assumed["until"]) == talk.clock.now() + timedelta(hours=2)
    assert "budget" in await talk.bus.working_sets.compile(GENERAL_PROBLEM)
    talk.clock.advance(2 * HOUR)
    assert "budget" not in await talk.bus.working_sets.compile(GENERAL_PROBLEM)
