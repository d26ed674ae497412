"""What is in use or differs is not moved, and then nothing is; whole homes are moved in other tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from exchange_files import tapes
from psycopg.conninfo import make_conninfo

from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from bot.core.errors import TapeLocked
from bot.tape.entries import message
from bot.tape.stores.file import FileTapeStore
from bot.transfer.database_home import APPLICATION_NAME, DatabaseHome
from bot.transfer.file_home import FileHome
from bot.transfer.migration import Migration

pytestmark = pytest.mark.slow


@pytest.fixture
async def place(url: str) -> AsyncIterator[tuple[DatabaseHome, str]]:
    """An empty database, as a move sees it, and its address."""
    database = Database(make_conninfo(url, application_name=APPLICATION_NAME))
    await database.open()
    yield DatabaseHome(database, Wakeups(database)), url
    await database.close()


async def said(home: Path, *texts: str) -> FileHome:
    async with tapes(home) as store:
        await store.create_tape("telegram:42")
        await store.append_many("telegram:42", [message("user", text) for text in texts])
    return FileHome(home)


async def test_what_differs_is_named_and_then_nothing_at_all_is_copied(tmp_path, place):
    target, _ = place
    told: list[tuple[str, str]] = []
    await Migration(await said(tmp_path / "a", "one"), target, lambda *_: None).run()
    before = await target.tapes.read("telegram:42")
    source = await said(tmp_path / "b", "one", "two")
    async with tapes(tmp_path / "b") as store:
        await store.create_tape("telegram:43")
    moved = Migration(source, target, lambda *line: told.append(line))
    await moved.run()
    assert (moved.differing, moved.copied) == (1, 0)
    assert ("differs", "telegram:42") in [(word, text.partition(": ")[0]) for word, text in told]
    assert await target.tapes.read("telegram:42") == before
    assert await target.tapes.list_tapes() == ["telegram:42"]


async def test_a_database_that_somebody_uses_is_not_moved(place):
    target, url = place
    running = Database(url)
    await running.open()
    with pytest.raises(TapeLocked, match="connected from"):
        async with target.lock():
            pass
    await running.close()
    take = "select tapebot.lease_take('channel/telegram', 'gateway-1', 60)"
    await target.database.fetch(take)
    with pytest.raises(TapeLocked, match="channel/telegram is held by gateway-1"):
        async with target.lock():
            pass


async def test_files_that_a_bot_runs_on_are_not_moved(tmp_path):
    store = FileTapeStore(tmp_path / "tapes")
    with pytest.raises(TapeLocked), FileHome(tmp_path).lock():
        pass
    await store.close()
