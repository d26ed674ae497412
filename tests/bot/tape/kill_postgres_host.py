"""Appends to one tape in PostgreSQL until it is killed, and says what was acknowledged."""

from __future__ import annotations

import itertools
import sys
from contextlib import suppress

import anyio

from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from bot.core.errors import TapeWriteError, VersionConflict
from bot.tape.entries import message
from bot.tape.stores.postgres import PostgresTapeStore


async def main(url: str, tape: str, who: str) -> None:
    database = Database(url, connections=4)
    await database.open()
    store = PostgresTapeStore(database, Wakeups(database))
    numbers = itertools.count()

    async def speak(fenced: bool) -> None:
        for number in numbers:
            said = [f"{who}.{number}.{part}" for part in range(number % 4 + 1)]
            expect = await store.version(tape) if fenced else None
            with suppress(VersionConflict, TapeWriteError):
                entries = [message("user", text) for text in said]
                written = await store.append_many(tape, entries, expect=expect)
                told = [f"{entry.id}:{entry.payload['content']}" for entry in written]
                sys.stdout.write(" ".join(told) + "\n")
                sys.stdout.flush()
            if number % 40 == 39:
                await store.archive(tape)

    async with anyio.create_task_group() as tasks:
        for fenced in (True, False, False):
            tasks.start_soon(speak, fenced)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
