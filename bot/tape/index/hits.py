"""Turn matches of the index into hits, with the entries as their tape holds them. Blocking.

A match counts only if its entry still has the indexed words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bot.tape.entries import TapeEntry
from bot.tape.index.documents import documents_of, fingerprint
from bot.tape.index.full_text_search import IndexMatch
from bot.tape.index.keeper import ReadEntries
from bot.tape.index.labels import labels_match, labels_of
from bot.tape.search import Hit, SearchQuery, problem_of


def verified_hits(
    query: SearchQuery, matches: Sequence[IndexMatch], read: ReadEntries
) -> list[Hit | None]:
    """Return matches as hits; None where the tape holds something else.

    Args:
        query: The query.
        matches: Matches of one tape.
        read: Reads entries of that tape.
    """
    wanted = {entry for one in matches for entry in (*one.before, one.entry, *one.after)}
    entries = {entry.id: entry for entry in read(wanted)} if wanted else {}
    return [_hit(query, index_match, entries) for index_match in matches]


def _hit(
    query: SearchQuery, index_match: IndexMatch, entries: Mapping[int, TapeEntry]
) -> Hit | None:
    entry = entries.get(index_match.entry)
    if entry is None or index_match.fingerprint not in map(fingerprint, documents_of(entry)):
        return None
    if not labels_match(labels_of(entry), query):
        return None

    def beside(ids: Iterable[int]) -> tuple[TapeEntry, ...]:
        read = (entries[i] for i in ids if i in entries)
        return tuple(other for other in read if query.problem in (None, problem_of(other)))

    return Hit(
        index_match.tape,
        entry,
        index_match.score,
        beside(index_match.before),
        beside(index_match.after),
        index_match.matched_itself,
    )
