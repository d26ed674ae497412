"""The database's tables come to this version from any earlier one, and are never guessed at."""

from __future__ import annotations

import anyio
import pytest
from databases import drop, server

from bot.core.database.connections import Database
from bot.core.database.migrations import (
    check_schema_version,
    load_migrations,
    migrate,
    pending_migrations,
)
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
    with pytest.raises(DatabaseOutdated, match="tapebot db migrate"):
        await check_schema_version(database)
    assert await migrate(database) == [step.name for step in load_migrations()]
    await check_schema_version(database)
    assert await migrate(database) == []


@pytest.mark.parametrize("first", [1, len(load_migrations()) - 1])
async def test_from_every_earlier_step_it_goes_on_to_the_last(database, first):
    done = await migrate(database, upto=first)
    rest = await pending_migrations(database)
    assert await migrate(database) == rest
    assert done + rest == [step.name for step in load_migrations()]
    await check_schema_version(database)


async def test_many_that_migrate_at_once_do_it_once(database):
    ran = []

    async def one():
        ran.extend(await migrate(database))

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(one)
    assert ran == [step.name for step in load_migrations()]


async def test_a_newer_database_and_a_changed_one_are_refused(database):
    await migrate(database)
    await database.fetch("insert into tapebot.migration values (999, '0999_later.sql', 'x')")
    with pytest.raises(DatabaseOutdated, match="newer version"):
        await check_schema_version(database)
    await database.fetch("delete from tapebot.migration where number = 999")
    await database.fetch("update tapebot.migration set digest = 'x' where number = 1")
    with pytest.raises(DatabaseOutdated, match="step 1"):
        await migrate(database)
