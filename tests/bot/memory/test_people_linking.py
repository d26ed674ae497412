"""Steps that several processes take at the same time, and facts that follow once."""

from __future__ import annotations

from dataclasses import replace

import anyio

from bot.memory.facts.fact import Evidence
from bot.memory.facts.proposals import Batch, Proposal
from bot.memory.people import PEOPLE, Claim, Party
from bot.memory.scopes import Scopes
from bot.tape.stores.memory import MemoryTapeStore
from bot.testing.manual_clock import ManualClock

ADA = Party("telegram:42", "Ada", "telegram:42")
ELSE = Party("discord:7", "Ada L.", "discord:99")


class Processes:
    """Two processes on the same tapes."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = MemoryTapeStore(clock=self.clock)
        self.one, self.other = (Scopes(self.store, self.clock) for _ in range(2))

    async def say(self, tape: str, sender: str, text: str, number: int) -> None:
        """Let a fact be believed that somebody told in a chat."""
        evidence = Evidence(
            tape, number, text, "Ada", sender=sender, when="2026-02-10T09:00:00+00:00"
        )
        scope = self.one.of(f"{tape.partition(':')[0]}:{sender}")
        await scope.apply(
            Batch(f"said:{tape}:{number}", "person", (Proposal("add", text, evidence=(evidence,)),))
        )

    async def joined(self) -> None:
        await self.one.linking.offer(ADA, "x")
        claim = await self.other.linking.claim(ELSE, "x", "k1")
        assert isinstance(claim, Claim)
        await self.one.linking.confirm(ADA.identity, claim.entry, "k2")


async def test_of_two_processes_that_claim_one_code_at_once_one_does():
    both = Processes()
    await both.one.linking.offer(ADA, "x")
    results: list[object] = []

    async def claim(scopes: Scopes, who: str) -> None:
        party = Party(who, "", who)
        results.append(await scopes.linking.claim(party, "x", f"key of {who}"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(claim, both.one, "discord:7")
        tasks.start_soon(claim, both.other, "web:7")
    assert sorted(isinstance(one, Claim) for one in results) == [False, True]
    assert "wrong" in results


async def test_given_again_after_a_kill_each_step_is_taken_once():
    both = Processes()
    await both.joined()
    written = await both.store.version(PEOPLE)
    assert isinstance(await both.one.linking.claim(ELSE, "x", "k1"), Claim)
    again = await both.other.linking.confirm(ADA.identity, None, "k2")
    assert again is not None
    assert again.target == ADA.identity
    assert await both.other.linking.claim(replace(ELSE, identity="web:7"), "y", "k3") == "wrong"
    assert await both.one.linking.claim(replace(ELSE, identity="web:7"), "y", "k3") == "wrong"
    assert await both.store.version(PEOPLE) == written + 1


async def test_facts_follow_once_whoever_lets_them():
    both = Processes()
    await both.say("telegram:42", "42", "I like zebras", 3)
    await both.say("discord:99", "7", "I like yaks", 4)
    await both.joined()
    async with anyio.create_task_group() as tasks:
        for scopes in (both.one, both.other):
            await scopes.linking.open()
            tasks.start_soon(scopes.linking.finish)
    for scopes in (both.one, both.other):
        joint = scopes.of(ADA.identity)
        await joint.open()
        assert [one.text for one in joint.active()] == ["I like zebras", "I like yaks"]
        await scopes.linking.open()
        assert scopes.linking.people.unfinished == set()
    left = await both.one.linking.leave(ELSE.identity, "k3")
    assert left is not None
    joint, own = both.one.of(ADA.identity), both.one.of(ELSE.identity)
    for _ in range(2):
        await both.one.carry_out(left)
    assert [one.text for one in joint.active()] == ["I like zebras"]
    assert [one.text for one in own.active()] == ["I like yaks"]


async def test_what_a_person_had_accepted_against_the_gate_waits_again():
    both = Processes()
    quoted = Evidence("discord:99", 4, "x", "quoted text", origin="quoted", sender="7")
    own = both.one.of(ELSE.identity)
    proposal = Proposal("add", "Max likes yaks", evidence=(quoted,), suspect="it is quoted")
    await own.apply(Batch("a", "consolidation", (proposal,)))
    await own.apply(Batch("b", "person", (Proposal("accept", fact=1),)))
    await own.apply(Batch("c", "consolidation", (replace(proposal, text="Ida likes gnus"),)))
    await both.joined()
    joint = both.one.of(ADA.identity)
    await both.one.linking.open()
    await both.one.linking.finish()
    assert [one.text for one in joint.fold.pending()] == ["Max likes yaks", "Ida likes gnus"]
