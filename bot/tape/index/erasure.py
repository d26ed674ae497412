"""Remove erased and dropped entries from the index, to the last byte. Blocking.

Rule 1: an entry keeps its rows, so that its neighbours stay neighbours; their content is replaced.
Rule 2: SQLite and FTS5 leave deleted content in freed pages and old segments, and copies in the
    gaps of others. So the FTS5 segments are merged into one, and the file is rewritten.
Rule 3: from the first change until the new file is complete no digest matches the file; after a
    crash it is rebuilt from the tapes.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from itertools import takewhile, zip_longest
from pathlib import Path

from bot.core.files import PRIVATE_FILE, sync_directory
from bot.tape.entries import TapeEntry
from bot.tape.index.database import ROWS_PER_LANE, IndexDatabase
from bot.tape.index.documents import Document, documents_of
from bot.tape.index.tables import TapeRows, anchor_row, digest_of, doc_row, first_row


def replace_documents(
    database: IndexDatabase, rows: TapeRows, tombstones: Iterable[TapeEntry]
) -> bool:
    """Replace the documents of entries by those of the tombstones with the same ids.

    Returns:
        Whether they fit into the entries' rows. If not, nothing was changed: the tape must be
        reindexed.
    """
    erased = [entry for entry in tombstones if entry.id <= rows.indexed]
    with database.write_transaction() as connection:
        # Plan everything before anything is changed.
        plans = [_plan(connection, rows, entry) for entry in erased]
        plan = [other for other in plans if other is not None]
        if len(plan) < len(plans):
            return False
        dropped = sum(_put(connection, rows, *one) for places in plan for one in places)
        for entry in erased:
            connection.execute("DELETE FROM anchors WHERE tape = ? AND at = ?", (rows.id, entry.id))
            if (anchor := anchor_row(rows, entry)) is not None:
                connection.execute("INSERT INTO anchors VALUES (?, ?, ?, ?, ?, ?)", anchor)
        held = (rows.id, rows.first_row, rows.first_row + 2 * ROWS_PER_LANE - 1)
        for table, column in (("senders", "sender"), ("labels", "labels")):
            connection.execute(
                f"DELETE FROM {table} WHERE tape = ? AND id NOT IN"  # noqa: S608 (names of ours)
                f" (SELECT {column} FROM docs WHERE id BETWEEN ? AND ?)",
                held,
            )
        digest = next((digest_of(e) for e in erased if e.id == rows.indexed), rows.digest)
        connection.execute(
            "UPDATE tapes SET digest = ?, rows = rows - ? WHERE id = ?", (digest, dropped, rows.id)
        )
    rows.digest, rows.rows = digest, rows.rows - dropped
    return True


def purge_deleted(database: IndexDatabase) -> None:
    """Remove all deleted content from the file; a database in a file is closed by this.

    Raises:
        sqlite3.Error, OSError: It failed; the file is not trusted at the next start.
    """
    with database.write_transaction() as connection:
        connection.execute("INSERT INTO words (words) VALUES ('optimize')")
        # The vocabulary would keep words of which no occurrence is left.
        connection.execute("CREATE VIRTUAL TABLE temp.held USING fts5vocab(main, words, row)")
        connection.execute("DELETE FROM vocabulary")
        connection.execute("INSERT INTO vocabulary SELECT term, doc FROM temp.held")
        connection.execute("DROP TABLE temp.held")
    if database.path is not None:
        _write_anew(database, database.path)


def _write_anew(database: IndexDatabase, path: Path) -> None:
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    try:
        fresh.touch(PRIVATE_FILE)
        assert database.writer is not None
        database.writer.execute("VACUUM INTO ?", (str(fresh),))
        _finish(fresh)
        database.discard()
        fresh.rename(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    database.mark_trusted()
    sync_directory(path.parent)


def _finish(path: Path) -> None:
    """Switch the database to WAL mode (later that would change its digest) and sync it."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
    finally:
        connection.close()
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _plan(
    connection: sqlite3.Connection, rows: TapeRows, entry: TapeEntry
) -> list[tuple[int, Document | None]] | None:
    """Return an entry's rows, each with its new content; None if it needs more rows."""
    found: list[tuple[int, Document | None]] = []
    documents = documents_of(entry)
    for lane in range(2):
        low = rows.first_row + lane * ROWS_PER_LANE
        high = low + ROWS_PER_LANE - 1
        cursor = connection.execute(
            "SELECT id, entry FROM docs WHERE id BETWEEN ? AND ? ORDER BY id",
            (first_row(connection, low, high, entry.id), high),
        )
        places = [row for row, _ in takewhile(lambda one: one[1] == entry.id, cursor)]
        pieces = [document for document in documents if document.spoken == (lane == 0)]
        if len(pieces) > len(places):
            return None
        found += zip_longest(places, pieces)
    return found


def _put(
    connection: sqlite3.Connection, rows: TapeRows, row: int, document: Document | None
) -> int:
    """Put a document into a row; without one drop the row and return 1."""
    # FTS5 needs the old terms to delete them, so this comes first.
    connection.execute(
        "INSERT INTO words (words, rowid, terms) SELECT 'delete', id, terms FROM docs WHERE id = ?",
        (row,),
    )
    connection.execute("DELETE FROM docs WHERE id = ?", (row,))
    if document is None:
        return 1
    stored = doc_row(connection, rows, row, document)
    connection.execute("INSERT INTO docs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", stored)
    connection.execute("INSERT INTO words (rowid, terms) VALUES (?, ?)", (row, document.terms))
    return 0
