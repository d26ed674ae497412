"""Read the beliefs of a scope as one session sees them, and trace their evidence to episodes."""

from __future__ import annotations

from contextlib import aclosing
from datetime import UTC, datetime

from bot.core.clock import Clock
from bot.core.errors import MemoryRefused
from bot.core.i18n import _
from bot.memory.gate.belief_updates import (
    belief_from_fact,
    belief_from_summary,
    contains_words,
    is_current,
    is_summary,
    sort_by_confidence,
)
from bot.memory.records.compartment_records import EpisodeEntry, SynthesizedPattern
from bot.memory.records.conversation_entries import CONVERSATION_KINDS
from bot.memory.records.episodes import entry_of, episode_id, parse_episode_id
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.records.evidence import sender_text
from bot.memory.records.tombstones import is_erased
from bot.memory.records.transcript import recorded_at
from bot.memory.session.bus.episodic_trace import EpisodicTraceStore
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.entries import TapeEntry
from bot.tape.search import MAX_HITS, SearchQuery, problem_of
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

_UNKNOWN = datetime.fromtimestamp(0, UTC)


class BeliefReader:
    """Read the beliefs of one scope as one of its sessions sees them.

    Args:
        home: The scope.
        episodic: Looks up the episodes that beliefs rest on.
        store: The store of all tapes.
        clock: The current time, for decay.
        session: Tape of the session.
        problem: The session's active problem, whose summaries are read; None reads no summaries.
    """

    def __init__(
        self,
        home: ScopeMemory,
        episodic: EpisodicTraceStore,
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
        """Return a belief by id: ``p3``, a fact's number, or ``h45`` for a summary; else None."""
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
        """Return active and stale beliefs, most confident first.

        They are of one type, have at least some confidence after decay, and contain all words of a text.
        """
        await self._home.open()
        now = self._clock.now()
        beliefs = [*filter(is_current, self._home.compartments.patterns.values())]
        beliefs += map(belief_from_fact, self._home.active())
        if pattern_type in (None, "summary"):
            beliefs += await self._summaries()
        return [
            belief
            for belief in sort_by_confidence(beliefs, now)
            if pattern_type in (None, belief.pattern_type)
            and belief.confidence_at(now) >= min_confidence
            and contains_words(belief, text)
        ]

    async def get_evidence_chain(self, pattern_id: str) -> list[EpisodeEntry]:
        """Return the episodes that a belief ultimately rests on, without duplicates, oldest first.

        The chain may pass through other beliefs and through any tape. A missing episode is returned
        with the content ``{"missing": true}``, one whose words were erased with ``{"erased":
        true}``.

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
        return sorted(found.values(), key=lambda episode: (episode.timestamp, _place(episode.id)))

    async def find_decision_entry(self, pattern_id: str) -> TapeEntry | None:
        """Return the entry that records the gate's decision on a belief; None if there is none."""
        pattern = self._home.compartments.patterns.get(pattern_id)
        if pattern is None:
            return None
        async with aclosing(self._home.changes()) as entries:
            async for entry in entries:
                if (recorded_at(entry) or pattern.created_at) < pattern.created_at:
                    return None
                records = entry.data.get("patterns")
                told = records if isinstance(records, list) and "decision" in entry.data else []
                if any(isinstance(one, dict) and one.get("id") == pattern_id for one in told):
                    return entry
        return None

    # Details.

    async def _known(self, pattern_id: str) -> SynthesizedPattern:
        belief = await self.get_pattern(pattern_id)
        if belief is None:
            raise MemoryRefused(
                _(
                    "there is no belief {pattern_id}: `/memory beliefs` lists them",
                    pattern_id=pattern_id[:40],
                )
            )
        return belief

    def _is_read(self, entry: TapeEntry) -> bool:
        """Say whether an entry is a summary of the session's problem."""
        is_history = entry.kind == "event" and entry.name == HISTORY_EVENT
        return is_history and problem_of(entry) == self._problem

    async def _summaries(self) -> list[SynthesizedPattern]:
        """Return the newest summaries of the session's problem."""
        if self._problem is None:
            return []
        names = frozenset({HISTORY_EVENT})
        query = SearchQuery(problem=self._problem, names=names, limit=MAX_HITS)
        hits = await self._session.search(query)
        found = (belief_from_summary(self._session.name, hit.entry) for hit in hits)
        return [belief for belief in found if belief is not None]

    async def _covered(self, summary: SynthesizedPattern) -> list[str]:
        """Return the ids of the entries that a summary covers, of its problem only."""
        ends = [
            place[1]
            for evidence_id in summary.evidence_ids
            if (place := parse_episode_id(evidence_id))
        ]
        entries = await self._session.read_entries(ends[0], ends[-1])
        return [
            episode_id(self._session.name, entry.id)
            for entry in entries
            if entry.kind in CONVERSATION_KINDS and problem_of(entry) == self._problem
        ]

    async def _episode(self, episode: str) -> EpisodeEntry:
        if (found := await self._episodic.get(episode)) is not None:
            return found
        read = await entry_of(self._store, episode)
        if read is None:
            return EpisodeEntry(episode, _UNKNOWN, None, "", "turn", {"missing": True})
        # A command or an imported memory: evidence, but not an episode.
        entry = read[1]
        content = {"erased": True} if is_erased(entry) else {"text": sender_text(entry)}
        problem = str(entry.meta["problem"]) if "problem" in entry.meta else None
        return EpisodeEntry(episode, recorded_at(entry) or _UNKNOWN, problem, "", "turn", content)

    def _gone(self, name: str) -> EpisodeEntry:
        """Return a placeholder for evidence that no longer exists."""
        erased = name.isdecimal() and int(name) in self._home.fold.facts
        content = {"erased": True} if erased else {"missing": True}
        return EpisodeEntry(name, _UNKNOWN, None, "", "summary", content)


def _place(name: str) -> tuple[str, int]:
    return parse_episode_id(name) or (name, 0)
