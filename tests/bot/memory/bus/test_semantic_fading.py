"""What is believed fades with time and by doubt, until somebody says that it holds or that it does not."""

from __future__ import annotations

import pytest
from semantic_rig import DAY

from bot.core.errors import MemoryRefused
from bot.memory.gate.belief_updates import current_ranks
from bot.memory.session.state.fact_markdown import select_facts


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


async def test_a_belief_of_ten_days_has_decayed_and_is_counted(rig):
    name = await rig.believes("Ada plans.", await rig.says("I plan a lot."))
    rig.clock.advance(10 * DAY)
    assert await rig.semantic.decay_all() == 1
    left = (await rig.pattern(name)).confidence_at(rig.clock.now())
    assert left == pytest.approx(0.7 * 0.99**10)
