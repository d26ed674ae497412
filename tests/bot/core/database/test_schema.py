"""The database's tables are created once, and those of something else are never touched."""

from __future__ import annotations

import anyio
import pytest
from databases import drop, server

from bot.core.database.connections import Database
from bot.core.database.schema import check_schema, create_schema, has_schema
from bot.core.errors import DatabaseOutdated


@pytest.fixture
async def database():
    url = server().create()
    opened = Database(url)
    await opened.open()
    yield opened
    await opened.close()
    drop(url)


async def test_an_empty_database_is_refused_until_it_is_set_up(database):
    with pytest.raises(DatabaseOutdated, match="tapebot db create"):
        await check_schema(database)
    assert await create_schema(database)
    await check_schema(database)
    assert not await create_schema(database)


async def test_many_that_create_the_tables_at_once_do_it_once(database):
    made = []

    async def one():
        made.append(await create_schema(database))

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(one)
    assert sorted(made) == [False, False, False, True]


async def test_tables_of_a_newer_version_and_of_something_else_are_refused(database):
    await create_schema(database)
    for change, told in (
        ("update tapebot.about set version = 999", "newer version"),
        ("update tapebot.about set version = 1, digest = 'x'", "another database"),
        ("drop table tapebot.about", "another database"),
    ):
        await database.fetch(change)
        for work in (check_schema, create_schema, has_schema):
            with pytest.raises(DatabaseOutdated, match=told):
                await work(database)
