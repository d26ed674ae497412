"""Shared values and beliefs follow a joining, and go back with a parting."""

from __future__ import annotations

from typing import Any

import pytest

from bot.memory.records.compartment_records import SynthesizedPattern
from bot.memory.records.fact import Evidence
from bot.memory.records.fact_fold import bus_entry
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.session.bus.semantic_synthesis import render_prompt_beliefs
from bot.memory.session.bus.shared_reference import SharedReferenceStore, current_references
from bot.memory.session.linking.identity_linker import IdentityLinker
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.scope.identities import LinkClaim, LinkParty, ScopeMove
from bot.tape.entries import TapeEntry
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import ManualClock

ADA, ELSE, THIRD = (
    LinkParty("telegram:42", "Ada", "telegram:42"),
    LinkParty("discord:7", "Ada L.", "discord:99"),
    LinkParty("web:5", "", "web:5"),
)


class Killed(BaseException):
    """The end of the program."""


class Mortal(InMemoryTapeStore):
    """A store of a program that dies before a write."""

    left: int | None = None

    async def append_many(self, tape: str, entries: Any, *, expect: int | None = None) -> Any:
        if self.left == 0:
            raise Killed
        self.left = None if self.left is None else self.left - 1
        return await super().append_many(tape, entries, expect=expect)


class Home:
    """One program."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = Mortal(clock=self.clock)
        self.scopes = ScopeRegistry(self.store, self.clock)
        self.number = 0

    @property
    def linking(self) -> IdentityLinker:
        return self.scopes.identity_linker

    def _scope(self, who: LinkParty):
        channel, _, sender = who.identity.partition(":")
        return self.scopes.person(self.scopes.person_tape(channel, sender))

    def _next(self, who: LinkParty) -> tuple[str, str]:
        self.clock.advance(60)
        self.number += 1
        return f"{who.session}#{self.number}", f"command:{who.session}:{self.number}"

    async def set(self, who: LinkParty, key: str, value: str) -> None:
        source, cause = self._next(who)
        await SharedReferenceStore(self._scope(who), self.clock).set(
            key, value, source, cause=cause
        )

    async def remove(self, who: LinkParty, key: str) -> None:
        assert await SharedReferenceStore(self._scope(who), self.clock).remove(
            key, self._next(who)[1]
        )

    async def believe(self, who: LinkParty, text: str, *evidence: str, **more: Any) -> str:
        """Let something be believed; by default it rests on a message of theirs."""
        source, cause = self._next(who)
        scope = self._scope(who)

        def compose(_: int) -> tuple[list[TapeEntry], str]:
            now = self.clock.now()
            held = scope.compartments
            rests_on = list(evidence) or [source]
            made = SynthesizedPattern(
                more.pop("name", f"p{held.next_pattern}"),
                "conclusion", {"text": text}, rests_on, 0.8, now, now, **more,
            )  # fmt: skip
            return [bus_entry(scope.fold, {"patterns": [made.as_json()], "key": cause})], made.id

        return await scope.append_change(compose)

    async def say(self, who: LinkParty, text: str) -> int:
        source, cause = self._next(who)
        tape, _, number = source.rpartition("#")
        sender = who.identity.partition(":")[2]
        evidence = Evidence(
            tape, int(number), text, "Ada", sender=sender, when="2026-02-10T09:00:00+00:00"
        )
        proposal = Proposal("add", text, evidence=(evidence,))
        outcome = await self._scope(who).apply(ProposalBatch(cause, "person", (proposal,)))
        return outcome.decisions[0].fact.id

    async def join(
        self, offerer: LinkParty = ADA, claimer: LinkParty = ELSE, dies: int | None = None
    ) -> None:
        key = self._next(claimer)[1]
        await self.linking.offer(offerer, key)
        claim = await self.linking.claim(claimer, key, key)
        assert isinstance(claim, LinkClaim)
        move = await self.linking.confirm(offerer.identity, claim.entry, self._next(offerer)[1])
        await self._carry_out(move, dies)

    async def _carry_out(self, move: ScopeMove, dies: int | None) -> None:
        self.store.left = dies
        try:
            for _ in range(2):
                await self.scopes.apply_move(move)
        finally:
            self.store.left = None

    async def part(self, who: LinkParty = ELSE, dies: int | None = None) -> None:
        move = await self.linking.unlink(who.identity, self._next(who)[1])
        await self._carry_out(move, dies)

    async def values(self, who: LinkParty) -> dict[str, Any]:
        scope = self._scope(who)
        await scope.open()
        return {one.key: one.value for one in current_references(scope.compartments)}

    async def versions(self, who: LinkParty, key: str) -> list[Any]:
        store = SharedReferenceStore(self._scope(who), self.clock)
        return [(await store.get(key, one)).value for one in await store.list_versions(key)]

    async def beliefs(self, who: LinkParty) -> dict[str, str]:
        """Return what is not retired, with how it stands."""
        scope = self._scope(who)
        await scope.open()
        held = scope.compartments.patterns.values()
        return {one.text: one.status for one in held if one.status != "retired"}

    async def evidence(self, who: LinkParty, text: str) -> list[str]:
        scope = self._scope(who)
        await scope.open()
        [found] = [one for one in scope.compartments.patterns.values() if one.text == text]
        return found.evidence_ids


async def test_of_a_value_that_both_have_the_newer_counts_and_both_stay_readable():
    here = Home()
    await here.set(ADA, "city", "Oslo")
    await here.set(ELSE, "city", "Bergen")
    await here.set(ELSE, "tone", "formal")
    await here.set(ADA, "tone", "plain")
    await here.set(ELSE, "units", "metric")
    await here.join()
    assert await here.values(ADA) == {"city": "Bergen", "tone": "plain", "units": "metric"}
    assert await here.versions(ADA, "city") == ["Oslo", "Bergen"]
    assert await here.versions(ADA, "tone") == ["plain", "formal", "plain"]
    await here.part()
    assert await here.values(ADA) == {"city": "Oslo", "tone": "plain"}
    assert await here.values(ELSE) == {"city": "Bergen", "tone": "formal", "units": "metric"}


async def test_values_go_back_to_whose_chat_set_them_whoever_parts():
    for who in (ADA, ELSE):
        here = Home()
        await here.join()
        await here.set(ADA, "city", "Oslo")
        await here.set(ELSE, "city", "Bergen")
        await here.set(ELSE, "units", "metric")
        await here.set(ADA, "tone", "plain")
        await here.part(who)
        assert await here.values(ADA) == {"city": "Oslo", "tone": "plain"}
        assert await here.values(ELSE) == {"city": "Bergen", "units": "metric"}


async def test_a_value_that_was_taken_away_while_joined_does_not_come_back_to_who_did():
    here = Home()
    await here.set(ELSE, "units", "metric")
    await here.set(ADA, "tone", "plain")
    await here.join()
    await here.remove(ELSE, "units")
    await here.remove(ELSE, "tone")
    assert await here.values(ADA) == {}
    await here.part()
    assert await here.values(ELSE) == {}
    # What only the other's word had ended holds again.
    assert await here.values(ADA) == {"tone": "plain"}


async def test_joined_parted_and_joined_again_values_and_beliefs_are_the_same():
    here = Home()
    await here.set(ADA, "tone", "plain")
    await here.set(ELSE, "units", "metric")
    await here.set(ELSE, "tone", "formal")
    await here.believe(ELSE, "Ada plans a week ahead.")
    for _ in range(3):
        await here.join()
        assert await here.values(ADA) == {"tone": "formal", "units": "metric"}
        assert await here.beliefs(ADA) == {"Ada plans a week ahead.": "active"}
        await here.part()
        assert await here.values(ADA) == {"tone": "plain"}
        assert await here.values(ELSE) == {"units": "metric", "tone": "formal"}
        assert await here.beliefs(ADA) == {}
        assert await here.beliefs(ELSE) == {"Ada plans a week ahead.": "active"}


async def test_a_third_who_joined_keeps_what_is_theirs_when_the_first_leaves():
    here = Home()
    for who, value in ((ADA, "a"), (ELSE, "b"), (THIRD, "c")):
        await here.set(who, f"of {value}", value)
        await here.set(who, "same", "x")
    await here.join()
    await here.join(ADA, THIRD)
    assert await here.values(THIRD) == {"of a": "a", "of b": "b", "of c": "c", "same": "x"}
    await here.part(ADA)
    assert await here.values(ADA) == {"of a": "a", "same": "x"}
    for who in (ELSE, THIRD):
        assert await here.values(who) == {"of b": "b", "of c": "c", "same": "x"}


async def test_beliefs_rest_on_the_same_words_under_the_numbers_of_the_joint_scope():
    here = Home()
    await here.say(ADA, "I like zebras")
    await here.believe(ADA, "Ada likes stripes.")
    fact = await here.say(ELSE, "I like yaks")
    below = await here.believe(ELSE, "Ada likes wool.", str(fact))
    await here.believe(ELSE, "Ada knits a lot.", below, str(fact))
    await here.join()
    assert await here.beliefs(ADA) == dict.fromkeys(
        ("Ada likes stripes.", "Ada likes wool.", "Ada knits a lot."), "active"
    )
    assert await here.evidence(ADA, "Ada likes wool.") == ["2"]
    assert await here.evidence(ADA, "Ada knits a lot.") == ["p2", "2"]
    joint = here.scopes.identity_scope(ADA.identity)
    await joint.open()
    assert "Ada knits" in render_prompt_beliefs(joint, here.clock.now())
    await here.believe(ELSE, "Ada sews a lot.", "1", "2")
    await here.part()
    assert await here.beliefs(ADA) == {"Ada likes stripes.": "active", "Ada sews a lot.": "active"}
    assert await here.evidence(ADA, "Ada sews a lot.") == ["1"]
    theirs = ("Ada likes wool.", "Ada knits a lot.", "Ada sews a lot.")
    assert await here.beliefs(ELSE) == dict.fromkeys(theirs, "active")
    assert await here.evidence(ELSE, "Ada sews a lot.") == ["1"]


async def test_beliefs_that_say_the_same_are_one_and_each_takes_its_evidence_along():
    here = Home()
    await here.believe(ADA, "Ada plans a week ahead.", "telegram:42#900")
    await here.believe(ELSE, "Ada plans a week ahead.", "discord:99#901")
    await here.join()
    both = ["telegram:42#900", "discord:99#901"]
    assert await here.evidence(ADA, "Ada plans a week ahead.") == both
    await here.part()
    assert await here.evidence(ADA, "Ada plans a week ahead.") == both[:1]
    assert await here.evidence(ELSE, "Ada plans a week ahead.") == both[1:]


async def test_a_belief_that_was_ended_while_joined_stays_ended_for_who_did():
    here = Home()
    name = await here.believe(ADA, "Ada likes stripes.")
    other = await here.believe(ELSE, "Ada plans a week ahead.")
    assert name == other
    await here.join()
    await here.believe(ELSE, "Ada plans a week ahead.", "discord:99#2", name="p2", status="retired")
    await here.part()
    assert await here.beliefs(ELSE) == {}
    assert await here.beliefs(ADA) == {"Ada likes stripes.": "active"}


async def test_of_two_beliefs_that_contradict_the_newer_stands_and_the_other_is_back_after():
    here = Home()
    await here.believe(ADA, "The user lives in Oslo.")
    await here.believe(ELSE, "The user lives in Bergen.")
    await here.join()
    assert await here.beliefs(ADA) == {
        "The user lives in Oslo.": "stale",
        "The user lives in Bergen.": "active",
    }
    await here.part()
    assert await here.beliefs(ADA) == {"The user lives in Oslo.": "active"}
    assert await here.beliefs(ELSE) == {"The user lives in Bergen.": "active"}


@pytest.mark.parametrize("kill", [*range(6), None])
async def test_a_kill_before_any_write_of_a_joining_or_parting_changes_nothing_of_the_outcome(kill):
    for dies_in_part in (False, True):
        here = Home()
        await here.set(ELSE, "tone", "formal")
        await here.set(ADA, "tone", "plain")
        fact = await here.say(ELSE, "I like yaks")
        await here.believe(ELSE, "Ada likes wool.", str(fact))
        for step, dies in ((here.join, not dies_in_part), (here.part, dies_in_part)):
            try:
                await step(dies=kill if dies else None)
            except Killed:
                # As another process finds it.
                here.scopes = ScopeRegistry(here.store, here.clock)
                await here.linking.open()
                await here.linking.finish_moves()
        assert await here.values(ADA) == {"tone": "plain"}
        assert await here.values(ELSE) == {"tone": "formal"}
        assert await here.beliefs(ADA) == {}
        assert await here.beliefs(ELSE) == {"Ada likes wool.": "active"}
        assert await here.versions(ADA, "tone") == ["plain", "formal", "plain"]


async def test_learning_that_was_resumed_while_joined_is_not_paused_after_parting():
    here = Home()
    await here.scopes.identity_scope(ELSE.identity).pause(paused=True)
    await here.join()
    await here.scopes.identity_scope(ADA.identity).pause(paused=False)
    await here.part()
    own = here.scopes.identity_scope(ELSE.identity)
    await own.open()
    assert not own.fold.paused
