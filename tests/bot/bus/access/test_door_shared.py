"""One roster for many processes: a change counts for all at once, and none is lost."""

from __future__ import annotations

import os
import re
import signal
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.to_thread
import psycopg
import pytest
from databases import drop, fresh_database
from door_host import at, door_host
from waiting import until

from bot.bus import AccessDecision, AccessRequest, Address, BusError, Sender
from bot.bus.access.access_list import AccessList
from bot.bus.access.codes import CLAIM_CODE_LENGTH, is_code
from bot.bus.access.control import open_access_control
from bot.bus.access.messages import OWNED
from bot.bus.access.store import encode
from bot.core.errors import SettingsError
from bot.testing.manual_clock import ManualClock
from testkit.postgres import PostgresServer

pytestmark = pytest.mark.slow


@pytest.fixture
def url():
    url = fresh_database()
    yield url
    drop(url)


def private(user: str, text: str | None = "hello") -> AccessRequest:
    return AccessRequest(Address("telegram", user), Sender(user, "Eve"), True, (user,), text)


@asynccontextmanager
async def opened(url: str, *, owners=("telegram:1",), **how):
    with anyio.fail_after(60):
        async with (
            at(url, **how) as book,
            open_access_control(book, owners=owners, clock=ManualClock()) as access_control,
        ):
            yield access_control


@asynccontextmanager
async def two(url: str, **how):
    async with opened(url, **how) as one, opened(url, **how) as other:
        yield one, other


async def code_for(access_control, user: str) -> str:
    found = re.search(r"pair (\S+)", (await access_control.authorize(private(user))).reply or "")
    assert found is not None
    return found[1]


async def test_whom_one_process_lets_in_is_in_everywhere_at_once_and_out_at_once(url):
    async with two(url) as (one, other):
        assert await other.approve(await code_for(one, "9")) is not None
        assert (
            await one.authorize(private("9"))
            == await other.authorize(private("9"))
            == AccessDecision("member")
        )
        assert [person.person for person in (await one.overview()).members] == ["telegram:9"]
        assert await one.remove("telegram:9") == "removed"
        assert (await other.authorize(private("9"))).role is None


async def test_two_doors_that_let_people_in_at_once_lose_nobody(url):
    users = [str(number) for number in range(100, 120)]
    async with two(url) as doors, anyio.create_task_group() as tasks:
        for access_control in doors:
            for user in users[doors.index(access_control) :: 2]:

                async def let_in(access_control=access_control, user=user) -> None:
                    assert (
                        await access_control.approve(await code_for(access_control, user))
                        is not None
                    )

                tasks.start_soon(let_in)
    async with opened(url) as access_control:
        assert sorted(one.person for one in (await access_control.overview()).members) == [
            f"telegram:{user}" for user in users
        ]


async def test_a_code_that_is_approved_in_two_processes_lets_in_once(url):
    async with two(url) as (one, other):
        code, paired = await code_for(one, "9"), []

        async def approve(access_control) -> None:
            paired.append(await access_control.approve(code))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(approve, one)
            tasks.start_soon(approve, other)
        assert [one.person for one in paired] == ["telegram:9"] * 2
        assert len((await one.overview()).members) == 1


async def test_the_claim_code_is_one_for_all_processes_and_outlives_them(url):
    async with two(url, owners=()) as (one, other):
        code = one.claim_code
        assert code == other.claim_code
        assert is_code(code or "", CLAIM_CODE_LENGTH)
    async with two(url, owners=()) as (one, other):
        assert one.claim_code == code
        assert await other.authorize(private("9", f"/claim {code}")) == AccessDecision(None, OWNED)
        assert await one.authorize(private("9")) == AccessDecision("owner")
        assert one.claim_code is None
        assert (await one.authorize(private("8", f"/claim {code}"))).reply != OWNED


async def test_of_two_who_claim_in_two_processes_at_once_one_wins(url):
    won = []
    async with two(url, owners=()) as doors:
        code = doors[0].claim_code

        async def claim(access_control, user: str) -> None:
            if (await access_control.authorize(private(user, code))).reply == OWNED:
                won.append(f"telegram:{user}")

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(claim, doors[number % 2], str(100 + number))
        assert [one.person for one in (await doors[0].overview()).owners] == won
    assert len(won) == 1


@pytest.mark.slow
async def test_two_processes_that_let_people_in_lose_nobody_though_both_are_killed(url):
    def both() -> list[str]:
        with door_host(url, 1_000) as one, door_host(url, 2_000) as other:
            inside = [child.stdout.readline().strip() for _ in range(15) for child in (one, other)]
            for child in (one, other):
                os.kill(child.pid, signal.SIGKILL)
                inside += child.stdout.read().split()
            return inside

    inside = await anyio.to_thread.run_sync(both)
    async with opened(url) as access_control:
        for user in inside:
            assert await access_control.authorize(private(user)) == AccessDecision("member")
        assert (await access_control.authorize(private("5"))).role is None
    assert {user[0] for user in inside} == {"1", "2"}


async def test_a_damaged_roster_lets_nobody_in_and_is_not_written_over(url):
    def write(content: bytes) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            sql = "update tapebot.roster set content = %s, version = version || '.'"
            connection.execute(sql, [content])

    async with opened(url) as access_control:
        await anyio.to_thread.run_sync(write, b'{"version": 1, "people": [')
        with pytest.raises(BusError, match="nobody may use the bot"):
            await access_control.authorize(private("1"))
        with pytest.raises(SettingsError, match="is damaged or from another version"):
            async with opened(url):
                pass
        await anyio.to_thread.run_sync(write, encode(AccessList()))
        assert await access_control.authorize(private("1")) == AccessDecision("owner")


@pytest.mark.slow
async def test_while_the_database_is_away_nobody_is_let_in_and_afterwards_all_are_known():
    server = PostgresServer()
    server.start()
    try:
        url = server.create()
        await anyio.to_thread.run_sync(_migrated, url)
        async with opened(url, retry_seconds=0.5) as access_control:
            code = await code_for(access_control, "9")
            await access_control.approve(code)
            await anyio.to_thread.run_sync(server.stop, "immediate")
            refused = []

            async def refuse(act) -> None:
                with pytest.raises(BusError, match=r"cannot be read.*cannot be reached") as told:
                    await act
                refused.append(told)

            async with anyio.create_task_group() as tasks:
                for user in ("1", "9", "5"):
                    tasks.start_soon(refuse, access_control.authorize(private(user)))
                tasks.start_soon(refuse, access_control.approve(code))
            assert len(refused) == 4
            await anyio.to_thread.run_sync(server.start)
            assert await admitted(access_control, private("9")) == AccessDecision("member")
    finally:
        await anyio.to_thread.run_sync(server.close)


async def admitted(access_control, access_request: AccessRequest) -> AccessDecision:
    """Knock until the roster can be looked up: the door connects anew in its own time."""

    async def verdict() -> AccessDecision | None:
        with suppress(BusError):
            return await access_control.authorize(access_request)
        return None

    return await until(verdict, every=0.05)


def _migrated(url: str) -> None:
    from bot.core.database.connections import Database
    from bot.core.database.migrations import migrate

    async def run() -> None:
        database = Database(url)
        await database.open()
        try:
            await migrate(database)
        finally:
            await database.close()

    anyio.run(run)
