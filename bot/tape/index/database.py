"""Keep the index's tables in one SQLite file that can be trusted or is made anew. Blocking.

Rule 1: a tape has a range of rowids. Its documents have them in the order of the entries; the messages are
    its turns and have the multiples of ``STEP``. Turns are adjacent if nothing cuts the talk between them.
Rule 2: a tape's documents and its mark, which says what is indexed, change in one transaction.
Rule 3: SQLite checksums its write-ahead log, but not the file. So only explicit checkpoints change the
    file, and each writes its digest beside it. A file that does not match its digest is made anew.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import RLock
from time import time_ns
from typing import Any

from bot.core.errors import TapeError
from bot.core.files import PRIVATE_FILE, sync_directory, write_synced
from bot.tape.codec import encode_entries
from bot.tape.entries import TapeEntry
from bot.tape.index.documents import documents_of
from bot.tape.index.groups import Group
from bot.tape.index.ranking import NEIGHBOURS, STEP, TAPE_ROWS
from bot.tape.store import HEADER_EVENT, Anchor, anchor_from_entry

logger = logging.getLogger(__name__)

_VERSION = 4
"""Version of the tables and of the terms in them; a file of another version is made anew."""

CHECKPOINT_PAGES = 16_384
"""Pages in the write-ahead log after which a checkpoint is due."""

_MERGED_PAGES = 32
"""Pages that one transaction merges: it takes a few milliseconds."""

_TABLES = f"""
PRAGMA user_version = {_VERSION};
CREATE TABLE tapes (
  id INTEGER PRIMARY KEY, name BLOB UNIQUE, indexed INTEGER, checksum INTEGER, row INTEGER
);
CREATE TABLE groups (
  id INTEGER PRIMARY KEY, tape INTEGER, told BLOB, rows INTEGER, UNIQUE (tape, told)
);
CREATE TABLE docs (
  id INTEGER PRIMARY KEY, tape INTEGER, entry INTEGER, checksum INTEGER, grp INTEGER, ts REAL,
  length INTEGER, terms TEXT
);
CREATE INDEX docs_of_entries ON docs (tape, entry);
CREATE INDEX docs_of_groups ON docs (grp);
CREATE VIRTUAL TABLE words USING fts5(
  terms, content='docs', content_rowid='id', tokenize='ascii', columnsize=0
);
CREATE VIRTUAL TABLE held USING fts5vocab(words, row);
CREATE TABLE vocabulary (term TEXT PRIMARY KEY, found INTEGER) WITHOUT ROWID;
CREATE TABLE anchors (
  tape INTEGER, at INTEGER, told BLOB, PRIMARY KEY (tape, at)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Mark:
    """What of a tape is indexed.

    Attributes:
        id: Number of the tape.
        name: Name of the tape.
        indexed: Id of the last indexed entry.
        checksum: Checksum of that entry.
        row: The last rowid that is taken.
    """

    id: int
    name: str
    indexed: int = 0
    checksum: int = 0
    row: int = 0

    @property
    def first_row(self) -> int:
        """The lowest rowid of the tape."""
        return self.id * TAPE_ROWS


def checksum_of(entry: TapeEntry) -> int:
    """Return a checksum that shows whether an entry is still the indexed one."""
    return zlib.crc32(encode_entries([entry]))


class IndexDatabase:
    """An open index database: one connection writes, another reads.

    Args:
        path: The file; None for a database in memory.

    Attributes:
        path: As given.
        marks: The marks of all tapes when it was opened.

    Raises:
        TapeError: The database can be neither opened nor created.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._writing = RLock()
        # In memory there is one connection, which would show a search what is half written.
        self._reading = self._writing if path is None else RLock()
        self._doubted = False
        try:
            if not self._is_trusted():
                self._remove()
            try:
                self._connect()
            except sqlite3.DatabaseError as error:
                logger.warning("the index %s cannot be read (%s); rebuilding it", path, error)
                self._remove()
                self._connect()
            self._file = self._file_now()
        except (sqlite3.Error, OSError) as error:
            raise TapeError(f"the index {path} cannot be used ({error})") from error

    @property
    def is_gone(self) -> bool:
        """Whether its file was removed or replaced by somebody else."""
        return self.path is not None and self._file != self._file_now()

    @contextmanager
    def read_transaction(self) -> Iterator[sqlite3.Connection]:
        """Lend the reading connection; it sees one snapshot until it is returned."""
        with self._reading:
            if self._reader is self._writer:
                yield self._reader
                return
            self._reader.execute("BEGIN")
            try:
                yield self._reader
            finally:
                with suppress(sqlite3.Error):
                    self._reader.execute("ROLLBACK")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._writing:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                # After some errors SQLite has rolled back already.
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    # Tapes.

    def add(self, mark: Mark, entries: Sequence[TapeEntry]) -> Mark:
        """Index the next entries of a tape, in order of ids; return its new mark."""
        with self._transaction() as connection:
            numbers: dict[Group, int] = {}
            docs: list[tuple[Any, ...]] = []
            row = mark.row
            checksum, last = mark.checksum, mark.indexed
            for entry in entries:
                checksum, last = checksum_of(entry), entry.id
                if entry.is_boundary or entry.name == HEADER_EVENT:
                    row = (row // STEP + NEIGHBOURS + 1) * STEP
                if (anchor := anchor_from_entry(mark.name, entry)) is not None:
                    told = json.dumps(asdict(anchor), ensure_ascii=False)
                    connection.execute(
                        "INSERT OR REPLACE INTO anchors VALUES (?, ?, ?)",
                        (mark.id, entry.id, _to_blob(told)),
                    )
                for one in documents_of(entry):
                    row = (row // STEP + 1) * STEP if one.spoken else _after(row)
                    if one.group not in numbers:
                        numbers[one.group] = _group_number(connection, mark, one.group)
                    rest = (checksum, numbers[one.group], one.ts, one.length, one.terms)
                    docs.append((mark.first_row + row, mark.id, entry.id, *rest))
            connection.executemany("INSERT INTO docs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", docs)
            connection.executemany(
                "INSERT INTO words (rowid, terms) VALUES (?, ?)", ((d[0], d[-1]) for d in docs)
            )
            connection.executemany(
                "INSERT INTO vocabulary VALUES (?, ?) ON CONFLICT (term) DO UPDATE SET found=found+excluded.found",
                Counter(term for doc in docs for term in set(doc[-1].split())).items(),
            )
            connection.executemany(
                "UPDATE groups SET rows = rows + ? WHERE id = ?",
                ((new, number) for number, new in Counter(doc[4] for doc in docs).items()),
            )
            mark = replace(mark, indexed=last, checksum=checksum, row=row)
            _put_mark(connection, mark)
        return mark

    def delete(self, mark: Mark, first: int) -> Mark:
        """Remove what is indexed of a tape from an entry on; return its new mark, which may lie before that.

        Nothing of it can be found any more; ``purge`` removes the bytes.
        """
        with self._transaction() as connection:
            gone = "FROM docs WHERE tape = ? AND entry >= ?"
            connection.execute(
                f"INSERT INTO words (words, rowid, terms) SELECT 'delete', id, terms {gone}",
                (mark.id, first),
            )
            connection.execute(f"DELETE {gone}", (mark.id, first))
            connection.execute("DELETE FROM anchors WHERE tape = ? AND at >= ?", (mark.id, first))
            connection.execute(
                "UPDATE groups SET rows = (SELECT count(*) FROM docs WHERE grp = groups.id) WHERE tape = ?",
                (mark.id,),
            )
            connection.execute("DELETE FROM groups WHERE tape = ? AND rows = 0", (mark.id,))
            last = connection.execute(
                "SELECT max(id), entry, checksum FROM docs WHERE id BETWEEN ? AND ?",
                (mark.first_row, mark.first_row + TAPE_ROWS - 1),
            ).fetchone()
            if last[0] is None:
                connection.execute("DELETE FROM tapes WHERE id = ?", (mark.id,))
                # The tape gets another number, and no number has the anchors of two tapes.
                connection.execute("DELETE FROM anchors WHERE tape = ?", (mark.id,))
                return Mark(mark.id, mark.name)
            # The entries behind the last document are indexed again: they may cut the talk.
            mark = replace(mark, indexed=last[1], checksum=last[2], row=last[0] - mark.first_row)
            _put_mark(connection, mark)
        return mark

    def anchors(self, mark: Mark) -> list[Anchor]:
        """Return all anchors of a tape, oldest first."""
        with self.read_transaction() as connection:
            rows = connection.execute(
                "SELECT told FROM anchors WHERE tape = ? ORDER BY at", (mark.id,)
            ).fetchall()
        return [Anchor(**json.loads(told.decode("utf-8", "surrogatepass"))) for (told,) in rows]

    def merge(self) -> bool:
        """Merge a few pages of the full text's segments; return whether there was something to merge.

        FTS5 appends a segment with each transaction, and a search seeks each word in each.
        """
        with self._transaction() as connection:
            before = connection.total_changes
            connection.execute(
                "INSERT INTO words (words, rank) VALUES ('merge', ?)", (_MERGED_PAGES,)
            )
            # As FTS5's documentation says: fewer changes mean that nothing was merged.
            return connection.total_changes - before >= 2

    # The file.

    def checkpoint_if_due(self) -> None:
        """Checkpoint if the write-ahead log has grown large."""
        if self.path is not None:
            with suppress(FileNotFoundError):
                if self._beside("-wal").stat().st_size > 4096 * CHECKPOINT_PAGES:
                    self.checkpoint()

    def checkpoint(self) -> bool:
        """Move the write-ahead log into the file and write the file's digest; return whether it is empty now."""
        if self.path is None:
            return True
        with self._writing, self._reading:
            # No digest matches the file until the checkpoint is complete.
            self._beside(".sum").unlink(missing_ok=True)
            busy, *_ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not busy and not self._doubted:
                write_synced(self._beside(".sum"), _digest(self.path).encode())
            return not busy

    def doubt(self) -> None:
        """Make sure that the file, as it is or will become, is not trusted at the next start."""
        self._doubted = True
        if self.path is not None:
            self._beside(".sum").unlink(missing_ok=True)
            sync_directory(self.path.parent)

    def purge(self, *, trusted: bool) -> None:
        """Remove the last byte of what was deleted; say whether the file is to be trusted from then on.

        SQLite and FTS5 leave deleted content in freed pages and in segments, so all is written anew.
        """
        with self._writing, self._reading:
            with self._transaction() as connection:
                connection.execute("INSERT INTO words (words) VALUES ('optimize')")
                connection.execute("DELETE FROM vocabulary")
                connection.execute("INSERT INTO vocabulary SELECT term, doc FROM held")
            self._writer.execute("VACUUM")
            self._doubted = not trusted
            if not self.checkpoint():
                raise sqlite3.OperationalError("another program reads the index")

    def close(self) -> None:
        """Close the database with a checkpoint."""
        try:
            self.checkpoint()
        except (sqlite3.Error, OSError) as error:
            logger.warning("the index %s is made anew at the next start (%s)", self.path, error)
        finally:
            self._disconnect()

    def discard(self) -> None:
        """Close the database and remove its files."""
        self._disconnect()
        self._remove()

    def _disconnect(self) -> None:
        with self._writing, self._reading:
            self._reader.close()
            self._writer.close()

    def _connect(self) -> None:
        if self.path is not None:
            self.path.touch(PRIVATE_FILE)
        self._writer = self._reader = _connection(self.path)
        try:
            if not self._writer.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                self._writer.executescript(_TABLES)
                self._writer.execute(
                    "INSERT INTO words (words, rank) VALUES ('usermerge', 2), ('automerge', 8)"
                )
                self.checkpoint()
            elif self._writer.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                raise sqlite3.DatabaseError("of another version")  # noqa: TRY301
            rows = self._writer.execute("SELECT id, name, indexed, checksum, row FROM tapes")
            self.marks = [
                Mark(number, name.decode("utf-8", "surrogatepass"), *rest)
                for number, name, *rest in rows
            ]
            if self.path is not None:
                self._reader = _connection(self.path)
        except BaseException:
            self._writer.close()
            raise

    def _is_trusted(self) -> bool:
        """Return whether the file is as the last checkpoint left it; one in memory always is."""
        try:
            return (
                self.path is None
                or self._beside(".sum").read_bytes() == _digest(self.path).encode()
            )
        except OSError:
            return False

    def _file_now(self) -> tuple[int, int] | None:
        """Return what tells the file from others; None if there is none."""
        try:
            status = self.path.stat() if self.path is not None else None
        except OSError:
            return None
        return status and (status.st_dev, status.st_ino)

    def _remove(self) -> None:
        if self.path is not None:
            for suffix in (".sum", "", "-wal", "-shm"):
                _remove(self._beside(suffix))

    def _beside(self, suffix: str) -> Path:
        assert self.path is not None
        return self.path.with_name(self.path.name + suffix)


def _group_number(connection: sqlite3.Connection, mark: Mark, group: Group) -> int:
    row = (mark.id, group.encode())
    connection.execute("INSERT OR IGNORE INTO groups (tape, told, rows) VALUES (?, ?, 0)", row)
    found = connection.execute("SELECT id FROM groups WHERE tape = ? AND told = ?", row).fetchone()
    return int(found[0])


def _after(row: int) -> int:
    """Return the next rowid of a document that is no turn."""
    return row + 1 if (row + 1) % STEP else row + 2


def _put_mark(connection: sqlite3.Connection, mark: Mark) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO tapes VALUES (?, ?, ?, ?, ?)",
        (mark.id, _to_blob(mark.name), mark.indexed, mark.checksum, mark.row),
    )


def _to_blob(text: str) -> bytes:
    """Encode any text as bytes, since SQLite's text cannot hold lone surrogates."""
    return text.encode("utf-8", "surrogatepass")


def _connection(path: Path | None) -> sqlite3.Connection:
    connection = sqlite3.connect(
        ":memory:" if path is None else path, check_same_thread=False, isolation_level=None
    )
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("PRAGMA cache_size=-16384")
    except BaseException:
        connection.close()
        raise
    return connection


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _remove(path: Path) -> None:
    """Remove a file; move a directory of this name aside."""
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(f"{path.name}.aside{time_ns()}"))
    else:
        path.unlink(missing_ok=True)
