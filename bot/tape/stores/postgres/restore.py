"""Restore a tape with its original ids, times and segments in one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterator, Sequence
from itertools import groupby
from uuid import uuid4

import anyio.to_thread

from bot.core.database.connections import Connection, Database
from bot.core.errors import TapeExists, TapeWriteError
from bot.tape.codec import TapeLine
from bot.tape.store import Segment
from bot.tape.stores.postgres.error_mapping import map_write_errors
from bot.tape.stores.postgres.rows import pack, text_to_bytea

_MAKE = """
insert into tapebot.tape (workspace, name, title, version, live, made_by)
    values (%s, %s, %s::bytea, %s, %s, %s) on conflict do nothing returning id
"""
_SEAL = "insert into tapebot.segment (tape, first_id, last_id, name) values (%s, %s, %s, %s)"
_PUT = """
select tapebot.restore_entries(
    %s, %s, %s::text[], %s::bytea[], %s::bytea[], %s::jsonb, %s::int[], %s::bytea[])
"""
_BEGIN_AT = "update tapebot.tape set live = %s where id = %s"


async def restore_tape(
    database: Database,
    workspace: str,
    tape: str,
    *,
    title: str | None,
    version: int,
    segments: Sequence[Segment],
    lines: AsyncIterable[Sequence[TapeLine]],
) -> None:
    """Create a complete tape; others see it only then.

    Args:
        database: The database.
        workspace: The tape's workspace.
        tape: The session's key.
        title: A title to display.
        version: The newest id in use.
        segments: The sealed segments, oldest first; entries after them are live.
        lines: Batches of entries with their links, in order of ids; ids may be missing.

    Raises:
        TapeExists: A tape of this name, or a segment of one of these names, exists.
        InvalidEntry: An entry would not read back exactly.
        TapeWriteError: The database failed or is unreachable; the tape was not created, unless the
            connection broke at the very end.
    """
    sealed = segments[-1].last_id if segments else 0
    named = [
        text_to_bytea(workspace),
        text_to_bytea(tape),
        None if title is None else text_to_bytea(title),
    ]
    with map_write_errors(f"tape {tape}"):
        # A long transaction has its own connection, and is not retried halfway.
        async with database.dedicated_connection() as connection, connection.transaction():
            await _see_names(connection, tape, segments)
            made = await connection.execute(_MAKE, [*named, version, sealed + 1, uuid4()])
            row = await made.fetchone()
            if row is None:
                raise TapeExists(f"there is a tape {tape} already")
            live = None
            async for page in lines:
                await _put(connection, row[0], tape, page)
                if live is None:
                    live = next((one.entry.id for one in page if one.entry.id > sealed), None)
            if live is None:
                raise TapeWriteError(f"tape {tape} has no readable entry after its last segment")
            await connection.execute(_BEGIN_AT, [live, row[0]])
            for one in segments:
                await connection.execute(_SEAL, [row[0], one.first_id, one.last_id, one.name])


async def _see_names(connection: Connection, tape: str, segments: Sequence[Segment]) -> None:
    """Check that no other tape has segments of these names."""
    names = [one.name for one in segments]
    found = await connection.execute(
        "select name from tapebot.segment where name = any (%s)", [names]
    )
    if row := await found.fetchone():
        raise TapeExists(f"tape {tape}: the database holds a segment {row[0]} already")


async def _put(connection: Connection, number: int, tape: str, page: Sequence[TapeLine]) -> None:
    for run in _runs(page):
        entries = [line.entry for line in run]
        packed = await anyio.to_thread.run_sync(pack, tape, entries)
        mores = [line.link.more if line.link else None for line in run]
        links = [line.link.to_bytes() if line.link else None for line in run]
        place = [number, entries[0].id - 1]
        await connection.execute(_PUT, [*place, *packed.arguments, mores, links])


def _runs(page: Sequence[TapeLine]) -> Iterator[list[TapeLine]]:
    """Yield runs of lines with consecutive ids."""
    placed = enumerate(page)
    for _, run in groupby(placed, key=lambda one: one[1].entry.id - one[0]):
        yield [line for _, line in run]
