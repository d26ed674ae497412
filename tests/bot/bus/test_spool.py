"""What a channel may rely on of its spool, in a folder and in a database."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import psycopg
import pytest
from databases import drop, fresh_database

from bot.bus import BusError
from bot.bus.postgres_spool import PostgresSpool
from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from channels.folder_spool import FolderSpool

AWKWARD = {"update_id": 1, "text": "Grüße \x00 \ud83d \U0001f600"}


@asynccontextmanager
async def process(url: str):
    database = Database(url, connections=4)
    await database.open()
    wakeups = Wakeups(database)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wakeups.run)
            with anyio.fail_after(30):
                yield lambda channel="telegram", **most: PostgresSpool(
                    database, wakeups, channel, **most
                )
            tasks.cancel_scope.cancel()
    finally:
        await database.close()


@pytest.fixture
async def shared(url):
    async with process(url) as opened:
        yield opened


@pytest.fixture(params=["folder", pytest.param("postgres", marks=pytest.mark.slow)])
async def opened(request, tmp_path):
    """Opens the same spool again and again, as runs one after the other do."""
    if request.param == "folder":
        yield lambda: FolderSpool(tmp_path / "spool")
        return
    url = fresh_database()
    async with process(url) as opened:
        yield opened
    drop(url)


def kept(url: str) -> list[tuple]:
    with psycopg.connect(url) as connection:
        return connection.execute("select number, raw from tapebot.spool order by 1").fetchall()


async def test_what_was_put_is_there_after_a_restart_in_order_until_it_is_removed(opened):
    for number in (12, 3, 100, 3):
        await opened().store_claimed(number, AWKWARD)
    assert [number for number, _ in await opened().load()] == [3, 12, 100]
    await opened().remove(12)
    await opened().remove(12)
    assert await opened().load() == [(3, AWKWARD), (100, AWKWARD)]


@pytest.mark.slow
async def test_what_arrives_in_one_process_wakes_another_at_once_in_order(url, shared):
    found = []

    async def take() -> None:
        spool = shared()
        while len(found) < 3:
            batch = await spool.fetch_pending()
            found.extend(batch)
            await spool.delete_pending([number for number, _ in batch])

    async with process(url) as elsewhere, anyio.create_task_group() as tasks:
        tasks.start_soon(take)
        for number in (5, 6, 7):
            await elsewhere().store_pending(number, AWKWARD, known=True)
    assert found == [(5, AWKWARD), (6, AWKWARD), (7, AWKWARD)]


@pytest.mark.slow
async def test_what_was_handled_leaves_no_words_and_does_not_arrive_or_wait_again(url, shared):
    spool = shared()
    await spool.store_pending(1, AWKWARD, known=True)
    await spool.delete_pending([1])
    await spool.store_pending(2, AWKWARD, known=True)
    await spool.store_claimed(2, AWKWARD)
    await spool.remove(2)
    assert kept(url) == [(1, None), (2, None)]
    for number in (1, 2):
        await spool.store_pending(number, AWKWARD, known=True)
        await spool.store_claimed(number, AWKWARD)
    assert (await spool.fetch_pending(wait=False), await spool.load()) == ([], [])


@pytest.mark.slow
async def test_strangers_can_keep_only_so_much_and_keep_nobody_else_out(shared):
    spool = shared(most=5, most_of_strangers=2)
    for number in (1, 2):
        await spool.store_pending(number, AWKWARD, known=False)
    with pytest.raises(BusError, match="2 updates already wait for telegram"):
        await spool.store_pending(3, AWKWARD, known=False)
    await spool.store_pending(2, AWKWARD, known=False)
    for number in range(10, 15):
        await spool.store_pending(number, AWKWARD, known=True)
    with pytest.raises(BusError, match="5 updates already wait"):
        await spool.store_pending(15, AWKWARD, known=True)
    await spool.delete_pending([1])
    await spool.store_pending(3, AWKWARD, known=False)
    assert [number for number, _ in await spool.fetch_pending()] == [2, 3, 10, 11, 12, 13, 14]
