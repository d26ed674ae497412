"""What is believed rests on evidence: it grows surer by evidence of its own, and is doubted once that goes."""

from __future__ import annotations

import pytest
from semantic_rig import DAY, SESSION, Rig, drawn

from bot.core.errors import MemoryRefused
from bot.memory.records.compartment_records import SynthesizedPattern
from bot.memory.records.compartments import BUS_EVENT
from bot.memory.records.fact_fold import bus_entry
from bot.tape.entries import tool_result

# Evidence.


@pytest.mark.parametrize(
    "evidence",
    [(), ("fake:1#999",), ("nowhere:9#1",), ("p7",), ("12",), ("not an id",), ("#",), ("²",)],
)
async def test_a_belief_without_evidence_that_is_there_is_refused(rig, evidence):
    await rig.says("I plan my weeks on Sunday.")
    with pytest.raises(MemoryRefused):
        await rig.believes("Ada likes plans.", *evidence)
    assert rig.home.compartments.patterns == {}


async def test_erased_and_superseded_words_are_no_evidence(rig):
    erased, replaced = await rig.says("I like mornings."), await rig.says("I like evenings.")
    await rig.erases(erased)
    await rig.supersedes(replaced)
    with pytest.raises(MemoryRefused, match="was erased"):
        await rig.believes("Ada works early.", erased)
    with pytest.raises(MemoryRefused, match="was superseded by fake:1#"):
        await rig.believes("Ada works late.", replaced)


async def test_what_is_no_belief_is_refused(rig):
    said = await rig.says("My password is hunter2-Xy9!")
    for text in ("", "  ", "x" * 2_000, "The password of Ada is hunter2-Xy9!"):
        with pytest.raises(MemoryRefused):
            await rig.believes(text, said)
    with pytest.raises(MemoryRefused):
        await rig.believes("Ada has a password.", said, kind="fact")
    await rig.home.pause(paused=True)
    with pytest.raises(MemoryRefused, match="paused"):
        await rig.believes("Ada types.", said)


async def test_a_group_believes_nothing_on_what_was_said_elsewhere():
    group = Rig("session", "fake:-5")
    with pytest.raises(MemoryRefused, match="elsewhere"):
        await group.believes("Ada likes tea.", await group.says("I like tea."))


async def test_the_same_cause_adds_once_and_answers_the_same(rig):
    said = await rig.says("I plan on Sunday.")
    first = await rig.semantic.add_pattern(drawn("Ada plans.", said), cause="call:1")
    version = await rig.home.tape.version()
    await rig.erases(said)
    again = rig.opened(rig.fresh_home())
    assert await again.add_pattern(drawn("Ada plans.", said), cause="call:1") == first
    assert await rig.home.tape.version() == version


# Strengthening.


async def test_independent_new_evidence_strengthens(rig):
    name = await rig.believes("Ada plans her weeks.", await rig.says("I plan my week on Sunday."))
    rig.clock.advance(30 * DAY)
    before = (await rig.pattern(name)).confidence_at(rig.clock.now())
    assert await rig.semantic.strengthen(name, await rig.says("This week, too, I planned ahead."))
    after = await rig.pattern(name)
    assert after.confidence == pytest.approx(0.75)
    assert after.last_validated == rig.clock.now()
    assert after.confidence_at(rig.clock.now()) > before


async def test_being_recalled_does_not_strengthen(rig):
    name = await rig.believes("Ada likes green tea.", await rig.says("Green tea again for me."))
    await rig.says("You like green tea most of all.", role="assistant")
    call = tool_result("c1", "memory_recall", "- 2026-02-10, Ada [#2]: Green tea again for me.")
    recalled = await rig.session.append(call)
    quoted = await rig.says("> You like green tea most of all.")
    for one in (
        await rig.says("You like green tea most of all"),
        await rig.says("You like green tea most of all.", role="assistant"),
        f"{SESSION}#{recalled.id}",
        quoted,
    ):
        assert not await rig.semantic.strengthen(name, one)
    await rig.semantic.search(text="green tea")
    await rig.semantic.get_evidence_chain(name)
    assert await rig.pattern(name) == (await rig.semantic.search("conclusion"))[0]
    assert (await rig.pattern(name)).confidence == 0.7


async def test_the_answer_to_a_question_is_no_repetition_of_it(rig):
    name = await rig.believes("Ada likes green tea.", await rig.says("Green tea again for me."))
    await rig.says("Do you like green tea?", role="assistant")
    assert await rig.semantic.strengthen(name, await rig.says("I do like green tea."))


async def test_what_is_known_erased_unlearnable_or_nowhere_does_not_strengthen(rig):
    first = await rig.says("I plan my week on Sunday.")
    name = await rig.believes("Ada plans her weeks.", first)
    erased = await rig.says("I planned everything today.")
    await rig.erases(erased)
    replaced = await rig.says("I planned the summer, too.")
    await rig.supersedes(replaced)
    paused = await rig.says("I planned the autumn.", paused=True)
    for one in (first, erased, replaced, paused, "fake:1#999", "nowhere#1", "p1", ""):
        assert not await rig.semantic.strengthen(name, one)
    version = await rig.home.tape.version()
    await rig.home.pause(paused=True)
    assert not await rig.semantic.strengthen(name, await rig.says("I planned the winter."))
    assert (await rig.pattern(name)).confidence == 0.7
    assert await rig.home.tape.version() == version + 1


async def test_confidence_grows_to_095_and_no_further(rig):
    name = await rig.believes("Ada plans.", await rig.says("I plan a lot."))
    for number in range(12):
        assert await rig.semantic.strengthen(name, await rig.says(f"Plan {number} is done."))
    assert (await rig.pattern(name)).confidence == pytest.approx(0.95)


async def test_the_same_belief_again_is_strengthened_once_and_not_added(rig):
    first = await rig.believes("Ada plans her weeks.", await rig.says("I plan my week."))
    more = [await rig.says(f"The week of {day} is planned.") for day in ("May", "June", "July")]
    assert await rig.believes("Ada plans her weeks", *more) == first
    assert (await rig.pattern(first)).confidence == pytest.approx(0.75)
    assert len((await rig.pattern(first)).evidence_ids) == 4
    assert await rig.believes("Ada plans her weeks.", more[0]) == first
    assert (await rig.pattern(first)).confidence == pytest.approx(0.75)
    other = await rig.believes("Ada plans her weeks.", more[0], kind="heuristic")
    assert other != first


async def test_a_fact_is_strengthened_through_the_gate(rig):
    fact = await rig.fact("Ada likes tea.", await rig.says("I like tea."))
    assert await rig.semantic.strengthen(str(fact.id), await rig.says("Tea is what I like best."))
    again = await rig.pattern(str(fact.id))
    assert again.confidence > fact.confidence
    assert len(again.evidence_ids) == 2
    assert not await rig.semantic.strengthen(str(fact.id), again.evidence_ids[1])


# What evidence becomes.


async def test_too_little_evidence_left_makes_a_belief_stale_with_the_reason(rig):
    said = await rig.says("I plan a lot.")
    name = await rig.believes("Ada plans.", said)
    new = await rig.supersedes(said)
    assert await rig.semantic.check_evidence() == [name]
    held = await rig.pattern(name)
    assert (held.status, held.reason) == ("stale", f"{said} was superseded by {new}")
    assert await rig.semantic.check_evidence() == []
    await rig.semantic.revalidate(name, still_valid=True)
    assert await rig.semantic.check_evidence() == []
    assert (await rig.pattern(name)).status == "active"


async def test_enough_other_evidence_costs_a_belief_confidence_once(rig):
    said = [await rig.says(f"Plan number {number} is made.") for number in range(4)]
    name = await rig.believes("Ada plans.", *said)
    await rig.erases(said[0])
    assert await rig.semantic.check_evidence() == [name]
    assert await rig.semantic.check_evidence() == []
    doubted = await rig.pattern(name)
    assert (doubted.status, doubted.confidence) == ("active", pytest.approx(0.5))
    await rig.erases(said[1])
    await rig.semantic.check_evidence()
    assert (await rig.pattern(name)).confidence == pytest.approx(0.3)
    await rig.erases(said[2])
    await rig.semantic.check_evidence()
    assert (await rig.pattern(name)).status == "stale"


async def test_a_belief_on_a_fact_or_a_belief_that_ended_is_stale_all_the_way_up(rig):
    fact = await rig.fact("Ada likes tea.", await rig.says("I like tea."))
    first = await rig.believes("Ada would like a teapot.", str(fact.id))
    second = await rig.believes("A teapot is a good gift for Ada.", first)
    assert await rig.semantic.check_evidence() == []
    await rig.semantic.revalidate(str(fact.id), still_valid=False)
    assert await rig.semantic.check_evidence() == [first, second]
    assert f"{fact.id} was retired" in (await rig.pattern(first)).reason
    assert f"{first} is stale" in (await rig.pattern(second)).reason


async def test_a_shared_value_whose_source_was_superseded_is_stale(rig):
    said = await rig.says("The deadline is Friday.")
    record = {"key": "deadline", "value": "Friday", "version": 1, "source": said}

    def compose(_: int):
        return [bus_entry(rig.home.fold, {"references": [record]})], None

    await rig.home.append_change(compose)
    [entry] = [one for one in await rig.home.tape.read_entries() if one.name == BUS_EVENT]
    await rig.supersedes(said)
    assert await rig.semantic.check_evidence() == ["shared:deadline"]
    assert rig.home.compartments.references["deadline"].stale
    assert rig.home.compartments.versions["deadline"] == {1: entry.id}
    assert await rig.semantic.check_evidence() == []


async def test_more_episodes_than_one_search_gives_are_all_looked_through(rig, monkeypatch):
    monkeypatch.setattr("bot.memory.gate.evidence_status.MAX_HITS", 3)
    said = [await rig.says(f"Plan number {number} is made.") for number in range(12)]
    names = [await rig.believes(f"Ada made plan {at}.", one) for at, one in enumerate(said)]
    for one in said:
        await rig.supersedes(one)
    assert await rig.semantic.check_evidence() == names


# What a belief says.


@pytest.mark.parametrize(
    ("kind", "content", "text"),
    [
        ("conclusion", {"conclusion": "Ada plans ahead", "evidence": ["x"]}, "Ada plans ahead"),
        (
            "heuristic",
            {"code": "P1", "meaning": "asks before she acts"},
            "P1: asks before she acts",
        ),
        (
            "policy",
            {"if": {"topic": "taxes"}, "then": {"ask": "for receipts"}},
            "If topic taxes, then ask for receipts",
        ),
        ("summary", {"episode_ids": ["a"], "summary": "Plans were made"}, "Plans were made"),
    ],
)
async def test_a_pattern_of_its_types_own_shape_needs_no_text(rig, kind, content, text):
    said = await rig.says("I plan a lot, and ask before I act.")
    now = rig.clock.now()
    made = SynthesizedPattern("", kind, content, [said], 0.7, now, now)
    name = await rig.semantic.add_pattern(made)
    found = await rig.pattern(name)
    assert found.text == text
    assert found.content == {**content, "text": text}
