"""Open the index's SQLite database, verify its file and lend connections. Blocking.

SQLite checksums its write-ahead log, but not the database file. So only explicit checkpoints change
the file, and each writes the file's digest beside it. A file that does not match its digest is not
used but rebuilt, since the index holds nothing that the tapes do not.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import count
from pathlib import Path
from threading import Lock

from bot.core.errors import TapeError
from bot.core.files import PRIVATE_FILE, sync_directory, write_synced

logger = logging.getLogger(__name__)

SCHEMA_VERSION = 2
"""Version of the tables and of the terms in them; a file of another version is rebuilt."""

ROWS_PER_LANE = 1 << 32
"""Rowids reserved for a tape's turns, followed by as many for its other documents: two lanes."""

CHECKPOINT_PAGES = 16_384
"""Pages in the write-ahead log after which a checkpoint is due."""

_FILES = ("", "-wal", "-shm")
"""Endings of the names of a database's files."""

_TABLES = """
CREATE TABLE about (version INTEGER NOT NULL);
CREATE TABLE tapes (
  id INTEGER PRIMARY KEY,
  name BLOB NOT NULL UNIQUE,
  indexed INTEGER NOT NULL,
  digest BLOB NOT NULL,
  turns INTEGER NOT NULL,
  others INTEGER NOT NULL,
  rows INTEGER NOT NULL
);
CREATE TABLE docs (
  id INTEGER PRIMARY KEY,
  entry INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  ts REAL NOT NULL,
  sender INTEGER NOT NULL,
  labels INTEGER NOT NULL,
  length INTEGER NOT NULL,
  terms TEXT NOT NULL
);
CREATE INDEX docs_by_labels ON docs (labels);
CREATE VIRTUAL TABLE words USING fts5(
  terms, content='docs', content_rowid='id', tokenize='ascii', columnsize=0
);
CREATE TABLE anchors (
  tape INTEGER NOT NULL,
  at INTEGER NOT NULL,
  entry INTEGER NOT NULL,
  name BLOB NOT NULL,
  ts BLOB NOT NULL,
  state BLOB NOT NULL,
  PRIMARY KEY (tape, at)
) WITHOUT ROWID;
CREATE TABLE senders (
  id INTEGER PRIMARY KEY,
  tape INTEGER NOT NULL,
  uid TEXT NOT NULL,
  name TEXT NOT NULL,
  UNIQUE (tape, uid, name)
);
CREATE TABLE labels (
  id INTEGER PRIMARY KEY,
  tape INTEGER NOT NULL,
  told BLOB NOT NULL,
  UNIQUE (tape, told)
);
CREATE TABLE vocabulary (term TEXT PRIMARY KEY, found INTEGER NOT NULL) WITHOUT ROWID;
"""


class IndexDatabase:
    """An open index database.

    Args:
        path: The file; None for a database in memory.

    Attributes:
        path: The file; None for a database in memory.
        fresh: Whether it was created anew: there was no file, or none that could be trusted.
        writer: The writing connection; None once the database is closed.
    """

    def __init__(self, path: Path | None) -> None:
        """Open the database; create it anew if the file cannot be trusted.

        Raises:
            TapeError: The database can be neither opened nor created.
        """
        self.path = path
        self._paths = [self._beside(suffix) for suffix in _FILES] if path is not None else []
        self._readers: list[sqlite3.Connection] = []
        self._guard = Lock()
        self._doubted = False
        self.fresh = False
        self.writer: sqlite3.Connection | None = None
        self._closed = True
        try:
            self._open()
            self._files = self._present()
            self._closed = False
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise TapeError(f"the index {path} cannot be used ({error})") from error

    @property
    def is_gone(self) -> bool:
        """Whether its files were removed or replaced by somebody else."""
        return self.path is not None and self._files != self._present()

    @contextmanager
    def reader(self) -> Iterator[sqlite3.Connection]:
        """Lend a reading connection; it sees one snapshot until it is returned."""
        if self.path is None:
            assert self.writer is not None
            with self._guard:
                yield self.writer
            return
        with self._guard:
            connection = self._readers.pop() if self._readers else None
        if connection is None:
            connection = _connect_reader(self.path)
        try:
            connection.execute("BEGIN")
            yield connection
            connection.execute("ROLLBACK")
        except BaseException:
            connection.close()
            raise
        with self._guard:
            if self._closed:
                connection.close()
            else:
                self._readers.append(connection)

    @contextmanager
    def write_transaction(self) -> Iterator[sqlite3.Connection]:
        """Lend the writing connection for one transaction."""
        assert self.writer is not None
        with self._guard if self.path is None else nullcontext():
            self.writer.execute("BEGIN IMMEDIATE")
            try:
                yield self.writer
            except BaseException:
                self.writer.execute("ROLLBACK")
                raise
            self.writer.execute("COMMIT")

    def wal_pages(self) -> int:
        """Return how many pages of the write-ahead log are not in the file yet."""
        if self.path is None:
            return 0
        try:
            return self._beside("-wal").stat().st_size // 4096
        except OSError:
            return 0

    def size(self) -> int:
        """Return how many bytes the database takes."""
        assert self.writer is not None
        [pages] = self.writer.execute("PRAGMA page_count").fetchone()
        return 4096 * int(pages)

    def checkpoint(self) -> None:
        """Move the write-ahead log into the file and write the file's digest."""
        if self.path is None or self.writer is None:
            return
        # No digest matches the file until the checkpoint is complete.
        self._digest_path().unlink(missing_ok=True)
        busy, *_ = self.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not (busy or self._doubted):
            self.mark_trusted()

    def mark_trusted(self) -> None:
        """Write the digest of the file as it is."""
        assert self.path is not None
        write_synced(self._digest_path(), _digest(self.path).encode())

    def mark_untrusted(self) -> None:
        """Make sure that the file, as it is or will become, is not trusted at the next start."""
        self._doubted = True
        if self.path is not None:
            self._digest_path().unlink(missing_ok=True)
            sync_directory(self.path.parent)

    def close(self, *, in_order: bool = False) -> None:
        """Close all connections.

        Args:
            in_order: Checkpoint first, so that the file is trusted at the next start.
        """
        with self._guard:
            self._closed = True
            while self._readers:
                self._readers.pop().close()
        if self.writer is not None:
            if in_order:
                with suppress(sqlite3.Error, OSError):
                    self.checkpoint()
            self.writer.close()
            self.writer = None

    def discard(self) -> None:
        """Close the database and remove its files."""
        self.close()
        if self.path is not None:
            _remove(self._digest_path())
            for suffix in _FILES:
                _remove(self._beside(suffix))

    def _present(self) -> list[tuple[int, int] | None]:
        """Return the device and inode of each of its files."""
        found: list[tuple[int, int] | None] = []
        for path in self._paths:
            try:
                status = path.stat()
            except OSError:
                found.append(None)
            else:
                found.append((status.st_dev, status.st_ino))
        return found

    def _open(self) -> None:
        if self.path is not None and not self._trusted():
            if self.path.exists():
                logger.warning("the index %s cannot be trusted; rebuilding it", self.path.name)
            self.discard()
        try:
            self.writer = self._connect()
        except sqlite3.DatabaseError as error:
            if self.path is None:
                raise
            logger.warning("the index %s cannot be read (%s); rebuilding it", self.path.name, error)
            self.discard()
            self.writer = self._connect()

    def _connect(self) -> sqlite3.Connection:
        name = ":memory:" if self.path is None else str(self.path)
        if self.path is not None:
            self.path.touch(PRIVATE_FILE)
        connection = sqlite3.connect(name, check_same_thread=False)
        try:
            connection.isolation_level = None
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA wal_autocheckpoint=0")
            connection.execute("PRAGMA cache_size=-16384")
            if _is_empty(connection):
                self.fresh = True
                connection.executescript(_TABLES)
                connection.execute("INSERT INTO about VALUES (?)", (SCHEMA_VERSION,))
                self.writer = connection
                self.checkpoint()
        except BaseException:
            connection.close()
            self.writer = None
            raise
        if self.path is None:
            # It holds nothing but memory, so whoever drops it need not close it.
            weakref.finalize(self, connection.close)
        return connection

    def _trusted(self) -> bool:
        assert self.path is not None
        try:
            return self._digest_path().read_bytes().decode("ascii", "replace") == _digest(self.path)
        except OSError:
            return False

    def _digest_path(self) -> Path:
        return self._beside(".sum")

    def _beside(self, suffix: str) -> Path:
        assert self.path is not None
        return self.path.with_name(self.path.name + suffix)


def _connect_reader(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False)
    try:
        connection.isolation_level = None
        connection.execute("PRAGMA mmap_size=1073741824")
        connection.execute("PRAGMA cache_size=-8192")
    except BaseException:
        connection.close()
        raise
    return connection


def _is_empty(connection: sqlite3.Connection) -> bool:
    """Return whether the database has no tables yet.

    Raises:
        DatabaseError: The database is of another version, or no index.
    """
    if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return True
    if connection.execute("SELECT version FROM about").fetchall() != [(SCHEMA_VERSION,)]:
        raise sqlite3.DatabaseError("of another version")
    return False


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _remove(path: Path) -> None:
    """Remove a file; move a directory of this name aside."""
    if path.is_dir() and not path.is_symlink():
        names = (f"{path.name}.aside{number or ''}" for number in count())
        path.rename(next(free for name in names if not (free := path.with_name(name)).exists()))
    else:
        path.unlink(missing_ok=True)
