"""A newer value of a slot ends the older one, whatever words it uses; what may have several values adds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from test_scope_facts import learn, said, scope_on

from bot.core.errors import MemoryRefused
from bot.memory.records.fact_slot import normalize_slot, same_slot
from bot.memory.records.proposals import Judgement, Proposal, ProposalBatch
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.stores.in_memory import InMemoryTapeStore


@pytest.fixture
def scope() -> ScopeMemory:
    return scope_on(InMemoryTapeStore())


def texts(scope: ScopeMemory) -> list[str]:
    return [one.text for one in scope.active()]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("aspirin: dose", "Aspirin: dose", True),
        ("aspirin: dose", "the user's aspirin: current dose", True),
        ("user: home", "home", True),
        ("dose: aspirin", "aspirin: dose", True),
        ("aspirin: dose", "ibuprofen: dose", False),
        ("Mia: age", "Tom: age", False),
        ("user: employer", "user: home", False),
        ("", "", False),
        ("user", "user", False),
        # Of these there may be several at a time.
        ("user: allergies", "user: allergies", False),
        ("user: languages", "user: languages", False),
        ("son: age", "son: age", False),
        ("user: food allergies", "user: food allergy", False),
        ("Nutzer: Allergien", "Nutzer: Allergien", False),
        ("cat: name", "cat: name", False),
        ("daughter Mia: age", "daughter Mia: age", True),
        ("child", "child", False),
    ],
)
def test_slots_are_compared_by_what_they_name(one, other, same):
    assert same_slot(one, other) is same


@pytest.mark.parametrize("odd", ["x" * 61, "a [7] b", "a (since 2020-01-01)", "<fact>", "a\x00b"])
def test_what_is_no_plain_name_is_no_slot(odd):
    assert normalize_slot(odd) == ""


async def test_a_newer_value_ends_the_older_whatever_words_it_uses(scope):
    old = await learn(
        scope, "The user takes 50 mg of aspirin daily.", said("I take 50 mg of aspirin"),
        slot="aspirin: dose",
    )  # fmt: skip
    new = await learn(
        scope, "Their doctor raised it to 75 mg.", said("My doctor raised it to 75", 9, day=3),
        slot="Aspirin: current dose",
    )  # fmt: skip
    assert texts(scope) == ["Their doctor raised it to 75 mg."]
    assert new.fact.supersedes == old.fact.id


async def test_what_may_have_several_values_adds(scope):
    for at, what in enumerate(("nuts", "cats"), start=1):
        text = f"The user is allergic to {what}."
        await learn(scope, text, said(text, at, day=at), slot="user: allergies")
    assert len(texts(scope)) == 2


async def test_no_one_fact_ends_much_of_memory_by_a_slot_that_says_little(scope):
    for at, what in enumerate(("tea", "jazz", "chess", "rain", "Oslo"), start=1):
        await learn(scope, f"The user likes {what}.", said(f"I like {what}", at))
    for one in scope.active():
        scope.fold.facts[one.id] = replace(one, slot="user: thing")
    with pytest.raises(MemoryRefused):
        await learn(scope, "A new bike.", said("a new bike", 9, day=3), slot="user: thing")
    assert len(texts(scope)) == 5


async def test_an_older_value_that_comes_late_does_not_end_the_newer(scope):
    await learn(scope, "Mia is eight.", said("Mia is eight", 9, day=3), slot="Mia: age")
    late = await learn(scope, "Mia was seven.", said("Mia is seven"), slot="Mia: age")
    assert late.verdict == "refused"
    assert texts(scope) == ["Mia is eight."]


async def test_in_a_group_nobody_ends_what_another_said_of_themselves(scope):
    for sender in ("7", "8"):
        quote = said(f"my seat is {sender}", int(sender), sender=sender, origin="member")
        await learn(scope, f"Member {sender}: the seat is {sender}.", quote, slot="user: seat")
    assert len(texts(scope)) == 2


async def test_one_person_ends_their_own_words_on_another_platform(scope):
    await learn(scope, "The user lives in Rome.", said("I live in Rome", sender="telegram-7"))
    await learn(scope, "The user lives in Oslo.", said("I live in Oslo", 9, sender="web-1", day=3))
    assert texts(scope) == ["The user lives in Oslo."]


async def test_a_refuted_value_gives_its_place_back(scope):
    await learn(scope, "Rex is alive.", said("Rex is fine"), slot="Rex: health")
    wrong = await learn(
        scope, "Rex has a fever.", said("hot, Rex?", 9, day=3), slot="Rex: health", unverified=True
    )
    assert texts(scope) == ["Rex has a fever."]
    judged = Proposal("refute", fact=wrong.fact.id, judgement=Judgement("not_stated"))
    await scope.apply(ProposalBatch("j", "judge", (judged,)))
    assert texts(scope) == ["Rex is alive."]


async def test_of_two_values_in_one_batch_a_refuted_one_gives_its_place_back_to_the_last(scope):
    await learn(scope, "Aspirin: 50 mg.", said("50 mg"), slot="aspirin: dose")
    both = tuple(
        Proposal(
            "add", f"Aspirin: {mg} mg.", slot="aspirin: dose", unverified=True,
            evidence=(said(f"{mg} mg", mg, day=mg),),
        )
        for mg in (75, 100)
    )  # fmt: skip
    decided = (await scope.apply(ProposalBatch("two", "consolidation", both))).decisions
    assert texts(scope) == ["Aspirin: 100 mg."]
    last = next(one.fact for one in decided if one.fact and "100" in one.fact.text)
    judged = Proposal("refute", fact=last.id, judgement=Judgement("overstated"))
    await scope.apply(ProposalBatch("j", "judge", (judged,)))
    assert texts(scope) == ["Aspirin: 75 mg."]


async def test_in_a_group_anothers_word_for_a_fact_does_not_keep_its_owner_from_changing_it(scope):
    first = said("the match is in Bonn", 1, sender="7", origin="member")
    old = await learn(scope, "Member 7: the match is in Bonn.", first, slot="match: place")
    again = said("yes, in Bonn", 2, sender="8", origin="member", day=1)
    await scope.apply(
        ProposalBatch(
            "s", "consolidation", (Proposal("strengthen", fact=old.fact.id, evidence=(again,)),)
        )
    )
    newer = said("no, in Kiel", 3, sender="7", origin="member", day=2)
    await learn(scope, "Member 7: it takes place in Kiel.", newer, slot="match: place")
    assert texts(scope) == ["Member 7: it takes place in Kiel."]


async def test_what_takes_a_named_facts_place_keeps_its_slot(scope):
    old = await learn(scope, "The rent is 800.", said("The rent is 800"), slot="flat: rent")
    change = Proposal(
        "supersede", "The rent is 900 now.", old.fact.id, evidence=(said("rent is 900", 9, day=1),)
    )
    await scope.apply(ProposalBatch("k", "assistant", (change,)))
    [fact] = scope.active()
    assert fact.slot == "flat: rent"


_SLOTS = ("aspirin: dose", "user: home", "Rex: food", "car: colour")
_WORDS = ("It is {} at present.", "Since then one says {}.", "Made {} by somebody.")


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(_SLOTS), st.integers(10, 99), st.sampled_from(_WORDS), st.booleans()
        ),
        min_size=1,
        max_size=12,
    )
)
async def test_of_each_slot_the_newest_value_alone_is_believed(changes):
    store = InMemoryTapeStore()
    scope, newest = scope_on(store), {}
    for day, (slot, value, words, anew) in enumerate(changes):
        text = f"{slot.partition(':')[0].title()}, {day}. {words.format(value)}"
        await learn(scope, text, said(text, day + 1, day=day), slot=slot)
        newest[slot] = text
        if anew:
            scope = scope_on(store)
            await scope.open()
    assert sorted(texts(scope)) == sorted(newest.values())
