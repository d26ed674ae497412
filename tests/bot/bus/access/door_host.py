"""A door in a process of its own, which lets people in: ``PLACE FIRST``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from bot.bus import AccessRequest, Address, Sender
from bot.bus.access.control import open_access_control
from bot.bus.access.postgres_store import PostgresAccessStore
from bot.bus.access.store import AccessStore
from bot.core.database.connections import Database


@asynccontextmanager
async def at(place: Path | str, **how) -> AsyncIterator[Path | AccessStore]:
    """Yield what a door is opened on: a home folder, or the book of a database's address."""
    if isinstance(place, Path):
        yield place
        return
    database = Database(place, connections=4, **how)
    await database.open()
    try:
        yield PostgresAccessStore(database)
    finally:
        await database.close()


def door_host(place: Path | str, first: int) -> subprocess.Popen[str]:
    """Start one that lets in whoever has this number and more, and prints who is in."""
    return subprocess.Popen(
        [sys.executable, __file__, str(place), str(first)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


async def main(place: Path | str, first: int) -> None:
    async with (
        at(place) as opened,
        open_access_control(opened, owners=("telegram:1",)) as access_control,
    ):
        for number in range(first, 1 << 30):
            user = str(number)
            access_request = AccessRequest(
                Address("telegram", user), Sender(user, "Eve"), True, (user,), "hello"
            )
            reply = (await access_control.authorize(access_request)).reply
            assert reply is not None
            await access_control.approve(reply.split("/pair ")[1].split()[0])
            sys.stdout.write(user + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    where = sys.argv[1]
    anyio.run(main, where if "://" in where else Path(where), int(sys.argv[2]))
