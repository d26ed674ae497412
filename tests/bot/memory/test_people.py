"""Who is who: whatever is written, identities stay parted into people, and nobody is joined unasked."""

from __future__ import annotations

from datetime import timedelta

import anyio
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.scope.identities import (
    CODE_LIFETIME,
    LINK_EVENT,
    IdentityFold,
    LinkClaim,
    LinkParty,
    link_entry,
)
from bot.tape.entries import TapeEntry, event
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import START_TIME, ManualClock

IDENTITIES = ["telegram:1", "telegram:2", "discord:1", "discord:3", "web:1", "console:local"]


class Book:
    """A tape of who is who, written without asking whether a step fits."""

    def __init__(self) -> None:
        self.entries: list[TapeEntry] = []
        self.people = IdentityFold()

    def write(self, op: str, who: str, **more: object) -> int:
        made = link_entry(op, who, START_TIME, **more)
        entry = TapeEntry(len(self.entries) + 1, made.kind, made.payload)
        self.entries.append(entry)
        self.people.apply(entry)
        return entry.id

    def join(self, offerer: str, claimer: str) -> int:
        offer = self.write("offered", offerer, name="A", chat="c", code="x")
        claim = self.write("claimed", claimer, of=offerer, offer=offer, key=f"k{offer}")
        return self.write("confirmed", offerer, claim=claim, key=f"c{offer}")

    def step(self, op: str, one: str, other: str, back: int) -> None:
        """Write something, much of which does not fit what came before."""
        at = len(self.entries) - back
        if op == "join":
            self.join(one, other)
        elif op == "offered":
            self.write(op, one, name="A", chat="c", code=str(back))
        elif op == "claimed":
            self.write(op, one, of=other, offer=at, key=f"k{len(self.entries)}")
        else:
            self.write(op, one, claim=at, key=f"c{len(self.entries)}")


def groups(people: IdentityFold) -> set[tuple[str, ...]]:
    return {people.members(one) for one in IDENTITIES}


who = st.sampled_from(IDENTITIES)
ops = st.sampled_from(["join", "join", "offered", "claimed", "confirmed", "refused", "unlinked"])
steps = st.lists(st.tuples(ops, who, who, st.integers(0, 6)), max_size=40)


@given(steps)
def test_identities_are_parted_into_people_whatever_is_written(todo):
    book = Book()
    for step in todo:
        before = groups(book.people)
        book.step(*step)
        people, found = book.people, groups(book.people)
        assert sorted(one for group in found for one in group) == sorted(IDENTITIES)
        for group in found:
            assert all(people.primary_identity(one) == group[0] for one in group)
            assert len({one.partition(":")[0] for one in group}) == len(group)
        if found != before:
            # Only the end of three steps joins, and only who asks for it is parted.
            assert book.entries[-1].data["op"] in ("confirmed", "unlinked")
            move = people.moves[len(book.entries)]
            assert people.primary_identity(next(iter(move.identities))) == move.target
        for of, claim in people.claims.items():
            # Each claim is of the newest code that was offered.
            offer = book.entries[book.entries[claim.entry - 1].data["offer"] - 1]
            assert (offer.data["op"], offer.data["who"]) == ("offered", of)
            told = [(one.data["op"], one.data["who"]) for one in book.entries[offer.id :]]
            assert ("offered", of) not in told


def test_a_clock_that_was_put_back_does_not_prolong_a_code():
    book = Book()
    book.write("offered", "telegram:1", name="A", chat="c", code="x")
    offer = book.people.offers["telegram:1"]
    assert offer.is_valid(START_TIME)
    assert not offer.is_valid(START_TIME + CODE_LIFETIME)
    assert not offer.is_valid(START_TIME - timedelta(days=1))


def test_entries_that_make_no_sense_change_nothing():
    people = IdentityFold()
    for number, data in enumerate(
        ({}, {"op": "offered"}, {"op": "offered", "who": 3}, {"op": "claimed", "who": "web:1"},
         {"op": "missed", "who": "web:1", "at": "never"}, {"op": "settled", "who": "x", "move": "y"},
         {"op": "settled", "who": "x", "move": []}, {"op": "confirmed", "who": "x", "claim": {}}),
        start=1,
    ):  # fmt: skip
        people.apply(TapeEntry(number, "event", event(LINK_EVENT, data).payload))
    assert people == IdentityFold()


async def test_of_two_processes_that_claim_one_code_at_once_one_does():
    clock = ManualClock()
    store = InMemoryTapeStore(clock=clock)
    one, other = (ScopeRegistry(store, clock) for _ in range(2))
    await one.identity_linker.offer(LinkParty("telegram:42", "Ada", "telegram:42"), "x")
    results: list[object] = []

    async def claim(scopes: ScopeRegistry, who: str) -> None:
        claimed = await scopes.identity_linker.claim(LinkParty(who, "", who), "x", f"key of {who}")
        results.append(claimed)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(claim, one, "discord:7")
        tasks.start_soon(claim, other, "web:7")
    assert sorted(isinstance(one, LinkClaim) for one in results) == [False, True]
    assert "wrong" in results
