"""Exports of tapes made into tapes of a database, where other processes may be at work."""

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
    """Make a tape of an export.

    Args:
        path: What ``tapebot tape export --format jsonl`` wrote.
        store: The database's tapes.
        database: Where they are.
        workspace: That of the tapes.
        dry_run: Only look whether it could be done.

    Raises:
        TapeExists: There is a tape of this session; it is left as it is.
        InvalidEntry: The file is no whole export; the text names the line.
        TapeWriteError: The database refused; there is no new tape.
        OSError: The file cannot be read.
    """
    # Once to see that it is whole, and where it ends.
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
