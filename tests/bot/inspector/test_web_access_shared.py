"""Logins of several processes that share a database."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import pytest
from databases import drop, fresh_database

from bot.bus.access.control import open_access_control
from bot.bus.access.postgres_store import PostgresAccessStore
from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from bot.core.errors import HttpError
from bot.inspector.access.logins import LoginService
from bot.tape.stores.postgres import PostgresTapeStore
from bot.testing.manual_clock import ManualClock

pytestmark = pytest.mark.slow

URL = "https://bot.example.org"


@pytest.fixture
def address():
    made = fresh_database()
    yield made
    drop(made)


@asynccontextmanager
async def process(address: str):
    """What a process of its own has: connections, a store, a door, logins."""
    database = Database(address, connections=4)
    await database.open()
    try:
        store = PostgresTapeStore(database, Wakeups(database))
        clock, book = ManualClock(), PostgresAccessStore(database)
        async with open_access_control(book, owners=["telegram:42"], clock=clock) as access_control:
            yield LoginService(store, access_control, clock, URL)
    finally:
        await database.close()


async def test_a_link_of_one_process_is_used_once_in_all_and_a_logout_ends_it_in_all(address):
    async with process(address) as one, process(address) as other, process(address) as third:
        link = await one.create_login_link("telegram.42", "Ada")
        told: list[str] = []

        async def enter(logins: LoginService) -> None:
            try:
                told.append((await logins.log_in_with_link(link.partition("#")[2])).secret)
            except HttpError:
                told.append("refused")

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for logins in (one, other, third) * 3:
                    tasks.start_soon(enter, logins)
        assert told.count("refused") == 8
        [cookie] = [given for given in told if given != "refused"]
        for logins in (one, other, third):
            assert await logins.login_store.login(cookie) is not None
        token = await third.login_store.make_token("local", "backup")
        assert await one.login_store.token(token) is not None
        assert await other.login_store.end_logins(lambda _: True) == 1
        assert await other.login_store.end_token("local", "backup")
        for logins in (one, other, third):
            assert await logins.login_store.login(cookie) is None
            assert await logins.login_store.token(token) is None
