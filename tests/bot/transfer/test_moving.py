"""Everything that a home holds can be moved, and arrives as it was."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Literal

import anyio
import pytest
from databases import drop, fresh_database
from moving_homes import fill_home, held
from psycopg.conninfo import make_conninfo

from bot.bus.postgres import PostgresBus
from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from bot.core.errors import TapeLocked
from bot.tape.entries import message
from bot.tape.stores.file import FileTapeStore
from bot.transfer.database_storage import APPLICATION_NAME, DatabaseHomeStorage
from bot.transfer.file_storage import FileHomeStorage
from bot.transfer.migration import migrate_home
from bot.transfer.storage import HomeStorage, in_order

pytestmark = pytest.mark.slow


class Said:
    """What a move told."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def __call__(self, word: str, text: str) -> None:
        self.lines.append((word, text))

    def of(self, word: str) -> list[str]:
        return [text for said, text in self.lines if said == word]


def bytes_of(home: Path) -> dict[str, bytes]:
    """Return all files but locks."""
    files = (path for path in home.rglob("*") if path.is_file())
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in files
        if path.name not in (".lock", ".owner")
    }


Kind = Literal["files", "postgres"]


class Places:
    """Empty places to move to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = count()
        self._open = AsyncExitStack()
        self._urls: list[str] = []

    async def make(self, kind: Kind) -> HomeStorage:
        """Return a place that holds nothing yet, held for this test alone."""
        if kind == "files":
            files = FileHomeStorage(self.folder / f"home-{next(self._numbers)}")
            self._open.enter_context(files.lock())
            return files
        url = fresh_database()
        self._urls.append(url)
        database = Database(make_conninfo(url, application_name=APPLICATION_NAME))
        await database.open()
        self._open.push_async_callback(database.close)
        place = DatabaseHomeStorage(database, Wakeups(database))
        await self._open.enter_async_context(place.lock())
        return place

    async def close(self) -> None:
        await self._open.aclose()
        for url in self._urls:
            drop(url)


@pytest.fixture
async def places(tmp_path: Path) -> AsyncIterator[Places]:
    made = Places(tmp_path)
    yield made
    await made.close()


@pytest.fixture(params=["files", "postgres"])
async def target(request: pytest.FixtureRequest, places: Places) -> HomeStorage:
    return await places.make(request.param)


@pytest.fixture
async def source(tmp_path: Path) -> FileHomeStorage:
    await fill_home(tmp_path / "source")
    return FileHomeStorage(tmp_path / "source")


async def test_all_that_a_home_holds_arrives_and_the_home_stays_as_it_was(source, target, tmp_path):
    before, said = bytes_of(tmp_path / "source"), Said()
    moved = await migrate_home(source, target, say=said)
    assert await held(source) == await held(target)
    assert (moved.differing, moved.tapes, moved.copied) == (0, 3, 9)
    assert bytes_of(tmp_path / "source") == before
    again = Said()
    assert (await migrate_home(source, target, say=again)).digest == moved.digest
    assert again.of("moved") == []
    assert sorted(again.of("there")) == sorted(said.of("moved")[1:4])


async def test_messages_that_wait_are_worked_in_order_as_given_out_before(source, places):
    there = await places.make("postgres")
    await migrate_home(source, there, say=Said())
    bus = PostgresBus(
        there.database,
        Wakeups(there.database),
        holder="here",
        max_queued_messages=100,
        exports=places.folder,
    )
    wanted = (await source.read_bus_state()).messages
    found, again = [], set()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bus.run)
        with anyio.fail_after(20):
            for _ in range(len({one.session for _, one in wanted})):
                inbox = await bus.claim()
                for _ in range(sum(one.session == inbox.session for _, one in wanted)):
                    delivery = await inbox.receive()
                    found.append((delivery.accepted_at, delivery.inbound))
                    again.add(delivery.redelivered)
                    await delivery.ack()
        first = wanted[0][1]
        assert (await bus.channel("telegram").publish(first)).duplicate
        assert not (await bus.channel("telegram").publish(replace(first, id="new"))).duplicate
        tasks.cancel_scope.cancel()
    await bus.aclose()
    assert in_order(found) == wanted
    assert again == {True}


async def test_what_differs_is_named_and_then_nothing_at_all_is_copied(source, target, places):
    other = FileTapeStore(places.folder / "other" / "tapes", sync=False)
    await other.create_tape("telegram:42", "Ada's talk")
    await other.append("telegram:42", message("user", "another time"))
    await other.close()
    await migrate_home(FileHomeStorage(places.folder / "other"), target, say=Said())
    before, said = await held(target), Said()
    moved = await migrate_home(source, target, say=said)
    assert (moved.differing, moved.copied) == (1, 0)
    assert said.of("differs") == ["telegram:42: it ends with entry 12 here and with 2 there"]
    assert await held(target) == before


async def test_a_dry_run_names_everything_and_writes_nothing(source, target):
    before, said = await held(target), Said()
    moved = await migrate_home(source, target, say=said, dry_run=True)
    assert await held(target) == before
    assert moved.copied == len(said.of("would move")) == 7
    assert any(
        line.startswith("telegram:42: up to entry 12, 2 sealed") for line in said.of("would move")
    )


async def test_a_database_that_somebody_uses_is_not_moved(places):
    url = fresh_database()
    running = Database(url)
    await running.open()
    mover = Database(make_conninfo(url, application_name=APPLICATION_NAME))
    await mover.open()
    place = DatabaseHomeStorage(mover, Wakeups(mover))
    try:
        with pytest.raises(TapeLocked, match="connected from"):
            async with place.lock():
                pass
        await running.close()
        await mover.fetch("select tapebot.lease_take('channel/telegram', 'gateway-1', 60)")
        with pytest.raises(TapeLocked, match="channel/telegram is held by gateway-1"):
            async with place.lock():
                pass
    finally:
        await mover.close()
        drop(url)


async def test_files_that_a_bot_runs_on_are_not_moved(tmp_path):
    store = FileTapeStore(tmp_path / "tapes")
    with pytest.raises(TapeLocked), FileHomeStorage(tmp_path).lock():
        pass
    await store.close()
