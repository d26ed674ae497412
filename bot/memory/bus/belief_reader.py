"""Beliefs of a scope as one of its sessions reads them, and the episodes that they rest on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol

from bot.core.clock import Clock
from bot.core.errors import MemoryRefused
from bot.memory.bus.belief_updates import (
    belief_from_fact,
    belief_from_summary,
    contains_words,
    is_current,
    is_summary,
    sort_by_confidence,
)
from bot.memory.bus.compartment_records import EpisodeEntry, SynthesizedPattern
from bot.memory.bus.provenance import entry_of, episode_id, parse_episode_id
from bot.memory.conversation_entries import CONVERSATION_KINDS
from bot.memory.facts.evidence import sender_text
from bot.memory.forgetting.tombstones import is_erased
from bot.memory.scope_memory import ScopeMemory
from bot.memory.transcript import recorded_at
from bot.memory.zone_snapshot import HISTORY_EVENT
from bot.tape.entries import TapeEntry
from bot.tape.search import MAX_HITS, SearchQuery, problem_of
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

_UNKNOWN = datetime.fromtimestamp(0, UTC)


class EpisodeLookup(Protocol):
    """What is needed of the episodic trace."""

    async def get(self, episode: str, /) -> EpisodeEntry | None:
        """Return an episode of any tape; None where there is none of this id."""
        ...


class BeliefReader:
    """What is believed in one scope, as one of its sessions sees it.

    Args:
        home: The scope.
        episodic: Where the episodes are that beliefs rest on.
        store: Where all tapes are.
        clock: Dates beliefs.
        session: The session's tape.
        problem: The problem that the session works on: of no other are summaries read. None reads none.
    """

    def __init__(
        self,
        home: ScopeMemory,
        episodic: EpisodeLookup,
        store: TapeStore,
        clock: Clock,
        session: TapeService,
        *,
        problem: str | None = None,
    ) -> None:
        self._home = home
        self._episodic = episodic
        self._store = store
        self._clock = clock
        self._session = session
        self._problem = problem

    # Reading.

    async def get_pattern(self, pattern_id: str) -> SynthesizedPattern | None:
        """Return a belief by its id: ``p3``, a fact's number, or ``h45`` for a summary; None for none."""
        await self._home.open()
        if pattern_id.isascii() and pattern_id.isdecimal():
            fact = self._home.fold.get(int(pattern_id))
            return belief_from_fact(fact) if fact is not None else None
        if is_summary(pattern_id):
            place = episode_id(self._session.name, int(pattern_id[1:]))
            found = await entry_of(self._store, place)
            known = found is not None and self._is_read(found[1])
            return belief_from_summary(self._session.name, found[1]) if found and known else None
        return self._home.compartments.patterns.get(pattern_id)

    async def search(
        self, pattern_type: str | None = None, min_confidence: float = 0.0, *, text: str = ""
    ) -> list[SynthesizedPattern]:
        """Return what is believed or stale, the surest first.

        Args:
            pattern_type: Only this type.
            min_confidence: Only what has this much confidence left.
            text: Only what has all these words.
        """
        await self._home.open()
        now = self._clock.now()
        found = [one for one in self._home.compartments.patterns.values() if is_current(one)]
        found += [belief_from_fact(fact) for fact in self._home.active()]
        if pattern_type in (None, "summary"):
            found += await self._summaries()
        return [
            one
            for one in sort_by_confidence(found, now)
            if pattern_type in (None, one.pattern_type)
            and one.confidence_at(now) >= min_confidence
            and contains_words(one, text)
        ]

    async def get_evidence_chain(self, pattern_id: str) -> list[EpisodeEntry]:
        """Return the episodes that a belief rests on in the end, each once, oldest first.

        What it rests on may be beliefs in turn, and on any tape. An episode that is gone is returned
        with the content ``{"missing": true}``, one whose words were erased with ``{"erased": true}``.

        Raises:
            MemoryRefused: There is no such belief.
        """
        await self._known(pattern_id)
        found: dict[str, EpisodeEntry] = {}
        seen: set[str] = set()
        waiting = [pattern_id]
        while waiting:
            one = waiting.pop()
            if one in seen:
                continue
            seen.add(one)
            if parse_episode_id(one) is not None:
                found[one] = await self._episode(one)
                continue
            pattern = await self.get_pattern(one)
            if pattern is None:
                found[one] = self._gone(one)
            elif one.startswith("h"):
                waiting += await self._covered(pattern)
            else:
                waiting += pattern.evidence_ids
        return sorted(found.values(), key=lambda one: (one.timestamp, _place(one.id)))

    async def find_decision_entry(self, pattern_id: str) -> TapeEntry | None:
        """Return the entry that says who decided on a belief, and why; None where none does."""
        pattern = self._home.compartments.patterns.get(pattern_id)
        if pattern is None:
            return None
        at = self._home.fold.last_entry_id
        while at:
            entry = next(iter(await self._home.tape.read_entries(at, at)), None)
            if entry is None or (recorded_at(entry) or pattern.created_at) < pattern.created_at:
                return None
            records = entry.data.get("patterns")
            told = records if isinstance(records, list) and "decision" in entry.data else []
            if any(isinstance(one, dict) and one.get("id") == pattern_id for one in told):
                return entry
            before = entry.data.get("previous")
            at = before if type(before) is int and before < at else 0
        return None

    # How it is done.

    async def _known(self, pattern_id: str) -> SynthesizedPattern:
        found = await self.get_pattern(pattern_id)
        if found is None:
            raise MemoryRefused(
                f"there is no belief {pattern_id[:40]}: `/memory beliefs` lists them"
            )
        return found

    def _is_read(self, entry: TapeEntry) -> bool:
        """Say whether an entry is a summary of the problem that is worked on."""
        is_history = entry.kind == "event" and entry.name == HISTORY_EVENT
        return is_history and problem_of(entry) == self._problem

    async def _summaries(self) -> list[SynthesizedPattern]:
        """Return the newest summaries of the problem that is worked on."""
        if self._problem is None:
            return []
        names = frozenset({HISTORY_EVENT})
        query = SearchQuery(problem=self._problem, names=names, limit=MAX_HITS)
        hits = await self._session.search(query)
        found = (belief_from_summary(self._session.name, hit.entry) for hit in hits)
        return [one for one in found if one is not None]

    async def _covered(self, summary: SynthesizedPattern) -> list[str]:
        """Return the ids of what was said and done in the range of a summary, of its problem alone."""
        ends = [place[1] for one in summary.evidence_ids if (place := parse_episode_id(one))]
        entries = await self._session.read_entries(ends[0], ends[-1])
        return [
            episode_id(self._session.name, one.id)
            for one in entries
            if one.kind in CONVERSATION_KINDS and problem_of(one) == self._problem
        ]

    async def _episode(self, episode: str) -> EpisodeEntry:
        if (found := await self._episodic.get(episode)) is not None:
            return found
        read = await entry_of(self._store, episode)
        if read is None:
            return EpisodeEntry(episode, _UNKNOWN, None, "", "turn", {"missing": True})
        # A command, or an imported memory: evidence, though no episode.
        entry = read[1]
        content = {"erased": True} if is_erased(entry) else {"text": sender_text(entry)}
        problem = str(entry.meta["problem"]) if "problem" in entry.meta else None
        return EpisodeEntry(episode, recorded_at(entry) or _UNKNOWN, problem, "", "turn", content)

    def _gone(self, name: str) -> EpisodeEntry:
        """Return what stands for a belief that is there no more."""
        erased = name.isdecimal() and int(name) in self._home.fold.facts
        content = {"erased": True} if erased else {"missing": True}
        return EpisodeEntry(name, _UNKNOWN, None, "", "summary", content)


def _place(name: str) -> tuple[str, int]:
    return parse_episode_id(name) or (name, 0)
