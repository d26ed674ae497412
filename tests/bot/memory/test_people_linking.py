"""Steps that several processes take at the same time, and facts that follow once."""

from __future__ import annotations

from dataclasses import replace

import anyio

from bot.memory.records.fact import Evidence
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.scope.identities import IDENTITIES_TAPE, LinkClaim, LinkParty
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import ManualClock

ADA = LinkParty("telegram:42", "Ada", "telegram:42")
ELSE = LinkParty("discord:7", "Ada L.", "discord:99")


class Processes:
    """Two processes on the same tapes."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = InMemoryTapeStore(clock=self.clock)
        self.one, self.other = (ScopeRegistry(self.store, self.clock) for _ in range(2))

    async def say(self, tape: str, sender: str, text: str, number: int) -> None:
        """Let a fact be believed that somebody told in a chat."""
        evidence = Evidence(
            tape, number, text, "Ada", sender=sender, when="2026-02-10T09:00:00+00:00"
        )
        scope = self.one.identity_scope(f"{tape.partition(':')[0]}:{sender}")
        await scope.apply(
            ProposalBatch(
                f"said:{tape}:{number}", "person", (Proposal("add", text, evidence=(evidence,)),)
            )
        )

    async def joined(self) -> None:
        await self.one.identity_linker.offer(ADA, "x")
        claim = await self.other.identity_linker.claim(ELSE, "x", "k1")
        assert isinstance(claim, LinkClaim)
        await self.one.identity_linker.confirm(ADA.identity, claim.entry, "k2")


async def test_of_two_processes_that_claim_one_code_at_once_one_does():
    both = Processes()
    await both.one.identity_linker.offer(ADA, "x")
    results: list[object] = []

    async def claim(scopes: ScopeRegistry, who: str) -> None:
        party = LinkParty(who, "", who)
        results.append(await scopes.identity_linker.claim(party, "x", f"key of {who}"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(claim, both.one, "discord:7")
        tasks.start_soon(claim, both.other, "web:7")
    assert sorted(isinstance(one, LinkClaim) for one in results) == [False, True]
    assert "wrong" in results


async def test_given_again_after_a_kill_each_step_is_taken_once():
    both = Processes()
    await both.joined()
    written = await both.store.version(IDENTITIES_TAPE)
    assert isinstance(await both.one.identity_linker.claim(ELSE, "x", "k1"), LinkClaim)
    again = await both.other.identity_linker.confirm(ADA.identity, None, "k2")
    assert again is not None
    assert again.target == ADA.identity
    assert (
        await both.other.identity_linker.claim(replace(ELSE, identity="web:7"), "y", "k3")
        == "wrong"
    )
    assert (
        await both.one.identity_linker.claim(replace(ELSE, identity="web:7"), "y", "k3") == "wrong"
    )
    assert await both.store.version(IDENTITIES_TAPE) == written + 1


async def test_facts_follow_once_whoever_lets_them():
    both = Processes()
    await both.say("telegram:42", "42", "I like zebras", 3)
    await both.say("discord:99", "7", "I like yaks", 4)
    await both.joined()
    async with anyio.create_task_group() as tasks:
        for scopes in (both.one, both.other):
            await scopes.identity_linker.open()
            tasks.start_soon(scopes.identity_linker.finish_moves)
    for scopes in (both.one, both.other):
        joint = scopes.identity_scope(ADA.identity)
        await joint.open()
        assert [one.text for one in joint.active()] == ["I like zebras", "I like yaks"]
        await scopes.identity_linker.open()
        assert scopes.identity_linker.people.unfinished == set()
    left = await both.one.identity_linker.unlink(ELSE.identity, "k3")
    assert left is not None
    joint, own = both.one.identity_scope(ADA.identity), both.one.identity_scope(ELSE.identity)
    for _ in range(2):
        await both.one.apply_move(left)
    assert [one.text for one in joint.active()] == ["I like zebras"]
    assert [one.text for one in own.active()] == ["I like yaks"]


async def test_what_a_person_had_accepted_against_the_gate_waits_again():
    both = Processes()
    quoted = Evidence("discord:99", 4, "x", "quoted text", origin="quoted", sender="7")
    own = both.one.identity_scope(ELSE.identity)
    proposal = Proposal("add", "Max likes yaks", evidence=(quoted,), review_reason="it is quoted")
    await own.apply(ProposalBatch("a", "consolidation", (proposal,)))
    await own.apply(ProposalBatch("b", "person", (Proposal("accept", fact=1),)))
    await own.apply(
        ProposalBatch("c", "consolidation", (replace(proposal, text="Ida likes gnus"),))
    )
    await both.joined()
    joint = both.one.identity_scope(ADA.identity)
    await both.one.identity_linker.open()
    await both.one.identity_linker.finish_moves()
    assert [one.text for one in joint.fold.pending()] == ["Max likes yaks", "Ida likes gnus"]
