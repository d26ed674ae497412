"""Databases for tests, on a real PostgreSQL: one server for the whole run, a database for each test."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Thread

import anyio
from filelock import FileLock

from bot.core.database.connections import Database
from bot.core.database.schema import create_schema
from testkit.postgres import PostgresServer, RunningPostgres

RUN = "TESTS_RUN_FOLDER"
"""Names the folder that all processes of a run of tests share."""

WAITING = "select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
"""Asks who waits for a lock in this database; other tests wait for theirs on the same server."""

_FILE = "postgres.json"
_children: list[PostgresServer] = []


@cache
def server() -> RunningPostgres:
    """The server of this run. Whoever needs it first starts it; it ends with the run."""
    told = _told()
    return RunningPostgres(Path(told["folder"]), told["port"])


def fresh_database() -> str:
    """Return the address of a database that is set up and empty."""
    return server().create(_told()["template"])


def drop(url: str) -> None:
    server().drop(url)


def end_server(run: Path) -> None:
    if (run / _FILE).exists():
        told = json.loads((run / _FILE).read_text())
        RunningPostgres(Path(told["folder"]), told["port"]).close()


@cache
def _told() -> dict[str, str | int]:
    run = Path(os.environ[RUN])
    with FileLock(run / "postgres.lock"):
        if not (run / _FILE).exists():
            _start(run / _FILE)
        found: dict[str, str | int] = json.loads((run / _FILE).read_text())
    return found


@contextmanager
def server_of_its_own() -> Iterator[tuple[PostgresServer, str]]:
    """Give a server that may be stopped and restarted, and the address of a database that is set up and empty."""
    started, url = _started()
    try:
        yield started, url
    finally:
        started.close()


def _started() -> tuple[PostgresServer, str]:
    started = PostgresServer()
    started.start()
    url = started.create()
    # Tests call this from their event loop.
    thread = Thread(target=anyio.run, args=[_set_up, url])
    thread.start()
    thread.join()
    return started, url


def _start(file: Path) -> None:
    started, url = _started()
    _children.append(started)  # it would be missed: it outlives this process
    told = {"folder": str(started.folder), "port": started.port, "template": url.rpartition("/")[2]}
    file.write_text(json.dumps(told))


async def _set_up(url: str) -> None:
    database = Database(url)
    await database.open()
    try:
        await create_schema(database)
    finally:
        await database.close()
