"""Index of message vectors for recall by meaning, kept up to date in the background.

The vectors are disposable: without them, or if their provider fails, recall goes by words only.
"""

from __future__ import annotations

import logging
import math
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from bot.core.clock import Clock, SystemClock
from bot.core.errors import (
    ContextOverflow,
    ModelError,
    ModelRejected,
    ModelUnavailable,
    TapeError,
    TapeNotFound,
)
from bot.core.i18n import _
from bot.llm.embeddings.base import Embedder, Vector
from bot.memory.records.evidence import is_local_only
from bot.memory.records.transcript import sent_time
from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL_PROBLEM, problem_of
from bot.tape.store import TapeStore

if TYPE_CHECKING:
    from bot.memory.session.vector_files import VectorFiles, VectorMatch, VectorRow

logger = logging.getLogger(__name__)
# for the parser
INSTALL_HINT = "pip install 'tapebot[embeddings]'"

_PORTION = 500
"""Entry ids read at once."""

_BATCH = 32
"""Texts per embedding call."""

MAX_TEXT_LENGTH = 2_000
"""Characters of a text that are embedded; words find the rest of long texts."""

_LINGER = 1.0
"""Seconds to wait for further changes before embedding."""

_PATIENCE = 1.0
"""Seconds that a query waits for pending embeddings."""

_LONGEST_ASKED = 3.0
"""Seconds that a query waits for its own vector."""

_FIRST_WAIT, _LONGEST_WAIT = 15.0, 600.0
"""Seconds without calls after a failure: first and longest; they double in between."""

_PROBE = "hello"


@dataclass(slots=True)
class _Tape:
    """Embedding progress on a tape.

    Attributes:
        place: Id of the last entry examined; None before the file was read.
        last: Id of the last entry with a vector; 0 if there is none.
        erased: Number of erasures.
    """

    place: int | None = None
    last: int = 0
    erased: int = 0
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class VectorIndex:
    """Find messages by meaning.

    Args:
        folder: Directory of the vector files, and of nothing else.
        source: The tape store.
        embedder: Computes vectors; the caller closes it.
        workspace: Workspace id: sessions of two workspaces may share a name.
        clock: Clock for waits.
        private: Whether the embedder runs on the owner's machine. If not, what was said in private
            problems is not embedded.
    """

    def __init__(
        self,
        folder: Path,
        source: TapeStore,
        embedder: Embedder,
        *,
        workspace: str = "",
        clock: Clock | None = None,
        private: bool = False,
    ) -> None:
        self.private = private
        self._folder = folder
        self._source = source
        self._embedder = embedder
        self._workspace = workspace
        self._clock = clock or SystemClock()
        self._made: VectorFiles | None = None
        self._tapes: dict[str, _Tape] = {}
        self._waiting: dict[str, None] = {}
        self._wake = anyio.Event()
        self._writing = anyio.Lock()
        self._wait = 0.0
        self._again = 0.0
        self._embedded = 0

    def mark_changed(self, tape: str) -> None:
        """Note that a tape may have new entries; cheap."""
        self._waiting[tape] = None
        self._wake.set()

    async def run(self) -> None:
        """Embed new messages on noted tapes until cancelled."""
        while True:
            self._wake = anyio.Event()
            if await self._all_waiting():
                await self._wake.wait()
                await self._clock.sleep(_LINGER)
            else:
                await self._clock.sleep(max(0.0, self._again - self._clock.monotonic()))

    async def catch_up(self, tape: str) -> None:
        """Embed all new messages on a tape; progress is kept if cancelled.

        Raises:
            ModelError: The provider fails.
            OSError: The files cannot be read or written; see also ``TapeError``.
        """
        state = self._tapes.setdefault(tape, _Tape())
        async with state.lock:
            try:
                version = await self._source.version(tape)
            except TapeNotFound:
                await self.discard(tape)
                return
            while (place := await self._place(tape, state)) != version:
                if place > version:
                    # The tape was restored or created again.
                    await self.discard(tape)
                else:
                    await self._portion(tape, state, place, min(version, place + _PORTION))

    async def nearest(
        self,
        tape: str,
        text: str,
        *,
        limit: int,
        since: datetime | None = None,
        before: int | None = None,
        skip: int = 0,
        problem: str | None = None,
    ) -> list[VectorMatch]:
        """Return the messages nearest in meaning, best first.

        Messages that cannot be embedded within a moment are not considered yet; while the provider fails, none
        are. ``skip`` is the id of an entry to leave out, such as the query itself. The problem, ``general`` for
        messages without one, is matched by checksum, so the caller must check the entry before showing it.
        """
        if self._clock.monotonic() < self._again:
            self.mark_changed(tape)
            return []
        try:
            if not await self._catch_up_in_a_moment(tape):
                return []
            files, vector = await self._files(), await self._embed_query(text)
            search = partial(
                files.nearest,
                tape,
                vector,
                limit=limit,
                since=since.timestamp() if since is not None else -math.inf,
                before=before if before is not None else math.inf,
                skip=skip,
                problem=_problem_sum(problem) if problem is not None else None,
            )
            vector_matches = await anyio.to_thread.run_sync(search)
            if vector_matches is None:
                await self.discard(tape)
                self.mark_changed(tape)
        except TapeError as error:
            logger.warning("tape %s cannot be embedded (%s)", tape, error)
            return []
        except (ModelError, OSError, TimeoutError) as error:
            self._failed(error)
            return []
        self._works()
        return vector_matches or []

    async def _embed_query(self, text: str) -> Vector:
        with anyio.fail_after(_LONGEST_ASKED):
            [vector] = await self._embedder.embed([text[:MAX_TEXT_LENGTH]])
        return vector

    async def _catch_up_in_a_moment(self, tape: str) -> bool:
        """Embed what is new, or leave it for later if that takes long; False without vectors."""
        with anyio.move_on_after(_PATIENCE) as patience:
            await self.catch_up(tape)
        if patience.cancelled_caught:
            self.mark_changed(tape)
        return bool(self._tapes[tape].last)

    async def erase(self, tape: str, ids: Collection[int]) -> None:
        """Erase the vectors of entries, on disk and in progress, once the tape erased their texts.

        Raises:
            OSError: The file cannot be written.
        """
        self._tapes.setdefault(tape, _Tape()).erased += 1
        files = await self._files()
        with anyio.CancelScope(shield=True):
            async with self._writing:
                await anyio.to_thread.run_sync(files.erase, tape, ids)

    async def purge_erased(self, tape: str) -> None:
        """Erase the vectors of texts that another process erased from the tape.

        Raises:
            TapeError: The tape cannot be read.
            ModelUnavailable: A package is missing.
            OSError: The file cannot be read or written.
        """
        # Texts being embedded were read before the erasure.
        self._tapes.setdefault(tape, _Tape()).erased += 1
        files = await self._files()
        held = await anyio.to_thread.run_sync(files.checksums, tape)
        ids = sorted(held)
        for start in range(0, len(ids), _PORTION):
            some = ids[start : start + _PORTION]
            entries = await self._source.read(tape, some[0], some[-1])
            there = {
                entry.id: text_checksum(text)
                for entry in entries
                if (text := embeddable_text(entry))
            }
            if gone := [one for one in some if there.get(one) != held[one]]:
                await self.erase(tape, gone)

    async def discard(self, tape: str) -> None:
        """Remove all vectors of a tape; its messages are embedded again.

        Raises:
            OSError: The file cannot be removed.
        """
        state = self._tapes.setdefault(tape, _Tape())
        files = await self._files()
        with anyio.CancelScope(shield=True):
            async with self._writing:
                state.place, state.last = None, 0
                state.erased += 1
                await anyio.to_thread.run_sync(files.remove, tape)

    def statistics(self) -> dict[str, Any]:
        """Return counts of embedded messages and waiting tapes, and if the provider fails."""
        return {
            "embedded": self._embedded,
            "behind": len(self._waiting),
            "failing": self._wait > 0,
        }

    async def _all_waiting(self) -> bool:
        """Embed new messages on all noted tapes; return False if the provider or a file fails."""
        tape = ""
        try:
            await self._files()
            while self._waiting:
                tape = next(iter(self._waiting))
                del self._waiting[tape]
                try:
                    await self.catch_up(tape)
                except TapeError as error:
                    # An unreadable tape must not keep others from being embedded.
                    logger.warning("tape %s cannot be embedded (%s)", tape, error)
        except (ModelError, OSError) as error:
            if tape:
                self._waiting[tape] = None
            self._failed(error)
            return False
        return True

    async def _files(self) -> VectorFiles:
        """Return the files, after removing those of other models on first use."""
        if self._made is None:
            self._made = await anyio.to_thread.run_sync(self._open)
        return self._made

    def _open(self) -> VectorFiles:
        # numpy is an optional dependency.
        try:
            from bot.memory.session.vector_files import VectorFiles
        except ImportError as error:
            raise ModelUnavailable(
                _("{library} is missing: {hint}", library=error.name, hint=INSTALL_HINT)
            ) from error
        files = VectorFiles(self._folder, self._workspace, self._embedder.name)
        files.remove_stale()
        return files

    async def _place(self, tape: str, state: _Tape) -> int:
        if state.place is None:
            files = await self._files()
            first, last = await anyio.to_thread.run_sync(files.ends, tape)
            if first and not await self._source.read(tape, first, first):
                # The tape was reset while the index was off; erasing would have kept the entry.
                await self.discard(tape)
                last = 0
            state.place = state.last = last
        return state.place

    async def _portion(self, tape: str, state: _Tape, place: int, upto: int) -> None:
        """Embed new messages up to an id; stop early if entries are erased meanwhile."""
        erased, files = state.erased, await self._files()
        entries = await self._source.read(tape, place + 1, upto)
        texts = (
            (entry, text)
            for entry in entries
            if (self.private or not is_local_only(entry)) and (text := embeddable_text(entry))
        )
        while batch := list(islice(texts, _BATCH)):
            made = await self._embed([text[:MAX_TEXT_LENGTH] for _, text in batch])
            rows = _rows(batch, made)
            async with self._writing:
                # The texts may have been erased since they were read.
                if state.erased != erased:
                    return
                if rows:
                    add = partial(files.add, tape, rows, behind=state.last)
                    if not await anyio.to_thread.run_sync(add):
                        # The file says from where to go on.
                        state.place = None
                        return
                    state.last = rows[-1].id
                state.place = batch[-1][0].id
            self._embedded += len(batch)
            self._works()
        if state.erased == erased:
            state.place = upto

    async def _embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Return a vector for each text; None for a text that the model rejects."""
        try:
            return list(await self._embedder.embed(texts))
        except (ModelRejected, ContextOverflow):
            # Texts are embedded one by one, after a check that the model accepts any at all.
            await self._embedder.embed([_PROBE])
        found: list[Vector | None] = []
        for text in texts:
            try:
                found += await self._embedder.embed([text])
            except (ModelRejected, ContextOverflow) as error:
                logger.info(
                    "a message cannot be embedded, so recall finds it by its words only: %s", error
                )
                found.append(None)
        return found

    def _failed(self, error: Exception) -> None:
        if not self._wait:
            told = str(error) or "no answer in time"  # for the log
            logger.warning("embeddings fail, so recall uses words only for now: %s", told)
        self._wait = min(max(_FIRST_WAIT, 2 * self._wait), _LONGEST_WAIT)
        self._again = self._clock.monotonic() + self._wait

    def _works(self) -> None:
        if self._wait:
            logger.info("embeddings work again")
        self._wait = self._again = 0.0


def embeddable_text(entry: TapeEntry) -> str:
    """Return the text of a message; empty for any other entry."""
    content = entry.payload.get("content") if entry.kind == "message" else None
    return content.strip() if isinstance(content, str) else ""


def text_checksum(text: str) -> int:
    """Return a checksum of a text."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def _rows(batch: Sequence[tuple[TapeEntry, str]], made: Sequence[Vector | None]) -> list[VectorRow]:
    from bot.memory.session.vector_files import VectorRow

    return [
        VectorRow(
            entry.id, _said(entry), text_checksum(text), _problem_sum(problem_of(entry)), vector
        )
        for (entry, text), vector in zip(batch, made, strict=True)
        if vector is not None
    ]


def _problem_sum(problem: str) -> int:
    return 0 if problem == GENERAL_PROBLEM else text_checksum(problem)


def _said(entry: TapeEntry) -> float:
    moment = sent_time(entry)
    return 0.0 if moment is None else moment.timestamp()
