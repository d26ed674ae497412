"""Restore exported tapes to PostgreSQL, while other processes may use it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import islice
from pathlib import Path

import anyio.to_thread

from bot.core.database.connections import Database
from bot.core.errors import TapeExists, TapeNotFound
from bot.tape.codec import TapeLine
from bot.tape.store import TapeStore
from bot.tape.stores.postgres import restore as restoring
from bot.transfer.restore import RestoredTape, counted, open_export

_PORTION = 500


async def restore_to_database(
    path: Path, store: TapeStore, database: Database, workspace: str, *, dry_run: bool = False
) -> RestoredTape:
    """Restore a tape from an export.

    Args:
        path: A file written by ``tapebot tape export --format jsonl``.
        store: The tape store of the database.
        database: The database.
        workspace: The workspace of the tapes.
        dry_run: Only check whether it can be done.

    Raises:
        TapeExists: A tape of this session exists; it stays unchanged.
        InvalidEntry: The file is no complete export; the message names the line.
        TapeWriteError: The database failed; there is no new tape.
        OSError: The file cannot be read.
    """
    # A first pass checks the whole file and finds the last id.
    found = await anyio.to_thread.run_sync(_look, path)
    try:
        await store.version(found.session)
    except TapeNotFound:
        pass
    else:
        raise TapeExists(f"there is a tape {found.session} already; it is left as it is")
    if dry_run:
        return found
    with open_export(path) as (session, lines):
        first = await anyio.to_thread.run_sync(next, lines)
        title = first.entry.data.get("title")
        await restoring.restore_tape(
            database,
            workspace,
            session,
            title=title if isinstance(title, str) else None,
            version=found.last,
            segments=(),
            lines=_portions(first, lines),
        )
    return found


def _look(path: Path) -> RestoredTape:
    with open_export(path) as (session, lines):
        return counted(session, lines)


async def _portions(first: TapeLine, lines: Iterator[TapeLine]) -> AsyncIterator[list[TapeLine]]:
    portion = [first]
    while portion:
        yield portion
        portion = await anyio.to_thread.run_sync(lambda: list(islice(lines, _PORTION)))
