"""Keep the states of folds beside the index, so that opening a tape costs what is new on it.

Rule 1: a row is a state as of one entry, in a file of its own. It can be deleted at any time, and is
    thrown away at any doubt: damaged, written by another program, or not of the tape as it is.
Rule 2: no row holds what an erasure removed. Whoever erases first drops the rows that may hold it; until
    the erasure ends none is kept, and none ever that was folded from before its end. So a kill leaves none.
Rule 3: a row is read only if it was signed with the key beside the rows, and then it makes nothing but
    records and folds that this program has loaded.
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, is_dataclass
from datetime import date, datetime, time, timedelta, timezone
from enum import Enum
from functools import cache
from hashlib import blake2b, md5
from hmac import compare_digest
from io import BytesIO
from pathlib import Path
from shutil import rmtree
from threading import RLock
from typing import Any

import anyio.to_thread

import bot
from bot.core.errors import TapeWriteError
from bot.core.files import (
    PRIVATE_FILE,
    TEMPORARY_SUFFIX,
    list_files,
    private_directory,
    replace_file,
    sync_directory,
)

logger = logging.getLogger(__name__)

PAST = 4_096
"""Ids between two states of a tape's past that are kept."""

_KEY = ".key"
"""File beside the rows' folders: what tells who wrote them and of which server, and the key of their signatures."""

_SIGNATURE = 16
"""Bytes of a program's mark, of a key and of a signature."""

_MOST_HELD = 64
"""Most tapes with rows in memory."""

_PLAIN = frozenset({date, datetime, time, timedelta, timezone})


@dataclass(frozen=True, slots=True)
class FoldRow:
    """A kept state.

    Attributes:
        kind: Name of the fold's class.
        version: Id of the last entry that the state holds.
        checksum: Checksum of that entry.
        erasures: The tape's number of erasures when it was read; 0 where only this process erases.
    """

    kind: str
    version: int
    checksum: int
    erasures: int

    @property
    def name(self) -> str:
        """The name of the row's file."""
        return f"{self.kind}.{self.version}.{self.checksum}.{self.erasures}"


class FoldRows:
    """The rows of a store's tapes. Blocking, and safe to use in threads.

    Args:
        folder: Where they are kept, a folder a tape; None for memory.
        read_only: Another process writes them.
        shared: Whether other processes erase, so that a row counts only with the tape's erasures.
        server: Address of the server that has the tapes; rows of another's are removed.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        read_only: bool = False,
        shared: bool = False,
        server: str = "",
    ) -> None:
        self.shared = shared
        self._server = server
        self._folder = folder
        self._read_only = read_only
        self._held: OrderedDict[str, dict[str, bytes]] = OrderedDict()
        self._key = b""
        self._drops: Counter[str] = Counter()
        self._erasing: Counter[str] = Counter()
        self._erasures: dict[str, int] = {}
        self._lock = RLock()

    def drops(self, tape: str) -> int:
        """Return how often rows of a tape were dropped; see ``put``."""
        return self._drops[tape]

    def rows(self, tape: str, kind: str, last: int, erasures: int) -> list[FoldRow]:
        """Return the rows of a fold up to an entry, newest first."""
        try:
            rows = [*self._rows(tape)]
        except OSError as error:
            logger.warning("the kept states of %s cannot be read (%s)", tape, error.strerror)
            return []
        found = (row for row in rows if (row.kind, row.erasures) == (kind, erasures))
        return sorted((row for row in found if row.version <= last), key=_version, reverse=True)

    def get(self, tape: str, row: FoldRow) -> Any:
        """Return the state in a row; None if it is damaged or gone, and then it is thrown away."""
        data = self._held.get(tape, {}).get(row.name, b"")
        try:
            if self._folder is not None:
                with suppress(FileNotFoundError):
                    data = (self._place(tape) / row.name).read_bytes()
            if compare_digest(data[:_SIGNATURE], self._signature(data[_SIGNATURE:])):
                return _Reader(BytesIO(data[_SIGNATURE:])).load()
        except Exception as error:  # noqa: BLE001 (whatever bytes do, the tape is folded instead)
            logger.warning("a kept state of %s cannot be read (%s)", tape, error)
        self.discard(tape, row)
        return None

    def discard(self, tape: str, row: FoldRow) -> None:
        """Throw a row away; what cannot be removed stays."""
        with self._lock, suppress(OSError):
            self._remove(tape, [row])

    def put(self, tape: str, row: FoldRow, data: bytes, drops: int, past: bool) -> None:
        """Keep a state, as ``encode_state`` returned it, in place of older ones.

        Args:
            tape: The session's key.
            row: What it is.
            data: The state.
            drops: What ``drops`` returned before its entries were read; nothing is kept if that grew.
            past: Whether to keep older ones now and then.
        """
        with self._lock:
            if self._read_only or self._erasing[tape] or drops != self._drops[tape]:
                return
            if row.erasures < self._erasures.get(tape, 0):
                return
            try:
                data = self._signature(data) + data
                if self._folder is None:
                    self._held.setdefault(tape, {})[row.name] = data
                    self._held.move_to_end(tape)
                    if len(self._held) > _MOST_HELD:
                        self._held.popitem(last=False)
                else:
                    path = private_directory(self._place(tape)) / row.name
                    fresh = path.with_name(row.name + TEMPORARY_SUFFIX)
                    fresh.touch(PRIVATE_FILE)
                    fresh.write_bytes(data)
                    fresh.replace(path)
                self._remove(tape, _outdated([*self._rows(tape)], row, past=past))
            except OSError as error:
                logger.warning("the state of %s is not kept (%s)", tape, error.strerror)

    def drop(self, tape: str, first: int = 0) -> None:
        """Remove the rows that hold an entry from ``first`` on.

        Raises:
            OSError: They cannot be removed.
        """
        with self._lock:
            self._drops[tape] += 1
            self._drop(tape, [one for one in self._rows(tape) if one.version >= first])

    def drop_older(self, erasures: Mapping[str, int]) -> None:
        """Remove the rows of tapes from before so many erasures, and keep no such row again.

        Raises:
            OSError: They cannot be removed.
        """
        for tape, known in erasures.items():
            with self._lock:
                if self._erasures.get(tape) != known:
                    self._drop(tape, [one for one in self._rows(tape) if one.erasures != known])
                    self._erasures[tape] = known

    def _drop(self, tape: str, rows: list[FoldRow]) -> None:
        self._remove(tape, rows)
        if self._folder is not None and self._place(tape).exists() and not self._read_only:
            sync_directory(self._place(tape))

    @asynccontextmanager
    async def erasing(self, tape: str, first: int = 0) -> AsyncIterator[None]:
        """Keep no row with an entry from ``first`` on, which is erased in this block.

        Raises:
            TapeWriteError: They cannot be removed.
        """
        self._erasing[tape] += 1
        try:
            try:
                await anyio.to_thread.run_sync(self.drop, tape, first)
            except OSError as error:
                told = f"the kept states of tape {tape} cannot be removed: {error.strerror}"
                raise TapeWriteError(told) from error
            yield
        finally:
            with self._lock:
                self._drops[tape] += 1
                self._erasing[tape] -= 1

    def _rows(self, tape: str) -> Iterator[FoldRow]:
        names = [*self._held.get(tape, ())]
        if self._folder is not None:
            names = [path.name for path in list_files(self._place(tape), "*")]
        for name in names:
            kind, *rest = name.split(".")
            with suppress(ValueError):
                version, checksum, erasures = map(int, rest)
                yield FoldRow(kind, version, checksum, erasures)

    def _remove(self, tape: str, rows: list[FoldRow]) -> None:
        held = self._held.get(tape, {})
        for row in rows:
            held.pop(row.name, None)
        if self._folder is None or self._read_only:
            return
        place = self._place(tape)
        gone = [place / row.name for row in rows]
        # What a kill left half written.
        gone += list_files(place, f"*{TEMPORARY_SUFFIX}")
        for path in gone:
            path.unlink(missing_ok=True)

    def _place(self, tape: str) -> Path:
        assert self._folder is not None
        name = tape.encode("utf-8", "surrogatepass")
        return self._folder / md5(name, usedforsecurity=False).hexdigest()

    def _signature(self, data: bytes) -> bytes:
        with self._lock:
            self._key = self._key or self._read_key()
        return blake2b(data, key=self._key, digest_size=_SIGNATURE).digest()

    def _read_key(self) -> bytes:
        """Return the key; without one of this program, remove all rows and make one."""
        if self._folder is None:
            return os.urandom(_SIGNATURE)
        path = self._folder / _KEY
        mark = blake2b(self._server.encode(), key=_program(), digest_size=_SIGNATURE).digest()
        with suppress(FileNotFoundError):
            told = path.read_bytes()
            if told.startswith(mark) and len(told) == 2 * _SIGNATURE:
                return told
        made = mark + os.urandom(_SIGNATURE)
        if not self._read_only:
            rmtree(self._folder, ignore_errors=True)
            private_directory(self._folder)
            replace_file(path, made)
        return made


def encode_state(state: object) -> bytes:
    """Return a state for ``FoldRows.put``."""
    return pickle.dumps(state, protocol=5)


class _Reader(pickle.Unpickler):
    """Reads states, which consist of records and folds of this program, and of plain values."""

    def find_class(self, module: str, name: str) -> Any:
        # Nothing is imported: whoever asks for a state has loaded what it consists of.
        found = getattr(sys.modules.get(module), name, None)
        if isinstance(found, type) and found.__module__ == module:
            made = is_dataclass(found) or hasattr(found, "apply")
            own = module.startswith("bot.") and (made or issubclass(found, (Enum, str, tuple)))
            if own or found in _PLAIN:
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a state")


def _version(row: FoldRow) -> int:
    return row.version


def _outdated(rows: list[FoldRow], fresh: FoldRow, *, past: bool) -> list[FoldRow]:
    """Return the rows that a new one stands for; of the past, the first of each block stays."""
    rows = [one for one in rows if one.kind == fresh.kind]
    first: dict[int, int] = {}
    for one in sorted(rows, key=_version) if past else ():
        if one.erasures == fresh.erasures:
            first.setdefault(one.version // PAST, one.version)
    return [
        one
        for one in rows
        if one.erasures != fresh.erasures
        or (one.version < fresh.version and first.get(one.version // PAST) != one.version)
        or (one.version == fresh.version and one != fresh)
    ]


@cache
def _program() -> bytes:
    """Return what tells this program's folds from those of another version."""
    found = []
    waiting = [Path(bot.__file__).parent]
    while waiting:
        with os.scandir(waiting.pop()) as files:
            for file in files:
                if file.is_dir(follow_symlinks=False):
                    waiting.append(Path(file.path))
                elif file.name.endswith(".py"):
                    status = file.stat()
                    found.append((file.path, status.st_size, status.st_mtime_ns))
    return blake2b(repr(sorted(found)).encode(), digest_size=_SIGNATURE).digest()
