"""One roster for many processes: a change counts for all at once, and where it cannot be read nobody is let in."""

from __future__ import annotations

import anyio
import anyio.to_thread
import psycopg
import pytest
from door_talk import code_in, opened, private

from bot.bus.access.messages import OWNED
from bot.bus.access.ports import AccessDecision
from bot.core.errors import BusError, SettingsError

pytestmark = pytest.mark.slow


async def test_whom_one_process_lets_in_is_in_everywhere_at_once_and_out_at_once(url):
    async with opened(url) as one, opened(url) as other:
        assert await other.approve(code_in(await one.authorize(private()))) is not None
        for door in (one, other):
            assert await door.authorize(private()) == AccessDecision("member")
        assert await one.remove("telegram:9") == "removed"
        assert (await other.authorize(private())).role is None


async def test_two_doors_that_let_people_in_at_once_lose_nobody(url):
    users = [str(number) for number in range(100, 116)]

    async def let_in(door, user: str) -> None:
        await door.approve(code_in(await door.authorize(private(user=user))))

    async with opened(url) as one, opened(url) as other, anyio.create_task_group() as tasks:
        for number, user in enumerate(users):
            tasks.start_soon(let_in, (one, other)[number % 2], user)
    async with opened(url) as door:
        members = sorted(one.person for one in (await door.overview()).members)
    assert members == [f"telegram:{user}" for user in users]


async def test_the_claim_code_is_one_for_all_processes_and_of_many_who_claim_one_wins(url):
    won = []
    async with opened(url, owners=()) as one, opened(url, owners=()) as other:
        code = one.claim_code
        assert code == other.claim_code is not None

        async def claim(door, user: str) -> None:
            if (await door.authorize(private(code, user=user))).reply == OWNED:
                won.append(f"telegram:{user}")

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(claim, (one, other)[number % 2], str(100 + number))
        assert [owner.person for owner in (await one.overview()).owners] == won
    assert len(won) == 1
    async with opened(url, owners=()) as door:
        assert door.claim_code is None


async def test_where_the_roster_cannot_be_read_nobody_is_let_in_and_it_is_not_written_over(url):
    def run(sql: str) -> list[tuple]:
        with psycopg.connect(url, autocommit=True) as connection:
            done = connection.execute(sql.encode())
            return done.fetchall() if done.description else []

    async with opened(url) as door:
        await door.approve(code_in(await door.authorize(private())))
        [(content,)] = await anyio.to_thread.run_sync(
            run, "select convert_from(content, 'UTF8') from tapebot.roster"
        )
        for damage in (
            "update tapebot.roster set content = '{', version = version || '.'",
            "alter table tapebot.roster rename to away",
        ):
            await anyio.to_thread.run_sync(run, damage)
            with pytest.raises(BusError):
                await door.authorize(private(user="1"))
            with pytest.raises((SettingsError, BusError)):
                async with opened(url):
                    pass
        whole = f"update tapebot.roster set content = '{content}', version = version || '.'"
        for mend in ("alter table tapebot.away rename to roster", whole):
            await anyio.to_thread.run_sync(run, mend)
        assert await door.authorize(private()) == AccessDecision("member")
