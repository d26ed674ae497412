"""Opens stores of tapes in PostgreSQL for tests of what only they promise, and what is said there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio

from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from bot.tape.entries import TapeEntry, message
from bot.tape.stores.postgres import PostgresTapeStore

TAPE = "telegram:42"
PATIENCE = 30


def says(text: str) -> TapeEntry:
    return message("user", text)


def texts(entries: list[TapeEntry]) -> list[str]:
    return [entry.payload["content"] for entry in entries if entry.kind == "message"]


def gone(entry: TapeEntry) -> TapeEntry:
    return replace(entry, payload={"role": "user", "content": ""}, meta={})


@asynccontextmanager
async def opened(
    url: str,
    *,
    patience: float = 30.0,
    workspace: str = "",
    hears: bool = True,
    index: Path | None = None,
) -> AsyncIterator[PostgresTapeStore]:
    """Open a store as a process of its own would."""
    database = Database(url, retry_seconds=patience)
    await database.open()
    wakeups = Wakeups(database)
    try:
        async with anyio.create_task_group() as tasks:
            if hears:
                tasks.start_soon(wakeups.run)
            store = PostgresTapeStore(database, wakeups, workspace=workspace, index_folder=index)
            yield store
            await store.close()
            tasks.cancel_scope.cancel()
    finally:
        await database.close()
