"""What is believed: it rests on evidence, grows surer by evidence of its own, and fades without any."""

from __future__ import annotations

import pytest
from semantic_rig import DAY, SESSION, Rig, drawn

from bot.core.errors import MemoryRefused
from bot.memory.gate.belief_updates import current_ranks
from bot.memory.records.compartment_records import SynthesizedPattern
from bot.memory.records.compartments import BUS_EVENT
from bot.memory.records.event_names import (
    HISTORY_EVENT,
)
from bot.memory.records.fact_fold import bus_entry
from bot.memory.session.bus.semantic_synthesis import render_prompt_beliefs
from bot.memory.session.state.fact_markdown import select_facts
from bot.tape.entries import event, tool_result


@pytest.fixture
def rig() -> Rig:
    return Rig()


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


# Doubt, decay, revalidation.


async def test_doubt_takes_a_fifth_keeps_its_reason_and_never_goes_below_005(rig):
    name = await rig.believes("Ada plans.", await rig.says("I plan a lot."))
    await rig.semantic.weaken(name, "she forgot her plan", cause="c1")
    await rig.semantic.weaken(name, "she forgot her plan", cause="c1")
    doubted = await rig.pattern(name)
    assert doubted.confidence == pytest.approx(0.5)
    assert doubted.reason == "she forgot her plan"
    for number in range(5):
        await rig.semantic.weaken(name, f"doubt {number}")
    assert (await rig.pattern(name)).confidence == pytest.approx(0.05)
    assert "doubt 4" in (await rig.pattern(name)).reason


async def test_a_belief_fades_with_time_and_is_never_removed(rig):
    name = await rig.believes("Ada plans.", await rig.says("I plan a lot."))
    rig.clock.advance(400 * DAY)
    assert await rig.semantic.decay_all() == 1
    assert await rig.semantic.decay_all() == 0
    assert (await rig.pattern(name)).confidence == 0.7
    assert (await rig.pattern(name)).confidence_at(rig.clock.now()) < 0.02
    assert [one.id for one in await rig.semantic.search()] == [name]
    assert await rig.semantic.search(min_confidence=0.02) == []


async def test_decay_lowers_the_rank_of_facts_alone_and_of_none_that_a_person_asked_for(rig):
    learned = await rig.fact("Ada likes tea.", await rig.says("I like tea."))
    asked = await rig.fact("Ada lives in Bonn.", await rig.says("I live in Bonn."), "person")
    rig.clock.advance(40 * DAY)
    assert await rig.semantic.decay_all() == 1
    ranks = current_ranks(rig.home.fold)
    assert ranks == {learned.id: pytest.approx(0.8 * 0.995**40, abs=1e-3)}
    assert {one.id: one.confidence for one in rig.home.active()} == {
        learned.id: learned.confidence,
        asked.id: asked.confidence,
    }
    reopened = rig.fresh_home()
    await reopened.open()
    assert current_ranks(reopened.fold) == ranks


async def test_decay_is_recorded_once_a_day_unless_asked_for_and_only_where_a_rank_moved(rig):
    await rig.fact("Ada likes tea.", await rig.says("I like tea."))
    rig.clock.advance(DAY)
    assert await rig.semantic.decay_all() == 0  # by less than a hundredth
    rig.clock.advance(9 * DAY)
    assert await rig.semantic.decay_all() == 1
    rig.clock.advance(DAY / 2)
    version = await rig.home.tape.version()
    assert await rig.semantic.decay_all() == 0
    assert await rig.semantic.decay_all(asked=True) == 0
    assert await rig.home.tape.version() == version
    rig.clock.advance(10 * DAY)
    assert await rig.semantic.decay_all(asked=True) == 1


async def test_a_fact_that_is_said_again_has_its_own_rank_again(rig):
    fact = await rig.fact("Ada likes tea.", await rig.says("I like tea."))
    rig.clock.advance(100 * DAY)
    await rig.semantic.decay_all()
    assert current_ranks(rig.home.fold)[fact.id] < 0.5
    rig.clock.advance(DAY)
    await rig.semantic.strengthen(str(fact.id), await rig.says("Tea is what I like best."))
    assert current_ranks(rig.home.fold) == {}
    rig.clock.advance(2 * DAY)
    await rig.fact("Ada has a cat.", await rig.says("I have a cat."))
    assert await rig.semantic.decay_all() == 0 or current_ranks(rig.home.fold)[fact.id] > 0.8


async def test_the_prompt_leaves_out_first_what_nobody_said_for_long(rig):
    old = await rig.fact("Ada likes tea.", await rig.says("I like tea."))
    rig.clock.advance(60 * DAY)
    new = await rig.fact("Ada likes jam.", await rig.says("I like jam."))
    one = len("- Ada likes tea.") + 2
    assert select_facts(rig.home.active(), one, {}) == [new]
    ranks = {old.id: 0.79, new.id: 0.3}
    assert select_facts(rig.home.active(), one, ranks) == [old]


async def test_a_person_says_that_a_belief_holds_or_that_it_does_not(rig):
    name = await rig.believes("Ada plans.", await rig.says("I plan a lot."))
    rig.clock.advance(50 * DAY)
    await rig.semantic.revalidate(name, still_valid=True)
    held = await rig.pattern(name)
    assert held.last_validated == rig.clock.now()
    assert held.status == "active"
    await rig.semantic.revalidate(name, still_valid=False, cause="c9")
    ended = await rig.pattern(name)
    assert ended.status == "retired"
    assert ended.reason.endswith("revalidated: no longer valid")
    assert await rig.semantic.search() == []
    rig.clock.advance(DAY)
    await rig.semantic.revalidate(name, still_valid=True, cause="c9")
    assert (await rig.pattern(name)) == ended


async def test_what_a_person_ended_comes_back_by_newer_words_only(rig):
    said = await rig.says("I plan a lot.")
    name = await rig.believes("Ada plans.", said)
    rig.clock.advance(DAY)
    await rig.semantic.revalidate(name, still_valid=False)
    with pytest.raises(MemoryRefused, match="ended since"):
        await rig.believes("Ada plans.", said)
    rig.clock.advance(DAY)
    assert await rig.believes("Ada plans.", said, await rig.says("I plan again.")) == "p2"


async def test_a_fact_is_revalidated_by_a_person_through_the_gate(rig):
    fact = await rig.fact("Ada likes tea.", await rig.says("I like tea."))
    with pytest.raises(MemoryRefused):
        await rig.semantic.revalidate(str(fact.id), still_valid=True)
    said = await rig.says("Yes, tea.")
    await rig.semantic.revalidate(str(fact.id), still_valid=True, evidence_id=said, asker="7")
    assert (await rig.pattern(str(fact.id))).protected
    await rig.semantic.revalidate(str(fact.id), still_valid=False, asker="7")
    assert rig.home.active() == []
    with pytest.raises(MemoryRefused):
        await rig.semantic.weaken(str(fact.id), "no")


async def test_a_belief_that_cannot_hold_beside_a_newer_one_is_stale(rig):
    old = await rig.believes("The user lives in Bonn.", await rig.says("I live in Bonn."))
    new = await rig.believes("The user lives in Graz.", await rig.says("I live in Graz now."))
    assert (await rig.pattern(old)).status == "stale"
    assert f"{new} says otherwise" in (await rig.pattern(old)).reason


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


# Reading.


async def test_the_chain_follows_beliefs_and_facts_once_each_oldest_first_over_segments(rig):
    said = [await rig.says(f"I tell number {number}.") for number in range(3)]
    await rig.session.archive()
    later = await rig.says("I like tea.")
    fact = await rig.fact("Ada likes tea.", later)
    first = await rig.believes("Ada counts.", said[2], said[0])
    second = await rig.believes("Ada counts cups.", str(fact.id), first, said[1], said[0])
    chain = await rig.semantic.get_evidence_chain(second)
    assert [one.id for one in chain] == [*said, later]
    assert chain[0].content["content"] == "I tell number 0."


async def test_the_chain_shows_what_is_erased_or_missing_and_ends_where_beliefs_go_in_circles(rig):
    said = [await rig.says(f"I tell number {number}.") for number in range(2)]
    await rig.believes("Ada counts.", *said)
    records = [drawn("one", "p3", "fake:1#999"), drawn("two", "p2", said[0], "77")]
    made = [one.as_json() | {"id": f"p{at}"} for at, one in enumerate(records, 2)]

    def compose(_: int):
        return [bus_entry(rig.home.fold, {"patterns": made})], None

    await rig.home.append_change(compose)
    await rig.erases(said[0])
    chain = {one.id: one.content for one in await rig.semantic.get_evidence_chain("p2")}
    assert chain == {"fake:1#999": {"missing": True}, "77": {"missing": True},
                     said[0]: {"erased": True}}  # fmt: skip
    with pytest.raises(MemoryRefused):
        await rig.semantic.get_evidence_chain("p99")


async def test_beliefs_are_found_by_type_words_and_what_is_left_of_their_confidence(rig):
    said = await rig.says("I like tea.")
    old = await rig.believes("Short meetings work.", said, kind="heuristic", confidence=0.75)
    rig.clock.advance(100 * DAY)
    new = await rig.believes("Long walks work.", said, kind="heuristic", confidence=0.6)
    fact = await rig.fact("Ada likes tea.", await rig.says("Tea is what I like."))
    names = [one.id for one in await rig.semantic.search()]
    assert names[-2:] == [new, old]
    assert names[0] == str(fact.id)
    assert [one.id for one in await rig.semantic.search("fact")] == [str(fact.id)]
    assert [one.id for one in await rig.semantic.search("heuristic", 0.5)] == [new]
    assert [one.id for one in await rig.semantic.search(text="meeting")] == [old]


async def test_summaries_of_the_problem_at_hand_are_read_and_of_no_other(rig):
    said = [await rig.says(f"I tell number {number}.") for number in range(3)]
    ends = [int(one.rpartition("#")[2]) for one in (said[0], said[-1])]
    told = {"entry": "Ada counted.", "range": ends}
    general = await rig.session.append(event(HISTORY_EVENT, told))
    other = await rig.session.append(
        event(HISTORY_EVENT, {**told, "entry": "Taxes."}, problem="p1")
    )
    names = [f"h{one.id}" for one in (general, other)]
    [found] = await rig.semantic.search("summary")
    assert (found.id, found.text) == (names[0], "Ada counted.")
    assert found.evidence_ids == [said[0], said[-1]]
    assert [one.id for one in await rig.semantic.get_evidence_chain(names[0])] == said
    assert await rig.semantic.get_pattern(names[1]) is None
    taxes = rig.opened(rig.home, "p1")
    assert [one.text for one in await taxes.search("summary")] == ["Taxes."]
    assert await taxes.get_evidence_chain(names[1]) == []
    assert await rig.opened(rig.home, None).search("summary") == []


async def test_the_prompt_shows_the_surest_that_are_active_and_fit(rig):
    said = await rig.says("I like tea.")
    sure = await rig.believes("Tea helps in the morning.", said, confidence=0.9)
    await rig.believes("Coffee might do.", said, confidence=0.45)
    gone = await rig.believes("Juice is fine.", said, confidence=0.8)
    await rig.semantic.revalidate(gone, still_valid=False)
    second = await rig.believes("Water works as well.", said, kind="heuristic", confidence=0.6)
    shown = render_prompt_beliefs(rig.home, rig.clock.now())
    assert shown.splitlines() == [
        f"- Tea helps in the morning. (conclusion {sure})",
        f"- Water works as well. (heuristic {second})",
    ]
    assert (
        render_prompt_beliefs(rig.home, rig.clock.now(), 50).splitlines() == shown.splitlines()[:1]
    )
    rig.clock.advance(300 * DAY)
    assert render_prompt_beliefs(rig.home, rig.clock.now()) == ""


async def test_a_belief_of_ten_days_has_decayed_and_is_counted(rig):
    name = await rig.believes("Ada plans.", await rig.says("I plan a lot."))
    rig.clock.advance(10 * DAY)
    assert await rig.semantic.decay_all() == 1
    left = (await rig.pattern(name)).confidence_at(rig.clock.now())
    assert left == pytest.approx(0.7 * 0.99**10)


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
