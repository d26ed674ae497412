"""Read scopes and sessions for an audit. It writes nothing, so it may run beside the bot."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing, suppress

from bot.core.clock import Clock, format_time
from bot.core.errors import TapeNotFound
from bot.memory.audit.fact_replay import FactReplay
from bot.memory.audit.findings import AuditedScope, AuditedSession, parse_timestamp
from bot.memory.records.episodes import parse_episode_id
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.tombstones import ERASED_TEXT
from bot.memory.session.bus.shared_reference import current_references
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.zone import MemoryZone
from bot.memory.session.state.zone_snapshot import MemorySnapshot
from bot.tape.batches import read_batches
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

_NEAR, _LONGEST = 64, 2_000
"""Largest gap between ids that are read at once, and the most entries of one read."""


class AuditReader:
    """Read scopes and sessions of one store.

    Args:
        store: Store of the tapes; it may be opened read-only.
        clock: Source of the present time.
    """

    def __init__(self, store: TapeStore, clock: Clock) -> None:
        self._store = store
        self._scopes = ScopeRegistry(store, clock)
        self._clock = clock

    async def read_session(self, name: str) -> tuple[AuditedSession, str]:
        """Return what a session's prompt shows of memory, and the scope of its facts.

        Raises:
            TapeNotFound: There is no such tape.
        """
        tape = TapeService(self._store, name)
        fold = await load_fold(tape)
        home = fold.home_scope or name
        zone = MemoryZone(tape, fold=fold.zone, clock=self._clock)
        memory = LongTermMemory(tape, fold, zone, self._scopes)
        await memory.workspace.open()
        await memory.home.open()
        memory_snapshot = zone.read()
        rendered = None
        if not _lags(fold, memory):
            now = memory.with_current_facts(memory_snapshot)
            rendered = _parts(now)
        own = None
        if home != name and fold.facts.last_change:
            own = await self.read_scope(name)
        return AuditedSession(
            name, memory_snapshot.dailies, _parts(memory_snapshot), rendered, own
        ), home

    async def read_scope(self, name: str) -> AuditedScope:
        """Return the facts of a scope and their evidence; empty if the scope has no tape yet."""
        replay = FactReplay()
        with suppress(TapeNotFound):
            async with aclosing(read_batches(self._store, name)) as parts:
                async for entries in parts:
                    for entry in entries:
                        replay.apply(entry)
        return AuditedScope(name, replay, await self._evidence(_cited(name, replay.fold)))

    async def _evidence(self, cited: Iterable[tuple[str, int]]) -> dict[tuple[str, int], TapeEntry]:
        found: dict[tuple[str, int], TapeEntry] = {}
        by_tape: dict[str, set[int]] = {}
        for tape, number in cited:
            by_tape.setdefault(tape, set()).add(number)
        for tape, wanted in by_tape.items():
            for first, last in _spans(wanted):
                with suppress(TapeNotFound):
                    for entry in await self._store.read(tape, first, last):
                        if entry.id in wanted:
                            found[tape, entry.id] = entry
        return found


def _cited(name: str, fold: FactFold) -> set[tuple[str, int]]:
    """Return the entries that facts, beliefs and shared values cite, and that problems resume."""
    compartments = fold.compartments
    found = {
        (evidence.tape, evidence.entry) for fact in fold.active() for evidence in fact.evidence
    }
    ids = [
        evidence_id
        for belief in compartments.patterns.values()
        for evidence_id in belief.evidence_ids
    ]
    ids += [reference.source for reference in current_references(compartments)]
    found |= {place for other in ids if (place := parse_episode_id(other)) is not None}
    return found | {
        (name, other)
        for problem in compartments.problems.values()
        for other in problem.resumable_entry_ids
    }


def _parts(zone: MemorySnapshot) -> tuple[str, str, str]:
    # Confidence decays by itself, and nothing records when the zone last showed it.
    return zone.long_term, zone.shared, zone.reference.partition("Beliefs:\n")[0].strip()


def _spans(ids: Iterable[int]) -> list[tuple[int, int]]:
    """Return ranges of limited length that cover these ids without large gaps."""
    spans: list[tuple[int, int]] = []
    for number in sorted(ids):
        if spans and number - spans[-1][1] <= _NEAR and number - spans[-1][0] < _LONGEST:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    return spans


def _lags(fold: SessionFold, memory: LongTermMemory) -> bool:
    """Return whether a zone may be behind its facts: it is updated at the session's next write.

    That update also removes the marks that an erasure left in it.
    """
    zone = fold.zone
    if zone.span is None or any(ERASED_TEXT in part for part in _parts(zone.snapshot)):
        return True
    saved = parse_timestamp(zone.saved_at)
    folds = (memory.home.fold, memory.workspace.fold)
    stamps = [fact.changed for fact_fold in folds for fact in fact_fold.facts.values()]
    stamps += memory.home.compartments.uses.values()
    values = (value for fact_fold in folds for value in fact_fold.compartments.references.values())
    changed = parse_timestamp(
        max([*stamps, *(format_time(reference.updated_at) for reference in values)], default="")
    )
    return saved is None or (changed is not None and changed > saved)
