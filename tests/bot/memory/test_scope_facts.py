"""Facts of a scope: decided once, under a key, on what is believed at that moment; and taken back."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.core.errors import MemoryRefused
from bot.memory.erasure.entry_eraser import EntryEraser
from bot.memory.erasure.text_matcher import TextMatcher
from bot.memory.records.fact import Evidence
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.entries import event
from bot.tape.service import TapeService
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import ManualClock

NOW = datetime(2026, 2, 10, 9, tzinfo=UTC)
KEYS = itertools.count()


def said(quote: str, entry: int = 1, *, sender: str = "7", origin: str = "person", day: int = 0):
    when = (NOW + timedelta(days=day)).isoformat()
    return Evidence("fake:1", entry, quote, "Ada", when, origin, sender)  # type: ignore[arg-type]


def scope_on(store, kind="person") -> ScopeMemory:
    return ScopeMemory(TapeService(store, "person:fake:7"), kind, ManualClock())


@pytest.fixture
def scope() -> ScopeMemory:
    return scope_on(InMemoryTapeStore())


async def apply(scope: ScopeMemory, author: str, *proposals: Proposal, **more):
    batch = ProposalBatch(f"key-{next(KEYS)}", author, proposals, **more)
    return (await scope.apply(batch)).decisions


async def learn(scope: ScopeMemory, text: str, *evidence: Evidence, author="consolidation", **more):
    [decided] = await apply(scope, author, Proposal("add", text, evidence=evidence, **more))
    return decided


def texts(scope: ScopeMemory) -> list[str]:
    return [one.text for one in scope.active()]


async def test_the_same_key_is_decided_once_and_answers_the_same(scope):
    batch = ProposalBatch("k", "person", (Proposal("add", "I like tea", evidence=(said("tea"),)),))
    first = await scope.apply(batch)
    again = await scope.apply(batch)
    assert again.repeated
    assert [one.fact for one in again.decisions] == [one.fact for one in first.decisions]
    assert await scope.tape.version() == first.entry


ROME, OSLO = "The user lives in Rome.", "The user lives in Oslo."


@pytest.mark.parametrize(
    ("first", "second", "verdict", "believed"),
    [
        ((ROME, said("Rome")), (ROME, said("Rome")), "known", [ROME]),
        # Words of nobody's own, and secrets, are not believed.
        ((ROME, said("Rome")), ("The user is rich.", said("rich", 9, origin="quoted")), "logged", [ROME]),
        ((ROME, said("Rome")), ("The user's password is hunter2!xyz", said("hunter2!xyz", 9)),
         "refused", [ROME]),
        ((ROME, said("Rome")), ("The user's phone is 5.", said("5", 2)), "approved",
         [ROME, "The user's phone is 5."]),
    ],
)  # fmt: skip
async def test_what_is_proposed_is_decided_on_what_is_believed(
    scope, first, second, verdict, believed
):
    await learn(scope, *first)
    assert (await learn(scope, *second)).verdict == verdict
    assert texts(scope) == believed


async def test_a_batch_that_would_end_much_is_refused_and_changes_nothing(scope):
    for number in range(6):
        await learn(scope, f"The box {number} is blue.", said("x", number + 1))
    ends = tuple(
        Proposal("retire", fact=n, evidence=(said("x", 20, day=9),), quoted=True)
        for n in range(1, 6)
    )
    with pytest.raises(MemoryRefused, match="5 of 6"):
        await apply(scope, "consolidation", *ends)
    assert len(scope.active()) == 6
    await apply(scope, "person", *(replace(one, quoted=False) for one in ends))
    assert len(scope.active()) == 1


OPERATIONS = st.sampled_from(["add", "supersede", "strengthen", "retire", "accept"])
EVIDENCE = st.builds(
    said,
    st.just("x"),
    st.integers(1, 9),
    sender=st.sampled_from("78"),
    origin=st.sampled_from(["person", "member", "quoted"]),
    day=st.integers(0, 9),
)
PROPOSALS = st.builds(
    Proposal,
    OPERATIONS,
    st.sampled_from([ROME, OSLO, "The cat is Tom.", ""]),
    st.integers(0, 6),
    evidence=st.lists(EVIDENCE, max_size=2).map(tuple),
    review_reason=st.sampled_from(["", "", "orders"]),
)


@given(st.lists(st.tuples(st.sampled_from(["person", "consolidation", "undo"]), PROPOSALS)))
@settings(max_examples=examples(60))
async def test_whatever_is_proposed_the_fold_of_the_tape_says_what_is_believed(steps):
    scope = scope_on(InMemoryTapeStore())
    for author, proposal in steps:
        if author != "undo":
            await apply(scope, author, proposal)
        elif (batch := await scope.undo_batch()) is not None:
            await scope.apply(batch)
    fresh = scope_on(scope.tape.store)
    await fresh.open()
    assert fresh.fold.facts == scope.fold.facts
    assert all(one.valid_to is None for one in scope.active())


async def test_undoing_brings_back_no_words_that_were_erased_meanwhile(scope):
    await learn(scope, ROME, said("I moved to the pear house"))
    await apply(scope, "person", Proposal("strengthen", fact=1, evidence=(said("yes", 2),)))
    undoing = await scope.undo_batch()
    eraser = EntryEraser(TextMatcher(("pear",)))
    entries = [eraser.clear(one) for one in await scope.tape.read_entries()]
    await scope.tape.store.erase(scope.name, [one for one in entries if one.data.get("ops")])
    await scope.reload()
    await scope.apply(undoing)
    assert "pear" not in str(await scope.tape.read_entries())
    assert texts(scope) == [ROME]
    assert scope.fold.facts[1].confidence < 0.95


async def test_undoing_ends_no_fact_whose_beginning_is_not_on_a_partial_copy(scope):
    await learn(scope, ROME, said("Rome"))
    await apply(scope, "person", Proposal("pin", fact=1))
    [*_, pinned] = await scope.tape.read_entries()
    copy = scope_on(InMemoryTapeStore())
    await copy.tape.ensure_bootstrap_anchor()
    while await copy.tape.version() < pinned.id - 1:
        await copy.tape.append(event("other", {}))
    await copy.tape.append(event(pinned.name, pinned.data))
    await copy.open()
    assert texts(copy) == [ROME]
    await copy.apply(await copy.undo_batch())
    assert texts(copy) == [ROME]
