"""A session's tape and the scope of its person, with what is believed there."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bot.memory.records.compartment_records import (
    EpisodeEntry,
    PatternType,
    SynthesizedPattern,
)
from bot.memory.records.episodes import episode_id
from bot.memory.records.evidence import cite
from bot.memory.records.fact import Fact
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.records.tombstones import tombstone
from bot.memory.session.bus.episodic_trace import EpisodicTraceStore
from bot.memory.session.bus.semantic_synthesis import SemanticSynthesisStore
from bot.memory.session.scope.scope_memory import ScopeKind, ScopeMemory
from bot.tape.entries import TapeEntry, message
from bot.tape.service import TapeService
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import ManualClock

SESSION, PERSON = "fake:1", "person:fake:7"
DAY = 86_400


class Rig:
    """A private chat of Ada's.

    Attributes:
        session: Its tape.
        home: The scope.
        semantic: What is under test.
    """

    def __init__(self, kind: ScopeKind = "person", home: str = PERSON) -> None:
        self.clock = ManualClock()
        self.store = InMemoryTapeStore(clock=self.clock)
        self.session = TapeService(self.store, SESSION)
        self.home = ScopeMemory(TapeService(self.store, home), kind, self.clock)
        self.episodic = EpisodicTraceStore(self.session, self.clock)
        self.semantic = self.opened(self.home)

    def opened(self, home: ScopeMemory, problem: str | None = "general") -> SemanticSynthesisStore:
        return SemanticSynthesisStore(
            home, self.episodic, self.store, self.clock, self.session, problem=problem
        )

    def fresh_home(self) -> ScopeMemory:
        """Return the scope as another process would read it."""
        return ScopeMemory(TapeService(self.store, self.home.name), self.home.kind, self.clock)

    async def says(self, text: str, *, role: str = "user", **meta: Any) -> str:
        """Return the id of something said."""
        await self.session.ensure_bootstrap_anchor()
        told = {"sender": {"id": "7", "name": "Ada"}, **meta} if role == "user" else meta
        entry = await self.session.append(message(role, text, **told))
        return episode_id(SESSION, entry.id)

    async def believes(
        self, text: str, *evidence: str, kind: PatternType = "conclusion", confidence: float = 0.7
    ) -> str:
        """Return the id of something concluded."""
        return await self.semantic.add_pattern(drawn(text, *evidence, kind=kind, sure=confidence))

    async def pattern(self, name: str) -> SynthesizedPattern:
        found = await self.semantic.get_pattern(name)
        assert found is not None
        return found

    async def fact(self, text: str, said: str, author: Any = "consolidation") -> Fact:
        """Return a fact that a message carries."""
        entry = await self.entry(said)
        proposal = Proposal("add", text, evidence=(cite(SESSION, entry),))
        [decided] = (
            await self.home.apply(ProposalBatch(f"{text}{said}", author, (proposal,)))
        ).decisions
        assert decided.fact is not None
        return decided.fact

    async def entry(self, said: str) -> TapeEntry:
        number = int(said.rpartition("#")[2])
        return (await self.session.read_entries(number, number))[0]

    async def erases(self, said: str) -> None:
        await self.store.erase(SESSION, [tombstone(await self.entry(said))])

    async def supersedes(self, old: str) -> str:
        """Return the id of an episode that takes the place of another."""
        made = EpisodeEntry("", self.clock.now(), None, "", "delta", {"text": "not so"})
        return await self.episodic.supersede(old, made)


def drawn(
    text: str, *evidence: str, kind: PatternType = "conclusion", sure: float = 0.7
) -> SynthesizedPattern:
    unset = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    return SynthesizedPattern("", kind, {"text": text}, list(evidence), sure, unset, unset)
