"""Write entries to the index's tables and read anchors. Blocking; one transaction per call.

Rule 1: a tape's rows, the last indexed id and the digest of the last entry change together.
Rule 2: a tape's turns are numbered in order, with a gap at each boundary and each header, so that
    neighbours have adjacent numbers and none are found across a gap.
Rule 3: a header of the tape's own with no entry right before it marks a reset: the entries before
    it that are in no segment are gone. Other entries may look like headers, so both are checked.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

from bot.tape.codec import encode_entries
from bot.tape.entries import TapeEntry
from bot.tape.index.database import ROWS_PER_LANE, IndexDatabase
from bot.tape.index.documents import Document, documents_of
from bot.tape.index.labels import Labels, serialize_labels
from bot.tape.index.ranking import NEIGHBOURS
from bot.tape.store import HEADER_EVENT, Anchor, Segment, anchor_from_entry

DocRow = tuple[int, int, int, float, int, int, int, str]
AnchorRow = tuple[int, int, int, bytes, bytes, bytes]


@dataclass(slots=True)
class TapeRows:
    """The place of a tape's rows in the index.

    Attributes:
        id: Number of the tape.
        name: Name of the tape.
        indexed: Id of the last indexed entry.
        digest: Digest of that entry.
        turns: Number of the last turn.
        others: Number of the last document that is no turn.
        rows: How many rows the tape has.
        common: How many rows had a common term when it was last counted, with ``rows`` of then.
        through: An entry's id with the last rows of both lanes up to it; later rows do not change
            them.
    """

    id: int
    name: str
    indexed: int = 0
    digest: bytes = b""
    turns: int = 0
    others: int = 0
    rows: int = 0
    common: dict[str, tuple[int, int]] = field(default_factory=dict)
    through: tuple[int, list[int]] = (0, [])

    @property
    def first_row(self) -> int:
        """The lowest rowid of the tape."""
        return self.id * 2 * ROWS_PER_LANE


@dataclass(slots=True)
class _Batch:
    """Rows that one transaction writes."""

    docs: list[DocRow] = field(default_factory=list)
    anchors: list[AnchorRow] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)


def text_to_blob(text: str) -> bytes:
    """Encode any text as bytes, since SQLite's text type cannot hold lone surrogates."""
    return text.encode("utf-8", "surrogatepass")


def blob_to_text(stored: bytes) -> str:
    """Decode the bytes that ``text_to_blob`` returned."""
    return stored.decode("utf-8", "surrogatepass")


def digest_of(entry: TapeEntry) -> bytes:
    """Return a digest that shows whether an entry is still the indexed one."""
    return hashlib.blake2b(encode_entries([entry]), digest_size=16).digest()


def load_tape_rows(database: IndexDatabase) -> dict[str, TapeRows]:
    """Return the rows' places of all tapes by name."""
    with database.reader() as connection:
        rows = connection.execute(
            "SELECT id, name, indexed, digest, turns, others, rows FROM tapes"
        ).fetchall()
    return {(name := blob_to_text(row[1])): TapeRows(row[0], name, *row[2:]) for row in rows}


def add_entries(
    database: IndexDatabase,
    rows: TapeRows,
    entries: Sequence[TapeEntry],
    segments: Sequence[Segment],
    cuts: Container[int],
) -> None:
    """Index the next entries of a tape and update ``rows``.

    Args:
        database: The index.
        rows: The tape's rows.
        entries: The next entries, in order of ids.
        segments: The tape's current segments.
        cuts: Ids of headers with no entry right before them: live entries before them are gone.
    """
    with database.write_transaction() as connection:
        batch = _Batch()
        for entry in entries:
            if entry.name == HEADER_EVENT and entry.data.get("session") == rows.name:
                _flush(connection, batch)
                if entry.id in cuts:
                    _drop(connection, rows, entry.id, segments)
                rows.turns += NEIGHBOURS + 1
            _collect(connection, rows, entry, batch)
        _flush(connection, batch)
        if entries:
            rows.indexed, rows.digest = entries[-1].id, digest_of(entries[-1])
        connection.execute(
            "INSERT INTO tapes (id, name, indexed, digest, turns, others, rows)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET indexed=excluded.indexed,"
            " digest=excluded.digest, turns=excluded.turns, others=excluded.others,"
            " rows=excluded.rows",
            (
                rows.id,
                text_to_blob(rows.name),
                rows.indexed,
                rows.digest,
                rows.turns,
                rows.others,
                rows.rows,
            ),
        )


def delete_tape(database: IndexDatabase, rows: TapeRows) -> None:
    """Remove all rows of a tape."""
    with database.write_transaction() as connection:
        _delete(connection, [(rows.first_row, rows.first_row + 2 * ROWS_PER_LANE - 1)])
        connection.execute("DELETE FROM anchors WHERE tape = ?", (rows.id,))
        connection.execute("DELETE FROM senders WHERE tape = ?", (rows.id,))
        connection.execute("DELETE FROM labels WHERE tape = ?", (rows.id,))
        connection.execute("DELETE FROM tapes WHERE id = ?", (rows.id,))


def _collect(
    connection: sqlite3.Connection, rows: TapeRows, entry: TapeEntry, batch: _Batch
) -> None:
    if (anchor := anchor_row(rows, entry)) is not None:
        batch.anchors.append(anchor)
        if entry.is_boundary:
            rows.turns += NEIGHBOURS + 1
    for document in documents_of(entry):
        batch.docs.append(doc_row(connection, rows, _place(rows, document), document))
        batch.found.update(set(document.terms.split()))
        rows.rows += 1


def anchor_row(rows: TapeRows, entry: TapeEntry) -> AnchorRow | None:
    """Return the row of an anchor; None if the entry is no anchor."""
    anchor = anchor_from_entry(rows.name, entry)
    if anchor is None:
        return None
    state = text_to_blob(json.dumps(anchor.state, ensure_ascii=False))
    return (
        rows.id,
        anchor.at,
        anchor.entry_id,
        text_to_blob(anchor.name),
        text_to_blob(anchor.ts),
        state,
    )


def doc_row(
    connection: sqlite3.Connection, rows: TapeRows, place: int, document: Document
) -> DocRow:
    """Return a document's row with this rowid; its sender and labels are added to their tables."""
    sender = _sender(connection, rows, document)
    labels = _labels(connection, rows, document)
    return (
        place,
        document.entry,
        document.kind,
        document.ts,
        sender,
        labels,
        document.length,
        document.terms,
    )


def _place(rows: TapeRows, document: Document) -> int:
    """Return the rowid for the next document of its lane."""
    if document.spoken:
        rows.turns += 1
        return rows.first_row + rows.turns
    rows.others += 1
    return rows.first_row + ROWS_PER_LANE + rows.others


def _sender(connection: sqlite3.Connection, rows: TapeRows, document: Document) -> int:
    uid, name = document.sender
    if not uid and not name:
        return 0
    found = connection.execute(
        "SELECT id FROM senders WHERE tape = ? AND uid = ? AND name = ?", (rows.id, uid, name)
    ).fetchone()
    if found is None:
        cursor = connection.execute(
            "INSERT INTO senders (tape, uid, name) VALUES (?, ?, ?)", (rows.id, uid, name)
        )
        return cursor.lastrowid or 0
    return int(found[0])


def _labels(connection: sqlite3.Connection, rows: TapeRows, document: Document) -> int:
    if document.labels == Labels():
        return 0
    row = (rows.id, text_to_blob(serialize_labels(document.labels)))
    known = connection.execute("SELECT id FROM labels WHERE tape = ? AND told = ?", row).fetchone()
    if known is None:
        cursor = connection.execute("INSERT INTO labels (tape, told) VALUES (?, ?)", row)
        return cursor.lastrowid or 0
    return int(known[0])


def _flush(connection: sqlite3.Connection, batch: _Batch) -> None:
    # FTS5 flushes its buffer whenever a rowid is lower than the one before.
    batch.docs.sort()
    connection.executemany("INSERT INTO docs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", batch.docs)
    connection.executemany(
        "INSERT INTO words (rowid, terms) VALUES (?, ?)", ((doc[0], doc[-1]) for doc in batch.docs)
    )
    connection.executemany(
        "INSERT OR REPLACE INTO anchors VALUES (?, ?, ?, ?, ?, ?)", batch.anchors
    )
    connection.executemany(
        "INSERT INTO vocabulary VALUES (?, ?) ON CONFLICT (term) DO UPDATE SET found=found+excluded.found",
        batch.found.items(),
    )
    batch.docs.clear()
    batch.anchors.clear()
    batch.found.clear()


def _drop(
    connection: sqlite3.Connection, rows: TapeRows, header: int, segments: Iterable[Segment]
) -> None:
    """Remove the rows of entries before a header that are in no segment."""
    kept = max((segment.last_id for segment in segments if segment.last_id < header), default=0)
    if kept >= header - 1:
        return
    low = rows.first_row
    ranges = []
    for start, end in (
        (low, low + ROWS_PER_LANE - 1),
        (low + ROWS_PER_LANE, low + 2 * ROWS_PER_LANE - 1),
    ):
        ranges.append((first_row(connection, start, end, kept + 1), end))
    rows.rows -= _delete(connection, ranges)
    connection.execute(
        "DELETE FROM anchors WHERE tape = ? AND at > ? AND at < ?", (rows.id, kept, header)
    )


def _delete(connection: sqlite3.Connection, ranges: Iterable[tuple[int, int]]) -> int:
    """Remove rows by rowid ranges; return how many."""
    dropped = 0
    for first, last in ranges:
        within = "FROM docs WHERE id BETWEEN ? AND ?"
        connection.execute(
            "INSERT INTO words (words, rowid, terms) SELECT 'delete', id, terms " + within,
            (first, last),
        )
        dropped += connection.execute("DELETE " + within, (first, last)).rowcount
    return dropped


def last_row(connection: sqlite3.Connection, low: int, high: int) -> int | None:
    """Return the last rowid of a range; None if there is none."""
    found = connection.execute(
        "SELECT id FROM docs WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1", (low, high)
    ).fetchone()
    return None if found is None else int(found[0])


def first_row(
    connection: sqlite3.Connection, low: int, high: int, entry: int, *, back: bool = False
) -> int:
    """Return the first rowid of a lane whose entry has at least this id.

    Entry ids increase along a lane, so this is a binary search.

    Args:
        connection: A connection to the index.
        low: The lane's lowest rowid.
        high: Its highest rowid.
        entry: The entry's id.
        back: Whether the row is likely to be near the lane's end.
    """
    last = last_row(connection, low, high)
    if last is None:
        return high + 1
    below, above, step = low, last + 1, 32 if back else 0
    while below < above:
        middle = max(below, above - step) if step else (below + above) // 2
        found = connection.execute(
            "SELECT id, entry FROM docs WHERE id BETWEEN ? AND ? ORDER BY id LIMIT 1",
            (middle, above - 1),
        ).fetchone()
        if found is None or found[1] >= entry:
            above, step = middle, 4 * step
        else:
            below, step = found[0] + 1, 0
    return below


def read_indexed(connection: sqlite3.Connection, rows: TapeRows) -> int:
    """Return the id of a tape's last indexed entry, as a connection sees it; 0 if there is none."""
    found = connection.execute("SELECT indexed FROM tapes WHERE id = ?", (rows.id,)).fetchone()
    return 0 if found is None else int(found[0])


def read_anchors(database: IndexDatabase, rows: TapeRows) -> list[Anchor]:
    """Return all anchors of a tape, oldest first."""
    with database.reader() as connection:
        found = connection.execute(
            "SELECT name, at, entry, state, ts FROM anchors WHERE tape = ? ORDER BY at", (rows.id,)
        ).fetchall()
    return [
        Anchor(rows.name, blob_to_text(name), at, entry, json.loads(state), blob_to_text(ts))
        for name, at, entry, state, ts in found
    ]
