"""Databases for tests, on a real PostgreSQL: one server for each process of tests, a database for each test."""

from __future__ import annotations

import atexit
from functools import cache

import anyio

from bot.database.connections import Database
from bot.database.schema import migrate
from bot.testing.postgres import PostgresServer


@cache
def server() -> PostgresServer:
    """The server of this process; it ends with it."""
    one = PostgresServer()
    atexit.register(one.close)
    one.start()
    return one


@cache
def _template() -> str:
    url = server().create()

    async def set_up() -> None:
        database = Database(url)
        await database.open()
        try:
            await migrate(database)
        finally:
            await database.close()

    # Tests call this from their event loop.
    from threading import Thread

    thread = Thread(target=anyio.run, args=[set_up])
    thread.start()
    thread.join()
    return url.rpartition("/")[2]


def fresh_database() -> str:
    """Return the address of a database that is set up and empty."""
    return server().create(_template())


def drop(url: str) -> None:
    """Remove a database again."""
    server().drop(url)
