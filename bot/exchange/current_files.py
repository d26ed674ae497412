"""``MEMORY.md`` and ``HISTORY.md`` of each conversation, kept current in a folder, to read and to grep.

Rule 1: the tapes are the truth: the files are written from them, and never read back.
Rule 2: a change is written within seconds; a change before a kill, at the next start.
Rule 3: nothing is written while something is erased, and files that hold erased words go before it is said that the
    words are gone.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import asdict, dataclass
from datetime import tzinfo
from pathlib import Path

import anyio
import anyio.to_thread

from bot.errors import TapeError, TapeNotFound
from bot.exchange.files import folder_name, replacing
from bot.exchange.memory_archive import history_pieces
from bot.exchange.remembering import remembering
from bot.files import private_directory, reason, sync_directory
from bot.memory.facts.fold import FACTS
from bot.memory.fold import SCOPE
from bot.memory.forgetting.plan import FORGOTTEN
from bot.memory.scopes import is_scope
from bot.memory.snapshot import HISTORY, LONG_TERM
from bot.tape.entries import TapeEntry
from bot.tape.portions import portions
from bot.tape.store import TapeStore

logger = logging.getLogger(__name__)

README = """\
What tapebot remembers, a folder for each conversation.

MEMORY.md    what it believes, a line each; of a private chat, what it knows of the person
HISTORY.md   what happened, as it was summed up, oldest first

tapebot writes these files anew whenever its memory changes, and never reads them: what is changed here is lost.
Tell it in the chat instead, or with `/memory add`, `/memory edit` and `/memory forget`.
"""

_RELEVANT = frozenset({FACTS, HISTORY, LONG_TERM, SCOPE, FORGOTTEN})
_LINGER = 1.0
_MARK = ".written.json"


@dataclass(frozen=True, slots=True)
class _Mark:
    """What a conversation's files were written from.

    Attributes:
        session: Its key.
        version: Its tape's last entry then.
        home: The tape of its facts.
        home_version: The last entry of that; 0 where there was none.
    """

    session: str
    version: int
    home: str
    home_version: int


class CurrentFiles:
    """Keeps the files of all conversations in a folder.

    Args:
        store: Holds the tapes.
        folder: The owner's choice; made if it is not there.
        timezone: Of the dates in ``HISTORY.md``.
        turn: Held by whoever erases or resets.
    """

    def __init__(self, store: TapeStore, folder: Path, timezone: tzinfo, turn: anyio.Lock) -> None:
        self._store = store
        self._folder = folder
        self._timezone = timezone
        self._turn = turn
        self._changed: set[str] = set()
        self._marks: dict[str, _Mark] = {}
        self._woken = anyio.Event()
        self._refused = False

    def note(self, tape: str, entry: TapeEntry) -> None:
        """Take note of an entry that was appended to a conversation's tape or a scope's."""
        if _is_relevant(entry):
            self.note_change(tape)

    def note_change(self, tape: str) -> None:
        """Take note that what is remembered on a tape has changed."""
        self._changed.add(tape)
        self._woken.set()

    async def run(self) -> None:
        """Write what is outdated, then what changes, until cancelled."""
        await self._catch_up()
        while True:
            await self._woken.wait()
            await anyio.sleep(_LINGER)
            self._woken = anyio.Event()
            changed, self._changed = self._changed, set()
            for session in sorted(self._concerned(changed)):
                if not await self._keep(session):
                    # It is tried again with the next change.
                    self._changed.add(session)

    def remove(self, has_to_go: Callable[[Path], bool]) -> int:
        """Remove files; they are written anew once whoever erases is done. Blocking.

        Args:
            has_to_go: Given a file, says whether it holds what is erased.

        Returns:
            How many were removed.

        Raises:
            OSError: The storage refused.
        """
        gone = 0
        for session, mark in list(self._marks.items()):
            of_session = self._folder / folder_name(session)
            for path in (of_session / "MEMORY.md", of_session / "HISTORY.md"):
                if path.is_file() and not path.is_symlink() and has_to_go(path):
                    path.unlink(missing_ok=True)
                    sync_directory(of_session)
                    self._changed.add(mark.session)
                    gone += 1
        return gone

    def _concerned(self, changed: set[str]) -> set[str]:
        """Return the conversations whose files are made of these tapes."""
        sessions = {tape for tape in changed if not is_scope(tape)}
        return sessions | {one.session for one in self._marks.values() if one.home in changed}

    async def _catch_up(self) -> None:
        try:
            await anyio.to_thread.run_sync(self._begin)
            names = [name for name in await self._store.list_tapes() if not is_scope(name)]
        except (OSError, TapeError) as error:
            self._tell(error)
            return
        for session in names:
            mark = await anyio.to_thread.run_sync(self._read_mark, session)
            if mark is not None:
                self._marks[session] = mark
            if mark is None or await self._is_outdated(mark):
                await self._keep(session)

    def _begin(self) -> None:
        private_directory(self._folder)
        with replacing(self._folder / "README.txt") as file:
            file.write(README.encode())

    async def _is_outdated(self, mark: _Mark) -> bool:
        """Say whether anything on its tapes changed what is remembered since the files were written."""
        of_session = self._folder / folder_name(mark.session)
        if not (of_session / "MEMORY.md").exists() or not (of_session / "HISTORY.md").exists():
            return True
        for tape, known in ((mark.session, mark.version), (mark.home, mark.home_version)):
            try:
                async with aclosing(portions(self._store, tape, known + 1)) as parts:
                    async for entries in parts:
                        if any(map(_is_relevant, entries)):
                            return True
            except TapeNotFound:
                continue
            except TapeError as error:
                self._tell(error)
        return False

    async def _keep(self, session: str) -> bool:
        """Write a conversation's files; return whether that was possible."""
        try:
            async with self._turn:
                await self._write(session)
        except TapeNotFound:
            return True
        except (OSError, TapeError) as error:
            self._tell(error)
            return False
        self._refused = False
        return True

    async def _write(self, session: str) -> None:
        version = await self._store.version(session)
        known = await remembering(self._store, session)
        try:
            home_version = await self._store.version(known.home)
        except TapeNotFound:
            home_version = 0
        into = self._folder / folder_name(session)
        text = known.memory_md().encode("utf-8", "backslashreplace")
        await anyio.to_thread.run_sync(_put, into, "MEMORY.md", text)
        pieces = history_pieces(self._store, session, self._timezone)
        async with aclosing(pieces):
            history = b"".join([piece async for piece in pieces])
        await anyio.to_thread.run_sync(_put, into, "HISTORY.md", history)
        mark = _Mark(session, version, known.home, home_version)
        await anyio.to_thread.run_sync(_put, into, _MARK, json.dumps(asdict(mark)).encode())
        self._marks[session] = mark

    def _read_mark(self, session: str) -> _Mark | None:
        try:
            record = json.loads((self._folder / folder_name(session) / _MARK).read_bytes())
            mark = _Mark(
                str(record["session"]),
                int(record["version"]),
                str(record["home"]),
                int(record["home_version"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return mark if mark.session == session else None

    def _tell(self, error: OSError | TapeError) -> None:
        """Log a refusal, once until it works again."""
        if not self._refused:
            why = reason(error) if isinstance(error, OSError) else error
            logger.warning(
                "the memory files in %s are not current: %s; it is tried again with the next change",
                self._folder,
                why,
            )
        self._refused = True


def _is_relevant(entry: TapeEntry) -> bool:
    return entry.is_reset or (entry.kind == "event" and entry.name in _RELEVANT)


def _put(folder: Path, name: str, data: bytes) -> None:
    """Write a file whose content is another one by now."""
    path = private_directory(folder) / name
    if path.is_symlink() or not path.is_file() or path.read_bytes() != data:
        with replacing(path) as file:
            file.write(data)
