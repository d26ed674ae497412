"""Who is who: whatever is written, identities stay parted into people, and nobody is joined unasked."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from bot.memory.session.scope.identities import (
    CODE_LIFETIME,
    LINK_EVENT,
    MAX_FAILED_CLAIMS,
    IdentityFold,
    link_entry,
)
from bot.tape.entries import TapeEntry, event
from bot.testing.manual_clock import START_TIME

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


def groups(people: IdentityFold) -> set[tuple[str, ...]]:
    return {people.members(one) for one in IDENTITIES}


who = st.sampled_from(IDENTITIES)
near = st.integers(0, 6)
steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["join", "offered", "claimed"]), who, who, near),
        st.tuples(st.sampled_from(["confirmed", "refused", "unlinked"]), who, who, near),
    ),
    max_size=40,
)


def _step(book: Book, op: str, one: str, other: str, back: int) -> None:
    """Write something, much of which does not fit what came before."""
    at = len(book.entries) - back
    if op == "join":
        book.join(one, other)
    elif op == "offered":
        book.write(op, one, name="A", chat="c", code=str(back))
    elif op == "claimed":
        book.write(op, one, of=other, offer=at, key=f"k{len(book.entries)}")
    else:
        book.write(op, one, claim=at, key=f"c{len(book.entries)}")


@given(steps)
def test_identities_are_parted_into_people_whatever_is_written(todo):
    book = Book()
    for step in todo:
        before = groups(book.people)
        _step(book, *step)
        people = book.people
        found = groups(people)
        assert sorted(one for group in found for one in group) == sorted(IDENTITIES)
        for group in found:
            assert all(people.primary_identity(one) == group[0] for one in group)
            assert len({one.partition(":")[0] for one in group}) == len(group)
        if found != before:
            # Only the end of three steps joins, and only who asks for it is parted.
            assert book.entries[-1].data["op"] in ("confirmed", "unlinked")
            move = people.moves[len(book.entries)]
            assert people.primary_identity(next(iter(move.identities))) == move.target
            assert move.source not in move.identities or move.claim is not None


@given(steps, st.integers(0, 40))
def test_a_fold_that_goes_on_is_the_fold_of_the_whole(todo, cut):
    book = Book()
    for step in todo:
        _step(book, *step)
    again = IdentityFold()
    for entry in book.entries[:cut]:
        again.apply(entry)
    for entry in book.entries[cut:]:
        again.apply(entry)
    assert again == book.people


@given(steps)
def test_each_claim_is_of_a_code_that_was_offered_and_each_code_is_claimed_once(todo):
    book = Book()
    claimed: dict[int, int] = {}
    for step in todo:
        _step(book, *step)
        for of, claim in book.people.claims.items():
            entry = book.entries[claim.entry - 1]
            offer = entry.data["offer"]
            assert book.entries[offer - 1].data == book.entries[offer - 1].data | {
                "op": "offered",
                "who": of,
            }
            assert claimed.setdefault(offer, claim.entry) == claim.entry
            newer = [
                one
                for one in book.entries[offer:]
                if (one.data["op"], one.data["who"]) == ("offered", of)
            ]
            assert newer == []


def test_a_third_identity_joins_two_and_all_have_the_scope_that_these_had():
    book = Book()
    book.join("telegram:1", "discord:1")
    book.join("web:1", "discord:1")
    assert book.people.members("web:1") == ("telegram:1", "discord:1", "web:1")
    move = book.people.moves[max(book.people.moves)]
    assert (move.identities, move.source, move.target) == ({"web:1"}, "web:1", "telegram:1")


def test_where_the_first_leaves_the_others_go_on_in_the_scope_of_the_next():
    book = Book()
    book.join("telegram:1", "discord:1")
    book.join("telegram:1", "web:1")
    left = book.write("unlinked", "telegram:1", key="k")
    assert groups(book.people) >= {("discord:1", "web:1"), ("telegram:1",)}
    move = book.people.moves[left]
    assert move.identities == {"discord:1", "web:1"}
    assert (move.source, move.target) == ("telegram:1", "discord:1")


def test_a_newer_code_voids_the_older_and_what_was_claimed_by_it():
    book = Book()
    first = book.write("offered", "telegram:1", name="A", chat="c", code="x")
    claim = book.write("claimed", "discord:1", of="telegram:1", offer=first, key="k")
    book.write("offered", "telegram:1", name="A", chat="c", code="y")
    book.write("claimed", "web:1", of="telegram:1", offer=first, key="l")
    book.write("confirmed", "telegram:1", claim=claim, key="c")
    assert book.people.members("telegram:1") == ("telegram:1",)


def test_two_of_one_channel_are_not_joined():
    book = Book()
    book.join("telegram:1", "discord:1")
    book.join("telegram:2", "discord:1")
    assert book.people.members("discord:1") == ("telegram:1", "discord:1")
    assert book.people.link_refusal("telegram:2", "discord:1") == "channel"


def test_a_clock_that_was_put_back_does_not_prolong_a_code():
    book = Book()
    book.write("offered", "telegram:1", name="A", chat="c", code="x")
    offer = book.people.offers["telegram:1"]
    assert offer.is_valid(START_TIME)
    assert not offer.is_valid(START_TIME + CODE_LIFETIME)
    assert not offer.is_valid(START_TIME - timedelta(days=1))


def test_wrong_codes_of_one_are_counted_against_nobody_else():
    book = Book()
    for number in range(MAX_FAILED_CLAIMS):
        assert book.people.may_claim("discord:1", START_TIME)
        book.write("missed", "discord:1", key=f"m{number}")
    assert not book.people.may_claim("discord:1", START_TIME)
    assert book.people.may_claim("telegram:1", START_TIME)
    assert book.people.may_claim("discord:1", START_TIME + timedelta(hours=1))


def test_entries_that_make_no_sense_change_nothing():
    people = IdentityFold()
    for number, data in enumerate(
        ({}, {"op": "offered"}, {"op": "offered", "who": 3}, {"op": "claimed", "who": "web:1"},
         {"op": "missed", "who": "web:1", "at": "never"}, {"op": "settled", "who": "x", "move": "y"}),
        start=1,
    ):  # fmt: skip
        people.apply(TapeEntry(number, "event", event(LINK_EVENT, data).payload))
    assert people == IdentityFold(version=6)
