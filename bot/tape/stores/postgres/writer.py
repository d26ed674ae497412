"""Write tapes: each change is one SQL function, one round trip, and is applied once.

Changes that depend on much of a tape are decided here from a snapshot. The function does nothing if
the tape was archived, reset or erased from since, and the change is decided again.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import anyio.to_thread
import psycopg

from bot.core.clock import Clock
from bot.core.database.connections import Connection, Database, Row, server_message
from bot.core.errors import DatabaseUnavailable, TapeExists, TapeNotFound, TapeWriteError
from bot.core.i18n import _
from bot.tape.codec import encode_line
from bot.tape.entries import TapeEntry
from bot.tape.state_reads import forget_state
from bot.tape.store import HEADER_EVENT, Segment, header_entry, header_title, last_dropped
from bot.tape.stores.changes import (
    check_version,
    fork_header,
    forked_part,
    index_tombstones,
    pending_tombstones,
    stamp,
)
from bot.tape.stores.folder import TapeFolder
from bot.tape.stores.postgres.reader import (
    MAX_ROW_ID,
    TapeReader,
    bytea_to_text,
    entry_of,
    text_to_bytea,
)

_ANY_ID = 1
"""The id in each stored line, since the database assigns the real one."""

Columns = tuple[list[str], list[bytes]]
# From this many entries on they are encoded in a worker thread.
_MANY = 16
_LONG = 120.0
"""Seconds that a change of many entries may take."""

_APPEND = "select * from tapebot.append(%s, %s, %s::bigint, %s, %s::text[], %s::bytea[])"
_CREATE = "select tapebot.create_tape(%s, %s, %s::bytea, %s, %s::text[], %s::bytea[])"
_HOLD = """
select version, live, title from tapebot.tape where workspace = %s and name = %s for no key update
"""
_HEADER = """
select line from tapebot.entry where tape = (
    select id from tapebot.tape where workspace = %s and name = %s
) and id = %s
"""
_TURN_OVER = """
select * from tapebot.turn_over(
    %s, %s, %s::bigint, %s, %s::text, %s::bytea, %s::text[], %s::bytea[])
"""
_FORK = """
select tapebot.fork(%s, %s, %s, %s::bytea, %s, %s, %s, %s, %s::text[], %s::bytea[])
"""
_MAKE = """
insert into tapebot.tape (workspace, name, title, version, live, made_by)
    values (%s, %s, %s::bytea, %s, %s, %s) on conflict do nothing returning id
"""
_SEAL = "insert into tapebot.segment (tape, first_id, last_id, name) values (%s, %s, %s, %s)"
_PUT = "select tapebot.put_entries(%s, %s, %s::text[], %s::bytea[])"
_BEGIN_AT = "update tapebot.tape set live = %s where id = %s"
_ERASE = """
select tapebot.erase(%s, %s, %s, %s, %s, %s::bigint[], %s::bytea[], %s, %s::bytea)
"""


class TapeWriter:
    """Write the tapes of one workspace.

    Args:
        database: The database.
        workspace: Name of the workspace.
        reader: Reads the same tapes.
        clock: Source of the entries' ``ts``.
    """

    def __init__(
        self, database: Database, workspace: str, reader: TapeReader, clock: Clock
    ) -> None:
        self._database = database
        self._workspace = text_to_bytea(workspace)
        # Segments are named as files would be: headers name them, and tapes can move to files.
        self._names = TapeFolder(Path(), workspace)
        self._reader = reader
        self._clock = clock

    async def append(
        self, tape: str, entries: Sequence[TapeEntry], expect: int | None
    ) -> list[TapeEntry]:
        """Append entries; return them with their ids."""
        stamped = stamp(entries, self._clock)
        packed = await _packed(stamped)
        with _map_write_errors(f"tape {tape}"):
            [(outcome, last)] = await self._call(_APPEND, tape, expect, uuid4(), *packed)
        _see(tape, outcome, expect, last)
        return stamp(stamped, self._clock, last - len(stamped))

    async def create(self, tape: str, title: str | None) -> bool:
        """Create a tape with its header; return False if it existed."""
        packed = await _packed(stamp([header_entry(tape, title)], self._clock))
        with _map_write_errors(f"tape {tape}"):
            [(made,)] = await self._call(_CREATE, tape, _optional(title), uuid4(), *packed)
        return bool(made)

    async def turn_over(
        self,
        tape: str,
        carry: Sequence[TapeEntry],
        *,
        expect: int | None = None,
        keep: bool = False,
        title: str | None = None,
    ) -> Segment:
        """Start a new live part with a header and ``carry``; seal the old one, or drop all entries.

        Args:
            tape: The session's key.
            carry: Entries to append after the header.
            expect: The version that the tape must have.
            keep: Seal the live part instead of dropping all entries.
            title: A new title; None to keep the present one.

        Returns:
            The former live part as a segment.
        """
        once, now = uuid4(), self._clock.now()
        carried = await _packed(stamp(carry, self._clock))
        datas = [self._workspace, text_to_bytea(tape)]

        async def work(connection: Connection) -> Row | None:
            cursor = await connection.execute(_HOLD, datas)
            if (row := await cursor.fetchone()) is None:
                return None
            version, live, kept = row
            kept = kept if title is None else text_to_bytea(title)
            seal = self._names.next_segment(tape, live, version, now) if keep else None
            dropped = await self._dropped(connection, datas, live) if keep else version
            told = None if kept is None else bytea_to_text(kept)
            head = header_entry(tape, told, previous=seal, dropped=dropped)
            kinds, lines = pack(stamp([head], self._clock))
            name = None if seal is None else seal.name
            cursor = await connection.execute(
                _TURN_OVER,
                [*datas, expect, once, name, kept, kinds + carried[0], lines + carried[1]],
            )
            return await cursor.fetchone()

        with _map_write_errors(f"tape {tape}"):
            try:
                done = await self._database.transact(work, seconds=_LONG)
            finally:
                forget_state(tape)
        outcome, first, last = done or ("missing", 0, 0)
        _see(tape, outcome, expect, last)
        return self._names.next_segment(tape, first, last, now)

    async def _dropped(self, connection: Connection, datas: list[bytes], live: int) -> int:
        """Return the id of the last entry that a reset dropped, from the live part's header."""
        cursor = await connection.execute(_HEADER, [*datas, live])
        row = await cursor.fetchone()
        head = None if row is None else entry_of(live, bytes(row[0]))
        return 0 if head is None else last_dropped(head)

    async def fork(
        self, parent: str, child: str, first: int | None, to: int | None, title: str | None
    ) -> None:
        """Create a tape with a copy of another tape's entries from one on, to another."""
        once = uuid4()
        while True:
            begin = await self._reader.read_page(
                parent, 1 if first is None else first, MAX_ROW_ID, 1
            )
            last = begin.version if to is None else min(begin.version, to)
            head = fork_header(child, title, forked_part(parent, begin.entries, first, last))
            packed = await _packed(stamp([head], self._clock))
            with _map_write_errors(f"tape {child}"):
                [(outcome,)] = await self._call(
                    *(_FORK, parent, text_to_bytea(child), _optional(title), begin.live),
                    *(head.id, last, once, *packed),
                    seconds=_LONG,
                )
            forget_state(child)
            _see(parent, outcome, None, 0)
            if outcome == "exists":
                raise TapeExists(_("there is a tape {child} already", child=child))
            if outcome == "done":
                return

    async def erase(self, tape: str, tombstones: Sequence[TapeEntry]) -> int:
        """Replace entries by tombstones; return how many did not equal them yet."""
        wanted = await anyio.to_thread.run_sync(index_tombstones, tombstones)
        once = uuid4()
        while True:
            state = await self._reader.state(tape)
            heads = {
                state.live,
                *(segment.first_id for segment in await self._reader.segments(tape)),
            }
            seen = await self._reader.read_by_ids(tape, list(wanted))
            held = {entry.id: entry for entry in seen.entries}
            changed = await anyio.to_thread.run_sync(pending_tombstones, tape, wanted, held, heads)
            if not changed:
                return 0
            if await self._replace(tape, changed, state.live, state.erasures, once):
                return len(changed)

    async def restore(
        self,
        tape: str,
        pages: AsyncIterable[Sequence[TapeEntry]],
        *,
        title: str | None,
        version: int,
        segments: Sequence[Segment],
    ) -> None:
        """Create a complete tape in one transaction; see ``PostgresTapeStore.restore``."""
        sealed = segments[-1].last_id if segments else 0
        named = [self._workspace, text_to_bytea(tape), _optional(title)]
        with _map_write_errors(f"tape {tape}"):
            # A long transaction has its own connection, and is not retried halfway.
            async with (
                self._database.dedicated_connection() as connection,
                connection.transaction(),
            ):
                await _see_names(connection, tape, segments)
                made = await connection.execute(_MAKE, [*named, version, sealed + 1, uuid4()])
                row = await made.fetchone()
                if row is None:
                    raise TapeExists(_("there is a tape {tape} already", tape=tape))
                live = None
                async for page in pages:
                    await _put(connection, row[0], page)
                    if live is None:
                        live = next((entry.id for entry in page if entry.id > sealed), None)
                if live is None:
                    raise TapeWriteError(
                        f"tape {tape} has no readable entry after its last segment"
                    )
                await connection.execute(_BEGIN_AT, [live, row[0]])
                for segment in segments:
                    await connection.execute(
                        _SEAL, [row[0], segment.first_id, segment.last_id, segment.name]
                    )

    async def _replace(
        self, tape: str, tombstones: Sequence[TapeEntry], live: int, erasures: int, once: UUID
    ) -> bool:
        _, lines = await _packed(tombstones)
        head = next(
            (entry for entry in tombstones if entry.id == live and entry.name == HEADER_EVENT), None
        )
        title = None if head is None else header_title(head)
        with _map_write_errors(f"tape {tape}"):
            [(outcome,)] = await self._call(
                *(_ERASE, tape, live, erasures, once, [entry.id for entry in tombstones]),
                *(lines, head is not None, _optional(title)),
                seconds=_LONG,
            )
        _see(tape, outcome, None, 0)
        return bool(outcome == "done")

    async def _call(self, sql: str, tape: str, *values: Any, seconds: float = 10.0) -> list[Row]:
        given = [self._workspace, text_to_bytea(tape), *values]
        try:
            return await self._database.fetch(sql, given, seconds=seconds)
        finally:
            forget_state(tape)


def pack(entries: Sequence[TapeEntry]) -> Columns:
    """Return the kinds and lines of entries, as the SQL functions take them.

    Raises:
        InvalidEntry: An entry would not read back exactly.
    """
    lines = [encode_line(replace(entry, id=_ANY_ID))[:-1] for entry in entries]
    return [entry.kind for entry in entries], lines


async def _packed(entries: Sequence[TapeEntry]) -> Columns:
    if len(entries) >= _MANY:
        return await anyio.to_thread.run_sync(pack, entries)
    return pack(entries)


def _see(tape: str, outcome: str, expect: int | None, version: int) -> None:
    """Raise if a change was refused; other outcomes mean that it was made, or must be retried.

    Raises:
        TapeNotFound: There is no such tape.
        VersionConflict: The tape's version is not the expected one.
    """
    if outcome == "missing":
        raise TapeNotFound(_("there is no tape {tape}", tape=tape))
    if outcome == "conflict":
        check_version(tape, expect, version)


def _optional(text: str | None) -> bytes | None:
    return None if text is None else text_to_bytea(text)


@contextmanager
def _map_write_errors(what: str) -> Iterator[None]:
    """Map errors of a write.

    Raises:
        TapeWriteError: The write failed, or its outcome is unknown.
    """
    try:
        yield
    except DatabaseUnavailable as error:
        raise TapeWriteError(
            f"{what} could not be written: {error}; it may or may not be on the tape: check before "
            "writing it again"
        ) from error
    except psycopg.Error as error:
        raise TapeWriteError(
            f"{what} could not be written, and nothing of it was: the database says: {server_message(error)}"
        ) from error


async def _see_names(connection: Connection, tape: str, segments: Sequence[Segment]) -> None:
    """Check that no other tape has segments of these names."""
    names = [segment.name for segment in segments]
    found = await connection.execute(
        "select name from tapebot.segment where name = any (%s)", [names]
    )
    if row := await found.fetchone():
        raise TapeExists(
            _("tape {tape}: the database holds a segment {row} already", tape=tape, row=row[0])
        )


async def _put(connection: Connection, number: int, page: Sequence[TapeEntry]) -> None:
    for run in _runs(page):
        packed = await anyio.to_thread.run_sync(pack, run)
        await connection.execute(_PUT, [number, run[0].id - 1, *packed])


def _runs(page: Sequence[TapeEntry]) -> Iterator[list[TapeEntry]]:
    """Yield runs of entries with consecutive ids."""
    placed = enumerate(page)
    for _unused, run in groupby(placed, key=lambda one: one[1].id - one[0]):
        yield [entry for _unused, entry in run]
