"""Search in PostgreSQL in one transaction with one snapshot, and read the hits from the tapes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable

import anyio.to_thread

from bot.core.database.connections import Database
from bot.core.database.pool import Connection
from bot.tape.entries import TapeEntry
from bot.tape.search import Hit, SearchQuery, resolve_query_anchors
from bot.tape.stores.postgres.document_search import DocumentSearch, RankedRows
from bot.tape.stores.postgres.reader import map_read_errors
from bot.tape.stores.postgres.rows import entry_of
from bot.tape.stores.postgres.sql_filter import SqlFilter, build_filter, place_of

_LONGEST = 30.0
"""Longest search in seconds."""

_BEGIN = "set transaction isolation level repeatable read, read only; set local jit = off"

_BESIDE = """
select h.number, found.later, found.entry
from unnest(%(on)s::bigint[], %(entries)s::bigint[]) with ordinality as h (tape, entry, number)
cross join lateral (
    (select false as later, d.entry from {chosen} cross join lateral (
        select d.entry from tapebot.document d
        where d.tape = {tape} and d.entry < h.entry and d.place < 4294967296 {labelled}
        order by d.entry desc limit %(most)s
    ) d order by d.entry desc limit %(most)s)
    union all
    (select true, d.entry from {chosen} cross join lateral (
        select d.entry from tapebot.document d
        where d.tape = {tape} and d.entry > h.entry and d.place < 4294967296 {labelled}
        order by d.entry limit %(most)s
    ) d order by d.entry limit %(most)s)
) as found order by found.entry
"""
_BODIES = """
select w.tape, w.id, found.body
from unnest(%(on)s::bigint[], %(ids)s::bigint[]) as w (tape, id)
cross join lateral (
    select body from tapebot.entry e where e.tape = {tape} and e.id = w.id offset 0
) as found
"""

Key = tuple[int, int]


async def search(
    database: Database,
    workspace: bytes,
    query: SearchQuery,
    resolve: Callable[[str, str], Awaitable[int]],
) -> list[Hit]:
    """Return the best matches among all entries appended before the call.

    Args:
        database: The database.
        workspace: The workspace to search, encoded.
        query: The query.
        resolve: ``TapeStore.resolve_anchor``.

    Raises:
        InvalidSearch: The query is invalid.
        TapeNotFound: An anchor named in the query does not exist.
        TapeUnavailable: The database cannot be queried.
    """
    query.validate()
    if query.after_anchor is not None or query.before_anchor is not None:
        query = await resolve_query_anchors(query, resolve)
    search_query = query

    async def work(connection: Connection) -> list[Hit]:
        await connection.execute(_BEGIN)
        scope = await build_filter(connection, workspace, search_query)
        finding = DocumentSearch(connection, scope, search_query)
        ranked = await finding.run()
        return await _hits(
            connection, scope, search_query, ranked, worded=bool(search_query.text.strip())
        )

    with map_read_errors(database, "the tapes"):
        return await database.transact(work, seconds=_LONGEST)


async def _hits(
    connection: Connection,
    scope: SqlFilter,
    query: SearchQuery,
    ranked: RankedRows,
    *,
    worded: bool,
) -> list[Hit]:
    if not ranked:
        return []
    keys = [(place_of(row.id)[0], row.entry) for _, row in ranked]
    around = await _around(connection, scope, keys, query.neighbours)
    read = await _entries(
        connection, scope, {*keys, *(key for side in around.values() for key in side)}
    )
    return [
        Hit(
            scope.tapes[key[0]],
            read[key],
            value,
            _present(read, around[number, False]),
            _present(read, around[number, True]),
            bool(row.counts) or not worded,
        )
        for number, (key, (value, row)) in enumerate(zip(keys, ranked, strict=True), start=1)
        if key in read
    ]


async def _around(
    connection: Connection, scope: SqlFilter, keys: list[Key], count: int
) -> defaultdict[tuple[int, bool], list[Key]]:
    """Return the neighbouring turns of hits, by the hit's number and whether they come after it."""
    found: defaultdict[tuple[int, bool], list[Key]] = defaultdict(list)
    if not count:
        return found
    chosen, labelled = "(select) as l", ""
    if "beside" in scope.values:
        chosen = (
            "(select l.id from unnest(%(beside_on)s::bigint[], %(beside)s::int[]) as l (tape, id)"
            " where l.tape = h.tape) as l"
        )
        labelled = "and d.label = l.id"
    rows = await scope.ask(
        connection,
        _BESIDE.format(chosen=chosen, labelled=labelled, tape=scope.same_tape("h.tape")),
        on=[tape for tape, _ in keys],
        entries=[entry for _, entry in keys],
        most=count,
    )
    for number, later, entry in rows:
        found[number, later].append((keys[number - 1][0], entry))
    return found


async def _entries(
    connection: Connection, scope: SqlFilter, keys: set[Key]
) -> dict[Key, TapeEntry]:
    """Return entries as they are on their tapes, without unreadable ones."""
    rows = await scope.ask(
        connection,
        _BODIES.format(tape=scope.same_tape("w.tape")),
        on=[tape for tape, _ in keys],
        ids=[number for _, number in keys],
    )

    def decoded() -> dict[Key, TapeEntry]:
        read = {(tape, number): entry_of(number, body) for tape, number, body in rows}
        return {key: entry for key, entry in read.items() if entry is not None}

    # Texts may be of any length.
    return await anyio.to_thread.run_sync(decoded)


def _present(read: dict[Key, TapeEntry], keys: list[Key]) -> tuple[TapeEntry, ...]:
    return tuple(read[key] for key in keys if key in read)
