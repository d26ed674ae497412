"""Logins of several processes that share a database."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import pytest
from databases import drop, fresh_database

from bot.bus.access.door import open_door
from bot.bus.access.postgres_book import PostgresBook
from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from bot.core.errors import Refusal
from bot.inspector.access.logins import Logins
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
        clock, book = ManualClock(), PostgresBook(database)
        async with open_door(book, owners=["telegram:42"], clock=clock) as door:
            yield Logins(store, door, clock, URL)
    finally:
        await database.close()


async def test_a_link_of_one_process_is_used_once_in_all_and_a_logout_ends_it_in_all(address):
    async with process(address) as one, process(address) as other, process(address) as third:
        link = await one.offer_link("telegram.42", "Ada")
        told: list[str] = []

        async def enter(logins: Logins) -> None:
            try:
                told.append((await logins.enter_by_link(link.partition("#")[2])).secret)
            except Refusal:
                told.append("refused")

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for logins in (one, other, third) * 3:
                    tasks.start_soon(enter, logins)
        assert told.count("refused") == 8
        [cookie] = [given for given in told if given != "refused"]
        for logins in (one, other, third):
            assert await logins.ledger.login(cookie) is not None
        token = await third.ledger.make_token("local", "backup")
        assert await one.ledger.token(token) is not None
        assert await other.ledger.end(lambda _: True) == 1
        assert await other.ledger.end_token("backup")
        for logins in (one, other, third):
            assert await logins.ledger.login(cookie) is None
            assert await logins.ledger.token(token) is None
