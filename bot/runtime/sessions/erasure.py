"""Erase what a person wants forgotten, from all tapes that hold it and from running sessions.

Copies are erased first, then messages and beliefs, the request last. So after a kill the request is
still there, and the redelivered confirmation finds and erases the rest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from bot.core.errors import (
    BusError,
    MemoryRefused,
    SessionBusy,
    TapeNotFound,
    TapeWriteError,
)
from bot.core.reasons import Reason, reason_of
from bot.memory.erasure.closure import Closure, ErasurePhase
from bot.memory.erasure.erasure_candidates import CandidateCollector, visit_entries
from bot.memory.erasure.erasure_messages import ErasureResult, count_records
from bot.memory.erasure.erasure_query import ErasureQuery
from bot.memory.erasure.erasure_requests import find_erasure_result, result_event
from bot.memory.erasure.persons_entries import blobs_in
from bot.memory.erasure.text_matcher import TextMatcher
from bot.memory.records.tombstones import entry_digest, is_erased, tombstone, written_at
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

_MOST_AT_ONCE = 2_000_000
"""Characters of tombstones to collect before they are written."""

_PORTION = 500
"""Entries to look at before the size of what was collected is."""

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

    @property
    def _store(self) -> TapeStore:
        return self.collector.store

    async def erase(
        self, query: ErasureQuery, request: TapeEntry, shown: tuple[frozenset[int], int]
    ) -> ErasureResult | Closure:
        """Erase what a request asks for, physically.

        Args:
            query: The parsed request.
            request: The request's entry on the session's tape.
            shown: Ids of the facts, and the number of messages, that the person has confirmed.

        Returns:
            What was erased; or what would be, and nothing was erased, if that is much more than was
            confirmed.

        Raises:
            MemoryRefused: A running job would write the words again; nothing was erased.
            TapeError: The storage refused; a repeated request continues from there.
        """
        doors = self.scopes.session_locks
        async with doors.erasure_lock:
            found = await self.collector.collect(query, request)
            facts, messages = shown
            if not {fact.id for fact in found.home_facts()} <= facts:
                return found
            if len(found.counted()) > messages + max(3, messages // 2):
                return found
            tapes = {*found.tapes}
            async with doors.erase_lock(tapes), self._lock_sessions(tapes):
                self._cancel_background_work(found)
                async with suspend_files(self.files, tapes):
                    return await self._erase(found, shown)

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

    def _cancel_background_work(self, found: Closure) -> None:
        """Cancel background work on these tapes.

        Raises:
            MemoryRefused: A turn or ``/new`` runs.
        """
        sessions = [one for one in self.scopes.active_sessions.values() if one.key in found.tapes]
        if any(one.is_busy and found.tapes[one.key] for one in sessions):
            raise MemoryRefused(BUSY)
        for one in sessions:
            one.cancel_background_work()

    async def drop_request(self, request: TapeEntry, query: ErasureQuery) -> None:
        """Erase a request that matched nothing; it alone holds the words."""
        tape = self.collector.memory.tape.name
        async with self.scopes.session_locks.erasure_lock:
            await self.erase_residual_files(TextMatcher(query.needles), ())
            if not is_erased(request):
                if self.note is not None:
                    self.note(tape, ids=[request.id], newest=written_at(request))
                await self._store.erase(tape, [tombstone(request)])
            await self._reload({tape})

    async def _erase(self, found: Closure, shown: tuple[frozenset[int], int]) -> ErasureResult:
        memory, (tape, request) = self.collector.memory, found.request
        unused = await self._unused_blobs(found)
        # Before the entries that refer to them: after a kill nothing else would.
        if unused and self.note is not None:
            self.note(memory.tape.name, blobs=unused)
        places = await self.erase_residual_files(TextMatcher(), unused) if unused else 0
        seen = dict(found.seen)
        for phase in (ErasurePhase.REPEATED, ErasurePhase.SAID, ErasurePhase.BELIEVED):
            changed = await self._replace(found, phase, found.spans.get(phase, {}))
            if phase is ErasurePhase.REPEATED:
                places += changed + await self.erase_residual_files(found.matcher, ())
        await self._erase_since(found, seen)
        erased = ErasureResult(
            tuple(sorted(shown[0] | {fact.id for fact in found.home_facts()})),
            max(shown[1], len(found.counted())),
            places,
            len(found.not_permitted),
            count_records(found.records),
            found.file_count,
        )
        if await find_erasure_result(memory, request) is None:
            await memory.home.tape.ensure_bootstrap_anchor()
            await memory.home.tape.append(result_event(memory, request, erased))
        await self._replace(found, ErasurePhase.REQUESTED, {tape: (request, request)})
        await self._reload(found.tapes)
        if await self._erase_since(found, seen):
            await self._reload(found.tapes)
        await memory.refresh()
        return erased

    async def _erase_since(self, found: Closure, seen: dict[str, int]) -> int:
        """Erase what a session with the words in its state has written meanwhile; note how far."""
        ranges = {tape: (last + 1, await self._version(tape)) for tape, last in seen.items()}
        seen.update({tape: max(last, seen[tape]) for tape, (_, last) in ranges.items()})
        phases = (ErasurePhase.REPEATED, ErasurePhase.SAID, ErasurePhase.BELIEVED)
        return sum([await self._replace(found, phase, ranges) for phase in phases])

    async def _replace(
        self, found: Closure, phase: ErasurePhase, ranges: Mapping[str, tuple[int, int]]
    ) -> int:
        """Replace the entries of a phase in a range of each tape; return how many."""
        changed = 0
        fresh: list[TapeEntry] = []

        def collect(tape: str, entry: TapeEntry) -> None:
            new = found.replacement(tape, entry)
            fresh.extend([new[1]] if new is not None and new[0] is phase else ())

        # The home last: after a kill, what is there still identifies the copies elsewhere.
        for tape in sorted(ranges, key=lambda tape: tape == found.home):
            first, last = ranges[tape]
            for start in range(first, last + 1, _PORTION):
                through = min(last, start + _PORTION - 1)
                await visit_entries(self._store, tape, partial(collect, tape), start, through)
                size = sum(len(str(entry.payload)) for entry in fresh)
                if fresh and (size > _MOST_AT_ONCE or through == last):
                    changed += await self._write(found, tape, fresh)
                    fresh.clear()
        return changed

    async def _write(self, found: Closure, tape: str, fresh: list[TapeEntry]) -> int:
        ids, eraser = [entry.id for entry in fresh], found.eraser(tape)
        if self.note is not None:
            # What restored backups obey.
            try:
                self.note(
                    tape,
                    ids=[entry.id for entry in fresh if is_erased(entry)],
                    parts={
                        entry.id: entry_digest(entry) for entry in fresh if not is_erased(entry)
                    },
                    facts=eraser.facts,
                    beliefs=eraser.beliefs,
                    quotes=eraser.quotes,
                    newest=max(written_at(entry) for entry in fresh),
                )
            except OSError as error:
                raise TapeWriteError(Reason("nothing_erased", error=str(error))) from error
        # Before the tape as well: after a kill nothing would show that vectors remain.
        await self._drop_vectors(tape, ids)
        changed = await self._store.erase(tape, fresh)
        await self._drop_vectors(tape, ids)
        return changed

    async def _drop_vectors(self, tape: str, ids: Collection[int]) -> None:
        if self.vectors is None:
            return
        try:
            await self.vectors.erase(tape, ids)
        except OSError as error:
            raise TapeWriteError(
                Reason("vectors_not_erased", tape=tape, error=error.strerror)
            ) from error

    async def _unused_blobs(self, found: Closure) -> list[str]:
        """Return the blobs that no entry on any tape refers to after the erasure."""
        left = set(found.blobs)

        def look(tape: str, entry: TapeEntry) -> None:
            used = blobs_in(entry) & left
            if used and tape in found.tapes and (new := found.replacement(tape, entry)) is not None:
                used &= blobs_in(new[1])
            left.difference_update(used)

        for tape in await self._store.list_tapes() if left else ():
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
