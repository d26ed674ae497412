"""One scope's memory: facts and compartments read from its tape, changed through the write gate.

A scope is a tape: a group's, a person's, or the workspace's, which everybody reads. Several
sessions may change a person's, so a change is a compare-and-set on the tape, decided on its current
state. A change that a crash interrupted is requested again with the same key, and happens once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import anyio
import anyio.to_thread

from bot.core.clock import Clock
from bot.core.errors import TapeNotFound
from bot.memory.gate.batch_decision import BatchDecider
from bot.memory.gate.write_gate import BlastRadius, WriteGate
from bot.memory.records.compartments import Compartments
from bot.memory.records.fact import Fact
from bot.memory.records.fact_fold import (
    FACTS_EVENT,
    FactFold,
    batch_entry,
    bus_entry,
    pause_entry,
)
from bot.memory.records.fact_undo import (
    LINK_KEY,
    changes_something,
    inverse_proposals,
    is_undo_barrier,
    undone_batch_id,
)
from bot.memory.records.proposals import BatchOutcome, Proposal, ProposalBatch, parse_outcome
from bot.memory.session.scope.identities import is_shared_scope
from bot.memory.session.scope.workspace_tape import (
    MAX_ATTEMPTS,
    append_with_retry,
    catch_up,
)
from bot.memory.session.state.fold_loader import load_fold
from bot.tape.entries import TapeEntry
from bot.tape.folding import FoldedTape, fold_tape
from bot.tape.service import TapeService

ScopeKind = Literal["session", "person", "workspace"]

_RADIUS: dict[ScopeKind, BlastRadius] = {
    "session": "minimal",
    "person": "minimal",
    "workspace": "severe",
}
_MANY = 50

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """A change of a scope's compartments.

    Attributes:
        result: What whoever asked for it is told.
        data: Each changed record as it is afterwards, by compartment; None changes nothing.
        more: Entries that belong to it.
    """

    result: T
    data: dict[str, Any] | None = None
    more: Sequence[TapeEntry] = ()


class ScopeMemory:
    """Read and change the facts of one scope.

    Args:
        tape: The scope's tape.
        kind: Kind of the scope, which sets the blast radius.
        clock: The current time.
        fold: A fold that somebody else updates; by default the scope keeps its own.
        gate: Decides what is believed.
    """

    def __init__(
        self,
        tape: TapeService,
        kind: ScopeKind,
        clock: Clock,
        fold: FactFold | None = None,
        *,
        gate: WriteGate | None = None,
    ) -> None:
        self.tape = tape
        self.kind = kind
        self.gate = gate or WriteGate()
        self.clock = clock
        self._shared = fold is not None
        self._fold = fold if fold is not None else FactFold()
        self._opening = anyio.Lock(fast_acquire=True)
        self._opened = self._shared
        self._erasures = 0
        self._kept: FoldedTape[FactFold] | None = None
        if not self._shared:
            tape.observe(self._fold.apply)

    @property
    def name(self) -> str:
        """Name of the scope's tape."""
        return self.tape.name

    @property
    def fold(self) -> FactFold:
        """The scope's state, as far as it was read."""
        return self._fold

    @property
    def compartments(self) -> Compartments:
        """The scope's compartments, as far as they were read."""
        return self._fold.compartments

    @property
    def blast_radius(self) -> BlastRadius:
        """How far a mistake in this scope reaches."""
        return _RADIUS[self.kind]

    def active(self) -> list[Fact]:
        """Return the facts that are believed."""
        return self._fold.active()

    async def open(self) -> None:
        """Read new entries of the tape; an unused scope has no tape yet."""
        if not self._opened and self.tape.store.is_known_absent(self.name):
            return
        async with self._opening:
            if self._shared:
                return
            try:
                erasures = await self.tape.store.erasures(self.name)
                # Another process may have erased something, which must not stay in memory.
                if not self._opened or erasures != self._erasures:
                    await self._fold_anew()
                self._erasures = erasures
                if (last := await self.tape.version()) != self._fold.version:
                    await catch_up(self.tape, self._fold, last)
                if self._kept is not None:
                    await self._kept.keep(self._fold.version)
            except TapeNotFound:
                self._opened = False

    async def reload(self) -> None:
        """Fold the tape again, after an erasure changed its entries."""
        async with self._opening:
            if not self._shared:
                await self._fold_anew()

    async def _fold_anew(self) -> None:
        kept = await fold_tape(self.tape.store, self.name, FactFold, past=True)
        # Others hold the state.
        for slot in FactFold.__slots__:
            setattr(self._fold, slot, getattr(kept.fold, slot))
        self._kept, kept.fold, self._opened = kept, self._fold, True

    async def apply(self, batch: ProposalBatch) -> BatchOutcome:
        """Decide on a batch, and record the decisions as one entry; return earlier ones if its key is known.

        Raises:
            MemoryRefused: It would end too many facts at once; nothing was changed.
            TapeWriteError: The storage failed; nothing was changed.
        """
        prepared: BatchOutcome | None = None

        def compose(version: int) -> tuple[list[TapeEntry], BatchOutcome]:
            if (done := self._fold.decided_keys.get(batch.key)) is not None:
                return [], BatchOutcome(entry=done, repeated=True)
            if prepared is not None and prepared.entry == version + 1:
                outcome = prepared
            else:
                outcome = self._deciding(batch, version + 1).decide()
            empty = not outcome.decisions and not batch.clears_all and batch.undone_entry is None
            if empty and not batch.key.startswith(LINK_KEY):
                return [], outcome
            more: dict[str, Any] = {"asker": batch.asker} if batch.asker else {}
            more |= {"undoes": batch.undone_entry} if batch.undone_entry is not None else {}
            more |= {"clears": True} if batch.clears_all else {}
            entry = batch_entry(outcome, key=batch.key, author=batch.author, **more)
            return [entry], outcome

        await self._ready()
        if len(self._fold.facts) > _MANY and batch.key not in self._fold.decided_keys:
            # Many comparisons would block the event loop. Only valid if nothing is written meanwhile.
            deciding = self._deciding(batch, self._fold.version + 1)
            prepared = await anyio.to_thread.run_sync(deciding.decide)
        outcome = await self._write(compose)
        if outcome.repeated and (recorded := await self.find_batch(outcome.entry)) is not None:
            return parse_outcome(recorded)
        return outcome

    def _deciding(self, batch: ProposalBatch, entry: int) -> BatchDecider:
        return BatchDecider(
            self._fold,
            batch,
            now=self.clock.now(),
            entry=entry,
            radius=self.blast_radius,
            gate=self.gate,
        )

    async def pause(self, *, paused: bool) -> bool:
        """Pause or resume learning; return False if that was the state already."""

        def compose(_: int) -> tuple[list[TapeEntry], bool]:
            if self._fold.paused == paused:
                return [], False
            return [pause_entry(paused=paused)], True

        return await self.append_change(compose)

    async def change(
        self, make: Callable[[int], Change[T]], cause: str = "", **meta: Any
    ) -> T | None:
        """Record a change of the compartments, decided on the tape's version; None if its cause was before.

        ``make`` may be called more than once.

        Raises:
            TapeWriteError: The storage failed; nothing was changed.
        """

        def compose(version: int) -> tuple[list[TapeEntry], T | None]:
            if cause and cause in self._fold.decided_keys:
                return [], None
            made = make(version)
            if made.data is None:
                return [], made.result
            data = {**made.data, "key": cause} if cause else made.data
            return [bus_entry(data, **meta), *made.more], made.result

        return await self.append_change(compose)

    async def changed_by(self, cause: str, kind: str) -> dict[str, Any]:
        """Return the first record of a kind that a cause changed; empty if there is none."""
        at = self._fold.decided_keys.get(cause, 0)
        entries = await self.tape.read_entries(at, at) if at else []
        records = entries[0].data.get(kind) if entries else None
        found = records if isinstance(records, list) else []
        return next((one for one in found if isinstance(one, dict)), {})

    async def append_change(self, compose: Callable[[int], tuple[list[TapeEntry], T]]) -> T:
        """Append what ``compose`` returns for the tape's version; it may be called more than once.

        Raises:
            TapeWriteError: The storage failed; nothing was changed.
        """
        await self._ready()
        return await self._write(compose)

    async def undo_batch(self) -> ProposalBatch | None:
        """Return a batch that undoes the newest change; None if there is none.

        After one undo, the next goes further back; none goes past a link.
        """
        await self.open()
        taken: set[int] = set()
        async with aclosing(self.changes()) as entries:
            async for entry in entries:
                at = entry.id
                if (undone := undone_batch_id(entry)) is not None:
                    taken.add(undone)
                elif is_undo_barrier(entry) or (at not in taken and changes_something(entry)):
                    undoing = await self.undo_of(entry)
                    return ProposalBatch(f"undo:{at}", "undo", undoing, undone_entry=at)
        return None

    async def changes(self, last: int | None = None) -> AsyncGenerator[TapeEntry, None]:
        """Yield the entries that changed the scope, newest first, from the last or a given one on."""
        for at in self._fold.changes_back(last):
            for entry in await self.tape.read_entries(at, at):
                yield entry

    async def undo_of(self, entry: TapeEntry) -> tuple[Proposal, ...]:
        """Return the proposals that undo a recorded batch."""
        return inverse_proposals(entry, await load_facts(self.tape, entry.id - 1))

    async def find_batch(self, entry: int) -> TapeEntry | None:
        """Return the entry that records a batch; None if there is none."""
        entries = await self.tape.read_entries(entry, entry) if entry else []
        return entries[0] if entries and entries[0].name == FACTS_EVENT else None

    async def _ready(self) -> None:
        if not self._opened:
            await self.tape.ensure_bootstrap_anchor()
        await self.open()

    async def _write(self, compose: Callable[[int], tuple[list[TapeEntry], T]]) -> T:
        # The owner of a shared fold updates it.
        attempts = 1 if self._shared else MAX_ATTEMPTS
        return await append_with_retry(self.tape, self._fold, compose, self.open, attempts=attempts)


async def load_facts(tape: TapeService, last: int | None = None) -> FactFold:
    """Return a tape's facts and compartments as of an entry, by default the newest.

    Raises:
        TapeNotFound: There is no such tape.
    """
    if not is_shared_scope(tape.name):
        return (await load_fold(tape, last)).facts
    return (await fold_tape(tape.store, tape.name, FactFold, last, past=True)).fold
