"""Whatever two linked channels say, replace and end: parted, each has what is its own, and nothing of the other."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.proposals import Judgement, Proposal, ProposalBatch
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.scope.identities import LinkClaim, LinkParty
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import ManualClock

SIDES = ("telegram:1", "discord:2")


class Person:
    """One person on two channels, and what a model of their memory says of each sentence.

    Attributes:
        said: Who said each sentence.
        enders: Who ended each sentence, or what ended it.
    """

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.scopes = ScopeRegistry(InMemoryTapeStore(clock=self.clock), self.clock)
        self.said: dict[str, str] = {}
        self.enders: dict[str, set[str]] = {}
        self._after: dict[str, set[str]] = {}
        self.numbers = itertools.count(1)

    async def scope(self, side: str) -> ScopeMemory:
        channel, _, sender = side.partition(":")
        scope = self.scopes.person(self.scopes.person_tape(channel, sender))
        await scope.open()
        return scope

    async def apply(self, side: str, author: str, proposal: Proposal) -> Fact | None:
        scope = await self.scope(side)
        key = (
            f"command:{side}:{next(self.numbers)}"
            if author != "judge"
            else f"judged:{next(self.numbers)}"
        )
        self.clock.advance(60)
        outcome = await scope.apply(ProposalBatch(key, author, (proposal,)))  # type: ignore[arg-type]
        return outcome.decisions[0].fact

    async def say(self, side: str, over: Fact | None, *, judged: bool, ends: bool) -> None:
        """Say a sentence, perhaps instead of another one, or that another one is over."""
        number = next(self.numbers)
        sentence, when = f"s{number}", self.clock.now() + timedelta(seconds=30)
        cited = (Evidence(side, number, sentence, "Ada", when.isoformat(), sender=side[-1]),)
        instead = () if over is None else (over.id,)
        if not ends:
            self.said[sentence] = side
        for other, after in self._after.items():
            if over is not None and over.gloss in {other, *after}:
                after.add(sentence)
                self.enders.setdefault(other, set()).add(side)
        self._after[sentence] = set()
        op = "add" if over is None else "retire" if ends else "supersede"
        if not judged and not ends:
            made = Proposal(op, sentence, instead[0] if instead else None, evidence=cited)
            await self.apply(side, "person", made)
            return
        made = Proposal(op, sentence, instead[0] if instead else None, evidence=cited, quoted=True)
        fact = await self.apply(side, "consolidation", made)
        assert fact is not None
        ruled = Judgement("supported", ends=instead)
        await self.apply(side, "judge", Proposal("judge", fact=fact.id, judgement=ruled))

    async def link(self, key: str) -> None:
        one, other = (LinkParty(side, "", side) for side in SIDES)
        linker = self.scopes.identity_linker
        await linker.offer(one, key)
        claim = await linker.claim(other, key, key)
        assert isinstance(claim, LinkClaim)
        move = await linker.confirm(one.identity, claim.entry, key)
        assert move is not None
        await self.scopes.apply_move(move)

    async def part(self, side: str, key: str) -> None:
        move = await self.scopes.identity_linker.unlink(side, key)
        assert move is not None
        await self.scopes.apply_move(move)
        # What holds again in the joint scope is no longer ended by what ended that.
        for sentence in self.own(SIDES[0]):
            self._after[sentence] = set()

    def own(self, side: str) -> set[str]:
        return {
            sentence
            for sentence, by in self.said.items()
            if by == side and side not in self.enders.get(sentence, ())
        }


STEPS = st.tuples(
    st.sampled_from(SIDES), st.none() | st.integers(0, 9), st.booleans(), st.booleans()
)


@pytest.mark.slow
@settings(max_examples=examples(120), deadline=None)
@given(
    st.lists(STEPS, max_size=3),
    st.lists(
        st.tuples(st.lists(STEPS, max_size=8), st.sampled_from(SIDES)), min_size=1, max_size=2
    ),
)
async def test_parted_each_side_has_its_own_words_but_those_that_it_ended(before, links):
    person = Person()

    async def play(steps):
        for side, over, judged, ends in steps:
            held = [fact for fact in (await person.scope(side)).active() if not fact.quoted]
            target = held[over % len(held)] if over is not None and held else None
            await person.say(side, target, judged=judged, ends=ends and target is not None)

    await play(before)
    for number, (steps, leaver) in enumerate(links):
        await person.link(f"l{number}")
        joint = {fact.gloss for fact in (await person.scope(SIDES[0])).active()}
        assert person.said.keys() - person.enders.keys() <= joint
        await play(steps)
        for side in SIDES:
            assert (await person.scope(side)).name == f"person:{SIDES[0]}"
        await person.part(leaver, f"p{number}")
        for side in SIDES:
            scope = await person.scope(side)
            assert scope.name == f"person:{side}"
            assert {fact.gloss for fact in scope.active()} == person.own(side)
            cited = {one.tape for fact in scope.active() for one in fact.evidence}
            assert cited <= {side}
