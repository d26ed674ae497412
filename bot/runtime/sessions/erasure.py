"""Erase what a person wants forgotten, from all tapes that hold it and from running sessions.

Copies are erased first, then messages and beliefs, the request last. So after a kill the request is
still there, and the redelivered confirmation finds and erases the rest.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from bot.core.errors import (
    BusError,
    MemoryRefused,
    SessionBusy,
    TapeNotFound,
    TapeWriteError,
)
from bot.core.reasons import Reason, reason_of
from bot.memory.erasure.closure import Closure, ErasurePhase, SourceTape
from bot.memory.erasure.erasure_candidates import (
    CandidateCollector,
    ErasurePreview,
    visit_entries,
)
from bot.memory.erasure.erasure_messages import ErasureResult
from bot.memory.erasure.erasure_query import ErasureQuery
from bot.memory.erasure.erasure_requests import find_erasure_result, result_event
from bot.memory.erasure.persons_entries import blobs_in
from bot.memory.records.tombstones import entry_digest, is_erased, tombstone
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.scope.identities import is_shared_scope
from bot.memory.session.vector_index import VectorIndex
from bot.runtime.sessions.derived_files import (
    BUSY,
    DerivedFiles,
    EraseResidualFiles,
    suspend_files,
)
from bot.tape.entries import TapeEntry
from bot.tape.store import TapeStore

logger = logging.getLogger(__name__)

_MOST_AT_ONCE = 2_000_000
"""Characters of tombstones to collect before they are written."""


NoteErased = Callable[..., None]
"""Notes what is erased of a tape: ``ErasedList.note``."""

LockSession = Callable[[str], AbstractAsyncContextManager[None]]
"""Keeps a session from having a holder in another process: ``Bus.lock_session``."""


@dataclass(slots=True)
class Eraser:
    """Erases for one session.

    Attributes:
        collector: Collects what to erase.
        scopes: The scopes, and the sessions that have a worker in this process.
        lock_session: Keeps a session from having a holder in another process.
        erase_residual_files: Erases words outside tapes.
        vectors: Index of message vectors; None without one.
        files: Files derived from tapes; None without any.
        note: Writes ids to the list that restored backups obey; None without one.
    """

    collector: CandidateCollector
    scopes: ScopeRegistry
    lock_session: LockSession
    erase_residual_files: EraseResidualFiles
    vectors: VectorIndex | None = None
    files: DerivedFiles | None = None
    note: NoteErased | None = None
    _closure: Closure | None = None
    _waiting: dict[str, list[TapeEntry]] = field(default_factory=dict)
    _size: int = 0
    _changed: int = 0

    @property
    def _store(self) -> TapeStore:
        return self.collector.store

    async def erase(
        self, query: ErasureQuery, request: TapeEntry, shown: tuple[frozenset[int], int]
    ) -> ErasureResult | ErasurePreview:
        """Erase what a request asks for, physically.

        Args:
            query: The parsed request.
            request: The request's entry on the session's tape.
            shown: Ids of the facts, and the number of messages, that the person has confirmed.

        Returns:
            What was erased; or a new preview, and nothing was erased, if much more would be erased
            than was confirmed.

        Raises:
            MemoryRefused: A running job would write the words again; nothing was erased.
            TapeError: The storage refused; a repeated request continues from there.
        """
        doors = self.scopes.session_locks
        async with doors.erasure_lock:
            preview = await self.collector.collect(query, request)
            facts, messages = shown
            found = {fact.id for fact in preview.facts}
            if not found <= facts or preview.message_count > messages + max(3, messages // 2):
                return preview
            names = {source.name for source in preview.sources}
            async with doors.erase_lock(names), self._lock_sessions(names):
                self._cancel_background_work(preview)
                async with suspend_files(self.files, names):
                    return await self._erase(preview, request, shown)

    @asynccontextmanager
    async def _lock_sessions(self, tapes: Collection[str]) -> AsyncIterator[None]:
        """Keep workers of other processes off these tapes: they would write from their old state.

        Scopes have no worker; their readers notice erasures.

        Raises:
            MemoryRefused: A session is at work in another process.
        """
        async with AsyncExitStack() as kept:
            for tape in sorted(tapes):
                if not is_shared_scope(tape):
                    try:
                        await kept.enter_async_context(self.lock_session(tape))
                    except SessionBusy as error:
                        raise MemoryRefused(BUSY) from error
                    except BusError as error:
                        why = Reason("nothing_erased", error=reason_of(error))
                        raise TapeWriteError(why) from error
            yield

    def _cancel_background_work(self, preview: ErasurePreview) -> None:
        """Cancel background work on these tapes.

        Raises:
            MemoryRefused: A turn or ``/new`` runs.
        """
        own = {source.name: source.own for source in preview.sources}
        touched = [
            active_session
            for active_session in self.scopes.active_sessions.values()
            if active_session.key in own
        ]
        if any(active_session.is_busy and own[active_session.key] for active_session in touched):
            raise MemoryRefused(BUSY)
        for active_session in touched:
            active_session.cancel_background_work()

    async def drop_request(self, request: TapeEntry, query: ErasureQuery) -> None:
        """Erase a request that matched nothing; it alone holds the words."""
        tape = self.collector.memory.tape.name
        async with self.scopes.session_locks.erasure_lock:
            await self.erase_residual_files(query.telling_words(), ())
            if not is_erased(request):
                await self._store.erase(tape, [tombstone(request)])
            await self._reload({tape})

    async def _erase(
        self, preview: ErasurePreview, request: TapeEntry, shown: tuple[frozenset[int], int]
    ) -> ErasureResult:
        plan, sources = preview.closure, preview.sources
        self._closure = plan
        memory = self.collector.memory
        unused = await self._unused_blobs(plan.blobs, plan, sources)
        # Before the entries that refer to them: after a kill nothing else would.
        if unused and self.note is not None:
            self.note(memory.tape.name, blobs=unused)
        places = await self.erase_residual_files((), unused) if unused else 0
        later, seen = await self._erase_repeated(plan, sources, {})
        places += self._changed
        words = plan.lines | ({*plan.query.telling_words()} if plan.takes_all else set())
        places += await self.erase_residual_files(sorted(words), ())
        for phase in (ErasurePhase.SAID, ErasurePhase.BELIEVED):
            await self._erase_all(plan, later[phase])
        seen = await self._erase_later(plan, sources, seen)
        numbers = tuple(sorted(shown[0] | {fact.id for fact in preview.facts}))
        said = max(shown[1], preview.message_count)
        erased = ErasureResult(
            numbers,
            said,
            places,
            preview.not_permitted_count,
            preview.affected_records,
            plan.file_count,
        )
        if await find_erasure_result(memory, request.id) is None:
            await memory.home.tape.ensure_bootstrap_anchor()
            await memory.home.tape.append(result_event(memory, request.id, erased))
        await self._erase_all(plan, later[ErasurePhase.REQUESTED])
        await self._reload(_tape_names(preview))
        changed = self._changed
        await self._erase_later(plan, sources, seen)
        if self._changed > changed:
            await self._reload(_tape_names(preview))
        await memory.refresh()
        return erased

    async def _erase_later(
        self, plan: Closure, sources: Iterable[SourceTape], seen: dict[str, int]
    ) -> dict[str, int]:
        """Erase what a session with the words in its state has written meanwhile."""
        later, read = await self._erase_repeated(plan, sources, seen)
        for phase in (ErasurePhase.SAID, ErasurePhase.BELIEVED):
            await self._erase_all(plan, later[phase])
        return read

    async def _erase_repeated(
        self, plan: Closure, sources: Iterable[SourceTape], seen: dict[str, int]
    ) -> tuple[dict[ErasurePhase, list[tuple[SourceTape, int]]], dict[str, int]]:
        """Erase copies; return by phase what to erase later, and how far each tape was read."""
        later: dict[ErasurePhase, list[tuple[SourceTape, int]]] = {
            phase: [] for phase in ErasurePhase
        }
        read: dict[str, int] = {}
        for source in sources:
            first = seen.get(source.name, 0) + 1
            last = await self._version(source.name)
            while first <= last:
                through = min(last, first + 499)
                look = partial(self._collect, plan, source, later)
                await visit_entries(self._store, source.name, look, first, through)
                await self._flush(_MOST_AT_ONCE)
                first = through + 1
            await self._flush(0)
            read[source.name] = last
        return later, read

    def _collect(
        self,
        plan: Closure,
        source: SourceTape,
        later: dict[ErasurePhase, list[tuple[SourceTape, int]]],
        entry: TapeEntry,
    ) -> None:
        found = plan.replacement(source, entry)
        if found is None:
            return
        phase, fresh = found
        if phase is ErasurePhase.REPEATED:
            self._add_tombstone(source.name, fresh)
        else:
            later[phase].append((source, entry.id))

    def _add_tombstone(self, tape: str, fresh: TapeEntry) -> None:
        self._waiting.setdefault(tape, []).append(fresh)
        self._size += len(str(fresh.payload))

    async def _erase_all(self, plan: Closure, places: Iterable[tuple[SourceTape, int]]) -> None:
        # The home last: after a kill, what is there still identifies the copies elsewhere.
        for source, number in sorted(places, key=lambda one: one[0].name == plan.home):
            for entry in await self._store.read(source.name, number, number):
                if (found := plan.replacement(source, entry)) is not None:
                    self._add_tombstone(source.name, found[1])
            await self._flush(_MOST_AT_ONCE)
        await self._flush(0)

    async def _flush(self, most: int) -> None:
        """Write the collected tombstones if they exceed this size in characters."""
        if self._size <= most:
            return
        waiting, self._waiting, self._size = self._waiting, {}, 0
        for tape, tombstones in waiting.items():
            ids = [entry.id for entry in tombstones]
            self._note_erased(tape, tombstones)
            # Before the tape as well: after a kill nothing would show that vectors remain.
            await self._drop_vectors(tape, ids)
            self._changed += await self._store.erase(tape, tombstones)
            await self._drop_vectors(tape, ids)

    def _note_erased(self, tape: str, fresh: Sequence[TapeEntry]) -> None:
        """Write to the list that restored backups obey what is erased next."""
        if self.note is None or self._closure is None:
            return
        records = self._closure.erased_records(tape)
        try:
            self.note(
                tape,
                ids=[entry.id for entry in fresh if is_erased(entry)],
                parts={entry.id: entry_digest(entry) for entry in fresh if not is_erased(entry)},
                facts=records.facts,
                beliefs=records.beliefs,
                quotes=records.quotes,
            )
        except OSError as error:
            raise TapeWriteError(Reason("nothing_erased", error=str(error))) from error

    async def _drop_vectors(self, tape: str, ids: Collection[int]) -> None:
        if self.vectors is None:
            return
        try:
            await self.vectors.erase(tape, ids)
        except OSError as error:
            raise TapeWriteError(
                Reason("vectors_not_erased", tape=tape, error=error.strerror)
            ) from error

    async def _unused_blobs(
        self, blobs: Collection[str], plan: Closure, sources: Iterable[SourceTape]
    ) -> list[str]:
        """Return the blobs that no entry on any tape refers to after the erasure."""
        left = set(blobs)
        erased_from = {source.name: source for source in sources}

        def look(tape: str, entry: TapeEntry) -> None:
            used = blobs_in(entry) & left
            if used and (source := erased_from.get(tape)) is not None:
                found = plan.replacement(source, entry)
                used &= blobs_in(entry if found is None else found[1])
            left.difference_update(used)

        if left:
            for tape in await self._store.list_tapes():
                await visit_entries(self._store, tape, partial(look, tape))
        return sorted(left)

    async def _version(self, tape: str) -> int:
        try:
            return await self._store.version(tape)
        except TapeNotFound:
            return 0

    async def _reload(self, tapes: Collection[str]) -> None:
        for scope in self.scopes.open_scopes():
            # A shared scope need not have a tape.
            if scope.name in tapes:
                async with scope.tape.block_writes():
                    await scope.reload()
        for active_session in list(self.scopes.active_sessions.values()):
            if active_session.key in tapes:
                await active_session.reload()


def _tape_names(preview: ErasurePreview) -> set[str]:
    return {source.name for source in preview.sources}
