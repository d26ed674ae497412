"""What is believed rests on evidence: it grows surer by evidence of its own, fades, and is doubted once that goes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.core.errors import MemoryRefused
from bot.memory.records.compartment_records import EpisodeEntry, SynthesizedPattern
from bot.memory.records.episodes import episode_id
from bot.memory.records.evidence import cite
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.records.tombstones import tombstone
from bot.memory.session.bus.episodic_trace import EpisodicTraceStore
from bot.memory.session.bus.semantic_synthesis import (
    SemanticSynthesisStore,
    render_prompt_beliefs,
)
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.entries import TapeEntry, message, tool_result
from bot.tape.service import TapeService
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import ManualClock

SESSION, DAY = "fake:1", 86_400


class Rig:
    """A private chat of Ada's, and what is believed in her scope."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = InMemoryTapeStore(clock=self.clock)
        self.session = TapeService(self.store, SESSION)
        self.home = self.read_home()
        self.episodic = EpisodicTraceStore(self.session, self.clock)
        self.semantic = self.opened(self.home)

    def read_home(self) -> ScopeMemory:
        return ScopeMemory(TapeService(self.store, "person:fake:7"), "person", self.clock)

    def opened(self, home: ScopeMemory) -> SemanticSynthesisStore:
        return SemanticSynthesisStore(
            home, self.episodic, self.store, self.clock, self.session, problem="general"
        )

    async def put(self, entry: TapeEntry) -> str:
        await self.session.ensure_bootstrap_anchor()
        return episode_id(SESSION, (await self.session.append(entry)).id)

    async def says(self, text: str, **meta: Any) -> str:
        return await self.put(message("user", text, sender={"id": "7", "name": "Ada"}, **meta))

    async def believes(
        self, text: str, *evidence: str, kind: Any = "conclusion", sure: float = 0.7
    ):
        now = self.clock.now()
        made = SynthesizedPattern("", kind, {"text": text}, list(evidence), sure, now, now)
        return await self.semantic.add_pattern(made)

    async def pattern(self, name: str) -> SynthesizedPattern:
        found = await self.semantic.get_pattern(name)
        assert found is not None
        return found

    async def sure(self, name: str) -> Any:
        return pytest.approx((await self.pattern(name)).confidence)

    async def entry(self, said: str) -> TapeEntry:
        number = int(said.rpartition("#")[2])
        return (await self.session.read_entries(number, number))[0]

    async def fact(self, text: str, said: str) -> str:
        proposal = Proposal("add", text, evidence=(cite(SESSION, await self.entry(said)),))
        batch = ProposalBatch(f"{text}{said}", "consolidation", (proposal,))
        fact = (await self.home.apply(batch)).decisions[0].fact
        return str(fact.id) if fact is not None else ""

    async def erases(self, said: str) -> None:
        await self.store.erase(SESSION, [tombstone(await self.entry(said))])

    async def supersedes(self, old: str) -> str:
        made = EpisodeEntry("", self.clock.now(), None, "", "delta", {"text": "not so"})
        return await self.episodic.supersede(old, made)


@pytest.fixture
def rig() -> Rig:
    return Rig()


async def test_a_belief_without_evidence_that_is_there_is_refused(rig):
    erased, replaced = await rig.says("I like mornings."), await rig.says("I like evenings.")
    await rig.erases(erased)
    await rig.supersedes(replaced)
    missing = ((), ("fake:1#999",), ("nowhere:9#1",), ("p7",), ("12",), ("not an id",), ("²",))
    for evidence in (*missing, (erased,), (replaced,)):
        with pytest.raises(MemoryRefused):
            await rig.believes("Ada likes plans.", *evidence)
    said = await rig.says("My password is hunter2-Xy9!")
    for text in ("", "x" * 2_000, "The password of Ada is hunter2-Xy9!"):
        with pytest.raises(MemoryRefused):
            await rig.believes(text, said)
    assert rig.home.compartments.patterns == {}


async def test_being_recalled_or_repeated_does_not_strengthen(rig):
    name = await rig.believes("Ada likes green tea.", await rig.says("Green tea again for me."))
    told = await rig.put(message("assistant", "You like green tea most of all."))
    recalled = await rig.put(tool_result("c1", "memory_recall", "- Ada: Green tea again for me."))
    echo = await rig.says("You like green tea most of all")
    unlearned = await rig.says("Green tea, once more.", paused=True)
    for one in (told, recalled, echo, unlearned, "fake:1#999", "p1", ""):
        assert not await rig.semantic.strengthen(name, one)
    assert await rig.sure(name) == 0.7


async def test_what_rests_on_what_is_gone_is_doubted_once_or_stale_all_the_way_up(rig):
    said = [await rig.says(f"Plan number {number} is made.") for number in range(4)]
    many = await rig.believes("Ada plans.", *said)
    fact = await rig.fact("Ada likes tea.", await rig.says("I like tea."))
    first = await rig.believes("Ada would like a teapot.", fact)
    second = await rig.believes("A teapot is a good gift for Ada.", first)
    assert await rig.semantic.check_evidence() == []
    await rig.erases(said[0])
    await rig.semantic.revalidate(fact, still_valid=False)
    assert sorted(await rig.semantic.check_evidence()) == sorted([many, first, second])
    assert await rig.semantic.check_evidence() == []
    assert await rig.sure(many) == 0.5
    assert f"{first} is stale" in (await rig.pattern(second)).reason


async def test_the_prompt_shows_the_surest_that_are_active_and_fit(rig):
    said = await rig.says("I like tea.")
    sure = await rig.believes("Tea helps in the morning.", said, sure=0.9)
    await rig.believes("Coffee might do.", said, sure=0.45)
    second = await rig.believes("Water works as well.", said, kind="heuristic", sure=0.6)
    shown = [f"- Tea helps in the morning. (conclusion {sure})"]
    shown.append(f"- Water works as well. (heuristic {second})")
    assert render_prompt_beliefs(rig.home, rig.clock.now()).splitlines() == shown
    assert render_prompt_beliefs(rig.home, rig.clock.now(), 50).splitlines() == shown[:1]
    rig.clock.advance(300 * DAY)
    assert render_prompt_beliefs(rig.home, rig.clock.now()) == ""


TEXTS = (
    "Ada plans her weeks.",
    "Ada plans her weeks",
    "The user lives in Bonn.",
    "",
    "Ada drinks tea.",
)
places = st.integers(0, 9)
names = st.sampled_from(("p1", "p2", "p9", "1", "2", "h3"))
pieces = places | names | st.sampled_from(("", "#", "nowhere#1", "fake:1#0"))
operations = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(("fact", "believe")), st.sampled_from(TEXTS), pieces, pieces),
        st.tuples(st.sampled_from(("strengthen", "erase", "supersede")), names, places),
        st.tuples(st.just("revalidate"), names, st.booleans(), pieces),
        st.tuples(st.sampled_from(("weaken", "decay", "check")), names),
    ),
    max_size=25,
)


@pytest.mark.slow
@given(operations)
@settings(max_examples=examples(60))
async def test_all_beliefs_rest_on_evidence_none_is_lost_and_the_tape_tells_the_same(steps):
    rig, known = Rig(), set[str]()
    said = [await rig.says(f"I plan number {number}, and drink tea.") for number in range(6)]
    await rig.fact("Ada drinks tea at four.", said[4])
    await rig.believes("Short walks help Ada.", said[1], said[0])
    await rig.believes("Ada rests when she is tired.", "p1", "1")

    def place(piece: int | str) -> str:
        return piece if isinstance(piece, str) else said[piece % len(said)]

    for what, *more in steps:
        semantic = rig.semantic
        rig.clock.advance(DAY)
        with suppress(MemoryRefused):
            if what == "fact" and isinstance(more[1], int):
                await rig.fact(more[0], place(more[1]))
            elif what == "believe":
                await rig.believes(more[0], *map(place, more[1:]))
            elif what in ("erase", "supersede"):
                await (rig.erases if what == "erase" else rig.supersedes)(place(more[1]))
            elif what == "strengthen":
                await semantic.strengthen(more[0], place(more[1]))
            elif what == "revalidate":
                await semantic.revalidate(more[0], more[1], evidence_id=place(more[2]))
            elif what == "weaken":
                await semantic.weaken(more[0], "a doubt; and another")
            else:
                await (semantic.decay_all() if what == "decay" else semantic.check_evidence())
        held = rig.home.compartments.patterns
        assert known <= held.keys()
        known |= held.keys()
        assert all(one.evidence_ids and 0 <= one.confidence <= 1 for one in held.values())
    for name in known:
        chain = await rig.semantic.get_evidence_chain(name)
        assert chain
        assert all("missing" not in one.content for one in chain)
    reopened = rig.read_home()
    await reopened.open()
    assert reopened.compartments == rig.home.compartments
    assert reopened.fold.facts == rig.home.fold.facts
    assert await rig.opened(reopened).search() == await rig.semantic.search()
