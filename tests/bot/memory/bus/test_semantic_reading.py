"""What is believed is found, shown with the evidence that it rests on, and told to the model."""

from __future__ import annotations

import pytest
from semantic_rig import DAY, drawn

from bot.core.errors import MemoryRefused
from bot.memory.records.event_names import (
    HISTORY_EVENT,
)
from bot.memory.records.fact_fold import bus_entry
from bot.memory.session.bus.semantic_synthesis import render_prompt_beliefs
from bot.tape.entries import event


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
