"""Writers are killed, the server is stopped at once: what was acknowledged is there once."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.to_thread
import psycopg
import pytest
from postgres_tapes import opened
from waiting import until

from bot.core.database.connections import Database
from bot.core.database.migrations import migrate
from bot.tape.store import TapeStore
from testkit.postgres import PostgresServer

HOST = Path(__file__).with_name("kill_postgres_host.py")
TAPE = "telegram:42"
NAME = "writer"


@pytest.fixture(scope="module")
def crashing() -> Iterator[PostgresServer]:
    """A server of our own, that may be stopped at once."""
    server = PostgresServer()
    server.start()
    yield server
    server.close()


def _set_up(server: PostgresServer) -> str:
    url = server.create()

    async def work() -> None:
        database = Database(url)
        await database.open()
        try:
            await migrate(database)
        finally:
            await database.close()

    anyio.run(work)
    return url


class Writer:
    """A process that appends, and what it was told."""

    def __init__(self, url: str, who: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HOST), f"{url}?application_name={NAME}", TAPE, who],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.acknowledged: dict[int, str] = {}

    def hear(self, lines: int) -> None:
        """Wait until it was told so many times more that something is written."""
        assert self._process.stdout is not None
        for _ in range(lines):
            self._take(self._process.stdout.readline())

    def kill(self) -> None:
        """Kill it; what it said before counts."""
        self._process.kill()
        rest, _ = self._process.communicate()
        for line in rest.splitlines(keepends=True):
            self._take(line)

    def _take(self, line: str) -> None:
        assert line, "the writer ended by itself"
        if not line.endswith("\n"):
            return
        for one in line.split():
            number, _, text = one.partition(":")
            assert int(number) not in self.acknowledged, "an id was given twice"
            self.acknowledged[int(number)] = text


async def until_gone(url: str) -> None:
    """Wait until the server has done what it was in the middle of for writers that are dead."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:

        async def gone() -> bool:
            cursor = await connection.execute(
                "select count(*) from pg_stat_activity where application_name like %s"
                " and datname = current_database()",
                [f"%{NAME}"],
            )
            return await cursor.fetchone() == (0,)

        await until(gone, every=0.02)


async def see(store: TapeStore, acknowledged: dict[int, str]) -> None:
    """See that all that was acknowledged is there, each text once, whole batches, ids without a gap."""
    read = await store.read(TAPE)
    assert [entry.id for entry in read] == list(range(1, await store.version(TAPE) + 1))
    held = {entry.id: entry.payload["content"] for entry in read if entry.kind == "message"}
    assert acknowledged.items() <= held.items()
    texts = Counter(held.values())
    assert texts.most_common(1)[0][1] == 1, "something was appended twice"
    for text in texts:
        who, number, _ = text.split(".")
        parts = {f"{who}.{number}.{part}" for part in range(int(number) % 4 + 1)}
        assert parts <= texts.keys(), "a batch is there in part"
    assert [entry async for entry in store.read_back(TAPE)] == read[::-1]


@pytest.mark.slow
async def test_writers_killed_and_a_server_that_crashes_lose_and_double_nothing_acknowledged(
    crashing,
):
    url = await anyio.to_thread.run_sync(_set_up, crashing)
    acknowledged: dict[int, str] = {}
    async with opened(url) as store:
        await store.create_tape(TAPE)
        for life in range(3):
            writers = [Writer(url, f"{life}{who}") for who in "ab"]
            try:
                for writer in writers:
                    await anyio.to_thread.run_sync(writer.hear, 30)
                await anyio.to_thread.run_sync(crashing.restart, "immediate")
                for writer in writers:
                    await anyio.to_thread.run_sync(writer.hear, 30)
                if life % 2:
                    await anyio.to_thread.run_sync(crashing.stop, "immediate")
            finally:
                for writer in writers:
                    await anyio.to_thread.run_sync(writer.kill)
            if life % 2:
                await anyio.to_thread.run_sync(crashing.start)
            for writer in writers:
                assert not acknowledged.keys() & writer.acknowledged.keys()
                acknowledged |= writer.acknowledged
            await until_gone(url)
            await see(store, acknowledged)
    assert len(acknowledged) > 300
