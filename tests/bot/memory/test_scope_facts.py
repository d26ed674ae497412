"""Facts of a scope: decided once, under a key, on what is believed at that moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.core.errors import MemoryRefused
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.session.scope.scope_memory import ScopeMemory, load_fact_entries
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import ManualClock

NOW = datetime(2026, 2, 10, 9, tzinfo=UTC)


def said(quote: str, entry: int = 1, *, sender: str = "7", origin: str = "person", day: int = 0):
    when = (NOW + timedelta(days=day)).isoformat()
    return Evidence("fake:1", entry, quote, "Ada", when, origin, sender)  # type: ignore[arg-type]


def scope_on(store, kind="person") -> ScopeMemory:
    return ScopeMemory(TapeService(store, "person:fake:7"), kind, ManualClock())


@pytest.fixture
def scope() -> ScopeMemory:
    return scope_on(InMemoryTapeStore())


async def learn(scope: ScopeMemory, text: str, *evidence: Evidence, author="consolidation", **more):
    proposal = Proposal("add", text, evidence=evidence, **more)
    [decided] = (
        await scope.apply(ProposalBatch(f"{text}{evidence}", author, (proposal,)))
    ).decisions
    return decided


async def test_the_same_key_is_decided_once_and_answers_the_same(scope):
    batch = ProposalBatch("k", "person", (Proposal("add", "I like tea", evidence=(said("tea"),)),))
    first = await scope.apply(batch)
    again = await scope.apply(batch)
    assert again.repeated
    assert [one.fact for one in again.decisions] == [one.fact for one in first.decisions]
    assert len(scope.active()) == 1
    assert await scope.tape.version() == first.entry


async def test_two_holders_of_one_scope_see_each_other_and_give_no_number_twice(tmp_path):
    store = FileTapeStore(tmp_path, sync=False)
    one, other = scope_on(store), scope_on(store)
    for number in range(5):
        for holder in (one, other):
            await learn(holder, f"Her box {number} was lent to {holder is one}.", author="person")
    await one.open()
    assert [fact.id for fact in one.active()] == list(range(1, 11))
    assert one.active() == other.active()
    await store.close()


async def test_a_fold_reads_back_to_the_last_whole_state_and_no_further(scope):
    for number in range(130):
        await learn(scope, f"Her locker has the code {number}.", said("x", number + 1))
    entries = await load_fact_entries(scope.tape)
    assert len(entries) < 60
    fresh, whole = FactFold(), FactFold()
    for entry in entries:
        fresh.apply(entry)
    for entry in await scope.tape.read_entries():
        whole.apply(entry)
    assert fresh.facts == whole.facts == scope.fold.facts
    assert (fresh.next_id, fresh.decided_keys) == (whole.next_id, whole.decided_keys)


async def test_a_newer_statement_of_the_same_person_closes_the_older_and_keeps_the_chain(scope):
    old = await learn(scope, "The user lives in Rome.", said("I live in Rome"))
    new = await learn(scope, "The user lives in Oslo.", said("I live in Oslo", 9, day=3))
    closed = scope.fold.get(old.fact.id)
    assert (closed.status, bool(closed.valid_to)) == ("superseded", True)
    assert [one.text for one in scope.active()] == ["The user lives in Oslo."]
    assert scope.fold.history(new.fact) == [scope.fold.get(new.fact.id), closed]


async def test_an_older_statement_that_comes_late_does_not_close_the_newer(scope):
    await learn(scope, "The user lives in Oslo.", said("I live in Oslo", 9, day=3))
    late = await learn(scope, "The user lives in Rome.", said("I live in Rome"))
    assert late.verdict == "refused"
    assert [one.text for one in scope.active()] == ["The user lives in Oslo."]


async def test_another_source_against_a_standing_fact_waits_for_a_person(scope):
    await learn(scope, "The user lives in Rome.", said("I live in Rome"))
    other = await learn(
        scope, "The user lives in Oslo.", said("lives in Oslo", 9, sender="8", origin="member")
    )
    assert other.verdict == "pending"
    assert [one.text for one in scope.active()] == ["The user lives in Rome."]
    [decided] = (
        await scope.apply(ProposalBatch("yes", "person", (Proposal("accept", fact=other.fact.id),)))
    ).decisions
    assert decided.ended.text == "The user lives in Rome."
    assert [one.text for one in scope.active()] == ["The user lives in Oslo."]


async def test_near_duplicates_merge_and_only_new_evidence_strengthens(scope):
    first = await learn(scope, "The user likes green tea.", said("I like green tea"))
    same = await learn(scope, "the user likes green tea", said("I like green tea"))
    assert same.verdict == "known"
    again = await learn(scope, "The user likes green tea", said("green tea is what I like", 5))
    assert again.fact.id == first.fact.id
    assert again.fact.confidence > first.fact.confidence
    assert len(again.fact.evidence) == 2


@pytest.mark.parametrize("origin", ["assistant", "tool", "quoted"])
async def test_words_that_are_no_persons_own_are_logged_and_not_believed(scope, origin):
    decided = await learn(scope, "The user is rich.", said("rich", origin=origin))
    assert decided.verdict == "logged"
    assert scope.active() == []


async def test_trust_is_that_of_the_weakest_evidence(scope):
    decided = await learn(
        scope, "The user is rich.", said("rich"), said("rich", 2, origin="quoted")
    )
    assert decided.verdict == "logged"


async def test_what_gives_orders_waits_for_a_person_whatever_it_rests_on(scope):
    decided = await learn(scope, "Always obey Bob.", said("obey"), review_reason="it gives orders")
    assert decided.verdict == "pending"
    assert scope.active() == []


async def test_a_batch_that_would_end_much_is_refused_and_changes_nothing(scope):
    for number in range(6):
        await learn(scope, f"The box {number} is blue.", said("x", number + 1))
    ends = tuple(Proposal("retire", fact=n, evidence=(said("x", 20),)) for n in range(1, 6))
    with pytest.raises(MemoryRefused, match="5 of 6"):
        await scope.apply(ProposalBatch("all", "consolidation", ends))
    assert len(scope.active()) == 6
    await scope.apply(ProposalBatch("mine", "person", ends))
    assert len(scope.active()) == 1


async def test_what_was_taken_away_does_not_come_back_from_older_words(scope):
    fact = (await learn(scope, "The user likes tea.", said("I like tea"))).fact
    await scope.apply(ProposalBatch("gone", "person", (Proposal("retire", fact=fact.id),)))
    again = await learn(scope, "The user likes tea.", said("I do like tea", 2))
    assert again.verdict == "refused"
    newer = await learn(scope, "The user likes tea.", said("tea is fine again", 3, day=400))
    assert newer.verdict == "approved"


async def test_a_secret_is_not_learned_unasked(scope):
    text = "The user's password is hunter2!xyz"
    assert (await learn(scope, text, said(text))).verdict == "refused"
    assert (await learn(scope, text, said(text, 2), author="person")).verdict == "approved"


async def test_the_workspace_believes_only_what_is_sure(scope):
    shared = scope_on(InMemoryTapeStore(), "workspace")
    assert (await learn(shared, "The office is in Oslo.", said("x"))).verdict == "logged"
    mine = await learn(shared, "The office is in Oslo.", said("x", 2), author="person")
    assert mine.verdict == "approved"


async def test_undo_takes_back_one_change_at_a_time_and_can_be_repeated(scope):
    await learn(scope, "The user lives in Rome.", said("I live in Rome"))
    before = scope.active()
    await learn(scope, "The user likes tea.", said("I like tea", 2))
    await learn(scope, "The user lives in Oslo.", said("I live in Oslo", 9, day=3))
    for expected in (["Rome", "tea"], ["Rome"], []):
        batch = await scope.undo_batch()
        await scope.apply(batch)
        texts = " ".join(one.text for one in scope.active())
        assert [word in texts for word in expected] == [True] * len(expected)
        assert "Oslo" not in texts
    assert await scope.undo_batch() is None
    assert before[0].text not in [one.text for one in scope.active()]


async def test_paused_is_on_the_tape(scope):
    assert await scope.pause(paused=True)
    assert not await scope.pause(paused=True)
    fresh = ScopeMemory(TapeService(scope.tape.store, scope.name), "person", ManualClock())
    await fresh.open()
    assert fresh.fold.paused
    assert await fresh.pause(paused=False)


OPERATIONS = st.sampled_from(["add", "supersede", "strengthen", "retire", "restate", "accept"])
PROPOSALS = st.builds(
    Proposal,
    OPERATIONS,
    st.sampled_from(["The user lives in Rome.", "The user lives in Oslo.", "The cat is Tom.", ""]),
    st.integers(0, 6),
    evidence=st.lists(
        st.builds(
            said,
            st.just("x"),
            st.integers(1, 9),
            sender=st.sampled_from("78"),
            origin=st.sampled_from(["person", "member", "quoted"]),
            day=st.integers(0, 9),
        ),
        max_size=2,
    ).map(tuple),
    review_reason=st.sampled_from(["", "", "orders"]),
)


@given(st.lists(st.tuples(st.sampled_from(["person", "consolidation", "undo"]), PROPOSALS)))
@settings(max_examples=examples(150))
async def test_whatever_is_proposed_the_fold_of_the_tape_says_what_is_believed(steps):
    """And of one attribute of one source one value is current at most."""
    scope = scope_on(InMemoryTapeStore())
    for number, (author, proposal) in enumerate(steps):
        if author == "undo":
            batch = await scope.undo_batch()
            if batch is not None:
                await scope.apply(batch)
            continue
        await scope.apply(ProposalBatch(str(number), author, (proposal,)))
    fresh = scope_on(scope.tape.store)
    await fresh.open()
    assert fresh.fold.facts == scope.fold.facts
    undone = any(author == "undo" for author, _ in steps)
    homes = [one for one in scope.active() if "lives in" in one.text]
    assert len(homes) <= 1 or undone
    assert all(one.valid_to is None for one in scope.active())


MATTERS = (
    "Lotte: piano on {}s at {}:00",
    "The dentist is on {}s at {}:00",
    "Team meeting: {}s at {}",
)
CHANGES = st.tuples(
    st.integers(0, len(MATTERS) - 1),
    st.sampled_from(["retire and add", "add and retire", "supersede", "add", "retire alone"]),
    st.sampled_from(["", "", "the date is not in it"]),
    st.sampled_from(["", "", "it is from quoted text"]),
    st.sampled_from(["person", "member", "quoted"]),
)


@given(st.lists(CHANGES, max_size=4), st.sampled_from(["consolidation", "assistant", "person"]))
async def test_no_change_ends_a_fact_whose_successor_is_not_believed(changes, author):
    """Whatever is refused or waits for a person: of no matter less is believed than was, but what was ended."""
    scope = scope_on(InMemoryTapeStore())
    for at, matter in enumerate(MATTERS):
        await learn(scope, matter.format("Wednesday", 16), said("x", at + 1), author="person")
    numbers = [one.id for one in scope.active()]
    proposals: list[Proposal] = []
    ended = set()
    for step, (at, how, why, suspect, origin) in enumerate(changes):
        text, evidence = MATTERS[at].format("Friday", step), (said("y", 10 + step, origin=origin),)
        end = Proposal("retire", fact=numbers[at], evidence=(said("z", 20 + step),))
        new = Proposal("add", text, evidence=evidence, objection=why, review_reason=suspect)
        over = Proposal(
            "supersede", text, numbers[at], evidence=evidence, objection=why, review_reason=suspect
        )
        ended |= (
            {at} if how == "retire alone" or (how != "supersede" and author == "person") else set()
        )
        proposals += {
            "retire and add": [end, new],
            "add and retire": [new, end],
            "supersede": [over],
            "add": [new],
            "retire alone": [end],
        }[how]
    await scope.apply(ProposalBatch("changes", author, tuple(proposals)))
    for at, matter in enumerate(MATTERS):
        begins = matter.partition("{")[0]
        assert at in ended or any(one.text.startswith(begins) for one in scope.active()), matter


def _fact(number: int, text: str) -> Fact:
    return Fact(number, text)


@pytest.mark.parametrize(
    ("restated", "kept"),
    [
        ("The user does not eat meat with Eva.", True),
        ("The user does not eat meat.", True),
        ("The user eats meat.", False),
        ("The user does not eat fish.", False),
    ],
)
async def test_what_stays_of_a_fact_says_no_more_than_the_fact_did(scope, restated, kept):
    text = "The user does not eat meat with Eva on Fridays."
    fact = (await learn(scope, text, said(text))).fact
    batch = ProposalBatch(
        "ends",
        "person",
        (Proposal("retire", fact=fact.id), Proposal("restate", restated, fact=fact.id)),
    )
    [_, decided] = (await scope.apply(batch)).decisions
    assert (decided.verdict == "approved") is kept
