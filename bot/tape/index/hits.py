"""Turn matches of the index into hits, with the entries as their tapes hold them. Pure but ``scan``.

Rule 1: a match counts only if its entry still has the indexed words.
Rule 2: what is scanned is indexed in memory, for one search; nothing of it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bot.tape.entries import TapeEntry
from bot.tape.index.database import IndexDatabase
from bot.tape.index.documents import documents_of, fingerprint
from bot.tape.index.full_text_search import FullTextSearch, IndexMatch
from bot.tape.index.labels import labels_match, labels_of
from bot.tape.index.tables import TapeRows, add_entries
from bot.tape.search import Hit, SearchQuery, problem_of


def verified_hits(
    query: SearchQuery, read: Iterable[tuple[IndexMatch, Mapping[int, TapeEntry]]]
) -> list[Hit | None]:
    """Return matches as hits; None where the tape holds something else.

    Args:
        query: The query.
        read: Matches, each with the entries of its tape that it names, by id.
    """
    return [_hit(query, index_match, entries) for index_match, entries in read]


def _hit(
    query: SearchQuery, index_match: IndexMatch, entries: Mapping[int, TapeEntry]
) -> Hit | None:
    entry = entries.get(index_match.entry)
    if entry is None or index_match.fingerprint not in map(fingerprint, documents_of(entry)):
        return None
    if not labels_match(labels_of(entry), query):
        return None
    may_come = {i for i, e in entries.items() if query.problem in (None, problem_of(e))}
    before = tuple(entries[i] for i in index_match.before if i in may_come)
    after = tuple(entries[i] for i in index_match.after if i in may_come)
    return Hit(
        index_match.tape, entry, index_match.score, before, after, index_match.matched_itself
    )


def scan(query: SearchQuery, tape: str, entries: Sequence[TapeEntry]) -> list[Hit]:
    """Search some entries of a tape that are not in its index. Blocking."""
    database = IndexDatabase(None)
    try:
        rows = TapeRows(1, tape)
        add_entries(database, rows, entries, (), ())
        with database.reader() as connection:
            matches = FullTextSearch(connection, {rows.id: rows}, query).run()
    finally:
        database.close()
    held = {entry.id: entry for entry in entries}
    hits = verified_hits(query, ((match, held) for match in matches))
    return [hit for hit in hits if hit is not None]
