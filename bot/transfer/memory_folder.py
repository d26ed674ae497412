"""Keep every conversation's ``MEMORY.md`` and ``HISTORY.md`` up to date in a folder.

Rule 1: the tapes are the memory. The files are generated from them, overwritten, and never read.
Rule 2: a conversation's folder holds its own facts, and nothing of another scope.
Rule 3: before content is erased from a tape, the files generated from it are removed; they are
    written again after the erasure. So no file holds erased content, even after a crash.
Rule 4: a write error affects only its own file, and is retried at the next change.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Collection
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import tzinfo
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import anyio.to_thread
from filelock import FileLock, Timeout

from bot.core.clock import Clock
from bot.core.errors import TapebotError, TapeNotFound, TapeWriteError
from bot.core.files import (
    PRIVATE_FILE,
    disk_error_text,
    list_files,
    private_directory,
    replace_file,
    sync_directory,
)
from bot.core.i18n import _
from bot.memory.records.event_names import (
    HISTORY_EVENT,
)
from bot.memory.records.fact_fold import FACTS_EVENT, FactFold, fold_entries
from bot.memory.session.linking.scope_registry import (
    WORKSPACE_SCOPE,
    ScopeRegistry,
    is_shared_scope,
)
from bot.memory.session.long_term_memory import resolve_home
from bot.memory.session.scope.identities import IDENTITIES_TAPE
from bot.memory.session.scope.scope_memory import load_fact_entries
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.fold_loader import load_state
from bot.memory.session.state.session_fold import SCOPE_EVENT, SessionFold
from bot.memory.session.state.zone_snapshot import (
    LONG_TERM_EVENT,
)
from bot.tape.batches import read_batches
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService
from bot.tape.store import TapeStore
from bot.transfer.memory_archive import history_pieces
from bot.transfer.memory_markdown import NOTICE, memory_md

logger = logging.getLogger(__name__)

MEMORY_FILE, HISTORY_FILE = "MEMORY.md", "HISTORY.md"

_STATE = ".tapebot.json"
_LOCK = ".tapebot.lock"
_FORM = 1
_LONGEST_NAME = 150

_LINGER = 0.5
"""Seconds to wait for further changes."""

_LOCK_PAUSE = 0.05
"""Seconds between attempts to lock a folder that another process is writing."""


def folder_name(session: str) -> str:
    """Return a readable folder name that is no path and that no other session has.

    That also holds on case-insensitive file systems.
    """
    name = quote(session, safe="", errors="surrogatepass")
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    if len(name) > _LONGEST_NAME or session != session.lower() or "~" in session:
        digest = sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        name = f"{name[:_LONGEST_NAME]}~{digest}"
    return name


def changes_files(entry: TapeEntry) -> bool:
    """Return whether an entry may change the files generated from its tape."""
    if entry.kind == "event":
        return entry.name in (FACTS_EVENT, HISTORY_EVENT, SCOPE_EVENT, LONG_TERM_EVENT)
    return entry.is_reset


@dataclass(frozen=True, slots=True)
class _State:
    """What the files of one conversation were generated from.

    Attributes:
        session: The session's key.
        home: The tape of its facts.
        versions: Versions of the tapes that the files depend on.
        files: Size and modification time of each file, to detect changes and removals.
        timezone: Timezone of the dates in the files.
        form: Version of the files' format.
    """

    session: str
    home: str
    versions: dict[str, int]
    files: dict[str, list[int]]
    timezone: str
    form: int = _FORM


class MemoryFolder:
    """Update the files in the background.

    Args:
        folder: The folder; created if it does not exist. Several processes may share it.
        store: The tape store.
        scopes: Resolves the scope of a session's facts.
        timezone: Timezone of the dates in ``HISTORY.md``.
        clock: Source of delays.
    """

    def __init__(
        self, folder: Path, store: TapeStore, scopes: ScopeRegistry, timezone: tzinfo, clock: Clock
    ) -> None:
        self._folder = folder
        self._store = store
        self._scopes = scopes
        self._timezone = timezone
        self._clock = clock
        self._lock = FileLock(folder / _LOCK, mode=PRIVATE_FILE, thread_local=False)
        self._alone_here = anyio.Lock()
        self._passing = anyio.Lock()
        self._wake = anyio.Event()
        self._waiting: dict[str, None] = {}
        self._homes: dict[str, str] = {}
        self._listed = False
        self._failing = False

    # Notifications.

    def add_entry(self, tape: str, entry: TapeEntry) -> None:
        """Note an entry that was appended to a tape; does no I/O."""
        if changes_files(entry):
            self.mark_stale(tape)

    def mark_stale(self, tape: str) -> None:
        """Note that files generated from a tape may be outdated; does no I/O."""
        if is_shared_scope(tape) and tape != WORKSPACE_SCOPE:
            found = [session for session, home in self._homes.items() if home == tape]
            self._waiting.update(dict.fromkeys(found))
        else:
            self._waiting[tape] = None
        self._wake.set()

    @asynccontextmanager
    async def suspend(self, tapes: Collection[str]) -> AsyncGenerator[None, None]:
        """Remove the files generated from these tapes, and write none until the context ends.

        Raises:
            TapeWriteError: The files could not be removed, so nothing must be erased.
        """
        async with AsyncExitStack() as held:
            try:
                await held.enter_async_context(self._alone())
                removed = await anyio.to_thread.run_sync(self._remove_of, frozenset(tapes))
            except OSError as error:
                logger.warning("the memory files in %s cannot be removed: %s", self._folder, error)
                raise TapeWriteError(
                    _(
                        "nothing was erased: the files made from this memory cannot be removed "
                        "({disk_error_text}). Fix that, then try again",
                        disk_error_text=disk_error_text(error),
                    )
                ) from error
            try:
                yield
            finally:
                self._waiting.update(dict.fromkeys(removed))
                for tape in tapes:
                    self.mark_stale(tape)

    async def erased_elsewhere(self, tape: str) -> None:
        """Rewrite the files generated from a tape after another process erased something from it.

        Raises:
            TapeWriteError: The files could not be removed.
        """
        async with self.suspend([tape]):
            pass

    # Background work.

    async def run(self) -> None:
        """Update all files, and keep them up to date until cancelled."""
        while True:
            self._wake = anyio.Event()
            await self.flush()
            await self._wake.wait()
            await self._clock.sleep(_LINGER)

    async def flush(self) -> None:
        """Write outdated files now; those that fail wait for the next change."""
        async with self._passing:
            failed: dict[str, OSError] = {}
            try:
                await self._list()
            except OSError as error:
                failed[""] = error
            except TapebotError as error:
                logger.warning("the conversations cannot be listed: %s", error)
            while self._waiting:
                session = next(iter(self._waiting))
                del self._waiting[session]
                if session in failed:
                    break
                try:
                    await self._update(session)
                except OSError as error:
                    failed[session] = error
                except TapebotError as error:
                    logger.warning("the memory files of %s are not current: %s", session, error)
                except BaseException:
                    self._waiting[session] = None
                    raise
            failing = bool(failed)
            if failing and not self._failing:
                first = next(iter(failed.values()))
                logger.warning(
                    "the memory files in %s cannot be written (%s); retrying at the next change",
                    self._folder,
                    disk_error_text(first),
                )
            elif self._failing and not failing:
                logger.info("the memory files in %s can be written again", self._folder)
            self._failing = failing
            self._waiting.update(dict.fromkeys(one for one in failed if one))

    async def _list(self) -> None:
        """List all conversations once, and remove the files of those that no longer exist."""
        if self._listed:
            return
        tapes = [
            one
            for one in await self._store.list_tapes()
            if one == WORKSPACE_SCOPE or not is_shared_scope(one)
        ]
        known = {folder_name(tape) for tape in tapes}
        if await anyio.to_thread.run_sync(self._folder.is_dir):
            async with self._alone():
                await anyio.to_thread.run_sync(self._remove_unknown, known)
        self._waiting.update(dict.fromkeys(tapes))
        self._listed = True

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None, None]:
        """Lock the folder against other tasks and processes.

        Raises:
            OSError: The folder cannot be used.
        """
        async with self._alone_here:
            while True:
                try:
                    await anyio.to_thread.run_sync(self._acquire)
                except Timeout:
                    await anyio.sleep(_LOCK_PAUSE)
                else:
                    break
            try:
                yield
            finally:
                self._lock.release()

    def _acquire(self) -> None:
        private_directory(self._folder)
        self._lock.acquire(timeout=0)

    # One conversation.

    async def _update(self, session: str) -> None:
        """Update the files of one conversation.

        Raises:
            OSError: The folder cannot be read or written.
            TapebotError: The tapes cannot be read.
        """
        async with self._alone():
            into = self._folder / folder_name(session)
            state = await anyio.to_thread.run_sync(self._read_state, into)
            try:
                version = await self._store.version(session)
            except TapeNotFound:
                self._homes.pop(session, None)
                await anyio.to_thread.run_sync(_remove, into)
                return
            if state is not None and state.versions == await self._versions(session, state.home):
                self._homes[session] = state.home
                return
            known = state.versions.get(session, version + 1) if state is not None else version + 1
            tape, fold = TapeService(self._store, session), SessionFold(WindowFold(1, 1))
            if session != WORKSPACE_SCOPE:
                fold = await load_state(tape)
            home = self._homes[session] = await resolve_home(tape, fold.home_scope, self._scopes)
            # Read the versions before the content, so that a concurrent change is detected next
            # time.
            versions = await self._versions(session, home) | {session: version}
            facts = await self._facts(home)
            # Long-term memory in a zone that was written for another scope does not belong here.
            own = home == (fold.home_scope or session) and not facts.last_entry_id
            texts = {
                MEMORY_FILE: memory_md(facts.active(), fold.zone.snapshot.long_term if own else "")
            }
            if await self._has_history(session, known, version):
                parts = history_pieces(self._store, session, self._timezone)
                async with aclosing(parts):
                    texts[HISTORY_FILE] = b"".join([part async for part in parts]).decode()
            if HISTORY_FILE in texts and not any(texts.values()):
                await anyio.to_thread.run_sync(_remove, into)
                return
            fresh = _State(session, home, versions, {}, str(self._timezone))
            await anyio.to_thread.run_sync(_write, into, texts, fresh)

    async def _facts(self, home: str) -> FactFold:
        try:
            return fold_entries(await load_fact_entries(TapeService(self._store, home)))
        except TapeNotFound:
            return FactFold()

    async def _versions(self, session: str, home: str) -> dict[str, int]:
        found = {}
        for tape in (session, home, IDENTITIES_TAPE):
            try:
                found[tape] = await self._store.version(tape)
            except TapeNotFound:
                found[tape] = 0
        return found

    async def _has_history(self, session: str, known: int, version: int) -> bool:
        """Return whether history was added or dropped since a version of a tape."""
        if known > version:
            return True
        async with aclosing(read_batches(self._store, session, known + 1, version)) as parts:
            async for entries in parts:
                if any(entry.is_reset or entry.name == HISTORY_EVENT for entry in entries):
                    return True
        return False

    def _read_state(self, into: Path) -> _State | None:
        """Return what the files were generated from; None if they were changed or removed since."""
        state = _state_in(into)
        if state is None or (state.form, state.timezone) != (_FORM, str(self._timezone)):
            return None
        return state if state.files == _stamps(into) else None

    # Removing.

    def _remove_of(self, tapes: frozenset[str]) -> list[str]:
        """Remove the files generated from these tapes; return the known affected sessions."""
        removed = []
        for into in self._made():
            state = _state_in(into)
            # A crash may have come between the files and their state.
            if state is None or not tapes.isdisjoint((state.session, state.home)):
                _remove(into)
                removed += [state.session] if state is not None else []
        for tape in tapes:
            _remove(self._folder / folder_name(tape))
        return removed

    def _remove_unknown(self, known: Collection[str]) -> None:
        for into in self._made():
            if into.name not in known:
                _remove(into)

    def _made(self) -> list[Path]:
        """Return the folders created here; others may be beside them."""
        return sorted(
            state.parent
            for folder in list_files(self._folder, "*")
            for state in list_files(folder, f"{_STATE}*")
        )


def _state_in(into: Path) -> _State | None:
    """Return the state stored in a folder; None if it is incomplete or of another folder."""
    try:
        state = _State(**json.loads((into / _STATE).read_bytes()))
        return state if folder_name(state.session) == into.name and dict(state.versions) else None
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _stamps(into: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name in (MEMORY_FILE, HISTORY_FILE):
        try:
            stat = (into / name).lstat()
        except OSError:
            continue
        found[name] = [stat.st_size, stat.st_mtime_ns]
    return found


def _write(into: Path, texts: dict[str, str], state: _State) -> None:
    private_directory(into)
    if not (into / _STATE).exists():
        # From here on the folder counts as created here, even after a crash.
        replace_file(into / _STATE, b"{}")
    for name, text in texts.items():
        replace_file(into / name, f"{NOTICE}\n\n{text}".encode("utf-8", "backslashreplace"))
    made: dict[str, Any] = {**asdict(state), "files": _stamps(into)}
    replace_file(into / _STATE, json.dumps(made).encode())


def _remove(into: Path) -> None:
    """Remove the files written to a folder, the state last, and the folder if it is empty then."""
    if not into.is_dir():
        return
    for name in (MEMORY_FILE, HISTORY_FILE, _STATE):
        for path in (into / f"{name}.new", into / name):
            path.unlink(missing_ok=True)
    sync_directory(into)
    if not any(into.iterdir()):
        into.rmdir()
