"""Webhooks behind a balancer: what any process receives is durable, Telegram's, and bounded."""

from __future__ import annotations

import io
import json
from contextlib import asynccontextmanager
from functools import partial

import aiohttp
import anyio
import psycopg
import pytest
from databases import drop, fresh_database
from telegram_rig import rigged
from waiting import until

from bot.bus.postgres_spool import PostgresSpool
from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from channels.telegram import parse_webhook_endpoint, receive_updates
from channels.telegram.webhook import webhook_secret
from testkit.ports import kept_port

pytestmark = pytest.mark.slow

HEADER = "X-Telegram-Bot-Api-Secret-Token"


class Fleet:
    """A gateway that receives into a spool in a database; the channel runs where the test says."""

    def __init__(self, rig, url: str, port: int, opened) -> None:
        self.rig, self.url, self._opened = rig, url, opened
        self.place = parse_webhook_endpoint(f"http://127.0.0.1:{port}", f"127.0.0.1:{port}")
        self.secret = webhook_secret(rig.telegram.token)

    @asynccontextmanager
    async def receiving(self, **most):
        receive = partial(
            receive_updates,
            "telegram",
            self.rig.telegram.token,
            endpoint=self.place,
            spool=self._opened(**most),
            access=self.rig.access_control,
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)

            async def refuses() -> bool:
                return await self.post({}, secret="") == 403

            await until(refuses)
            yield
            tasks.cancel_scope.cancel()

    async def post(self, update, *, secret: str | None = None) -> int | None:
        """Send an update as Telegram does; None where nobody listens."""
        url = self.place.url_for(self.rig.telegram.me.id)
        headers = {HEADER: self.secret if secret is None else secret}
        body = io.BytesIO(json.dumps(update).encode())
        async with aiohttp.ClientSession() as session:
            try:
                async with session.post(url, data=body, headers=headers) as answer:
                    return answer.status
            except aiohttp.ClientConnectionError:
                return None

    def kept(self) -> list[tuple]:
        """What the spool holds of updates that are not handled: number, and whether of a known person."""
        with psycopg.connect(self.url) as connection:
            return connection.execute(
                "select number, known from tapebot.spool where raw is not null order by 1"
            ).fetchall()


@pytest.fixture
async def fleet(tmp_path):
    url = fresh_database()
    database = Database(url, connections=6)
    await database.open()
    wakeups = Wakeups(database)
    opened = partial(PostgresSpool, database, wakeups, "telegram")
    try:
        with kept_port() as port:
            async with rigged(tmp_path) as rig, anyio.create_task_group() as tasks:
                tasks.start_soon(wakeups.run)
                rig.spool = opened()
                yield Fleet(rig, url, port, opened)
                tasks.cancel_scope.cancel()
    finally:
        await database.close()
    drop(url)


async def said(rig, text: str, user: int = 7) -> dict:
    """Return the update of a message that Telegram has not sent."""
    chat = rig.telegram.private(user)
    rig.telegram.say(chat, user, text)
    return rig.telegram.records.updates[-1].update


async def test_200_is_given_only_once_the_update_is_durable(fleet):
    update = await said(fleet.rig, "keep me")
    async with fleet.receiving():
        with psycopg.connect(fleet.url, autocommit=True) as connection:
            connection.execute("alter table tapebot.spool rename to away")
            assert await fleet.post(update) == 503
            connection.execute("alter table tapebot.away rename to spool")
        assert await fleet.post(update) == 200
    assert [number for number, _ in fleet.kept()] == [update["update_id"]]


async def test_nobody_but_telegram_can_put_anything_into_the_spool(fleet):
    update = await said(fleet.rig, "forged")
    async with fleet.receiving():
        assert await fleet.post(update, secret="wrong") == 403
        assert await fleet.post([1]) == 400
        assert await fleet.post({"update_id": 1 << 70}) == 200
        assert await fleet.post({"update_id": 5, "message": {"message_id": "x"}}) == 200
        assert fleet.kept() == []


async def test_strangers_in_groups_leave_nothing_and_those_in_private_only_so_much(fleet):
    rig = fleet.rig
    async with fleet.receiving(most_of_strangers=2):
        garden = rig.telegram.group(-1001, "Garden")
        rig.telegram.say(garden, 13, "@tape_bot let me in")
        assert await fleet.post(rig.telegram.records.updates[-1].update) == 200
        assert fleet.kept() == []
        codes = [await fleet.post(await said(rig, f"hello {one}", 13)) for one in range(4)]
        assert codes == [200, 200, 503, 503]
        assert [known for _, known in fleet.kept()] == [False, False]
        assert await fleet.post(await said(rig, "from the owner")) == 200
    async with rig.running(webhook=fleet.place):
        await rig.shown(rig.telegram.private(13), 2)
        assert await rig.shown(rig.chat, 1) == ["echo: from the owner"]
        await until(lambda: not fleet.kept())
