"""Webhooks behind a balancer: any process receives, and the one that runs the channel handles."""

from __future__ import annotations

import io
import itertools
import json
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import anyio
import psycopg
import pytest
from aiohttp import web
from databases import drop, fresh_database
from telegram_rig import rigged
from waiting import until

from bot.bus.postgres_spool import PostgresSpool
from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from channels.telegram import WebhookEndpoint, parse_webhook_endpoint, receive_updates
from channels.telegram.webhook import webhook_secret
from testkit.ports import kept_port
from testkit.telegram.media_files import TelegramMedia

pytestmark = pytest.mark.slow

HEADER = "X-Telegram-Bot-Api-Secret-Token"


@asynccontextmanager
async def balancer(ports: list[int]):
    """Yield the address of what passes requests on to the next port that listens, by turns."""
    turns = itertools.cycle(ports)

    async def passed_on(request: web.Request) -> web.Response:
        headers = {HEADER: request.headers.get(HEADER, "")}
        for _ in ports:
            url = f"http://127.0.0.1:{next(turns)}{request.path}"
            try:
                async with session.post(url, data=await request.read(), headers=headers) as answer:
                    return web.Response(status=answer.status)
            except aiohttp.ClientConnectionError:
                continue
        return web.Response(status=502)

    app = web.Application()
    app.router.add_post("/{path:.*}", passed_on)
    runner = web.AppRunner(app)
    async with aiohttp.ClientSession() as session:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        [(host, port)] = runner.addresses
        try:
            yield f"http://{host}:{port}"
        finally:
            await runner.cleanup()


class Fleet:
    """Gateways that receive, behind a balancer; the channel runs where the test says."""

    def __init__(self, rig, url: str, address: str, ports: list[int], opened) -> None:
        self.rig = rig
        self.url = url
        self.ports = ports
        self.opened = opened
        self.place = WebhookEndpoint(address, "127.0.0.1", 0)
        self.secret = webhook_secret(rig.telegram.token)

    @asynccontextmanager
    async def receiving(self, which: int = 0, **most):
        async with anyio.create_task_group() as tasks:

            async def receive() -> None:
                await receive_updates(
                    "telegram",
                    self.rig.telegram.token,
                    endpoint=parse_webhook_endpoint(
                        self.place.url, f"127.0.0.1:{self.ports[which]}"
                    ),
                    spool=self.opened(**most),
                    access=self.rig.access_control,
                )

            tasks.start_soon(receive)

            async def refuses() -> bool:
                return await self.post({}, which, secret="") == 403

            await until(refuses)
            yield
            tasks.cancel_scope.cancel()

    async def post(self, update, which: int = 0, *, secret: str | None = None) -> int | None:
        """Send an update as Telegram does; None where nobody listens."""
        url = f"http://127.0.0.1:{self.ports[which]}/telegram/{self.rig.telegram.me.id}"
        headers = {HEADER: self.secret if secret is None else secret}
        body = io.BytesIO(json.dumps(update).encode())
        async with aiohttp.ClientSession() as session:
            try:
                async with session.post(url, data=body, headers=headers) as answer:
                    return answer.status
            except aiohttp.ClientConnectionError:
                return None

    def kept(self) -> list[tuple]:
        """What the spool holds of updates that are not handled: number, known, taken."""
        with psycopg.connect(self.url) as connection:
            return connection.execute(
                "select number, known, taken from tapebot.spool where raw is not null order by 1"
            ).fetchall()

    async def until_handled(self) -> None:
        await until(lambda: not self.kept())


@pytest.fixture
async def fleet(tmp_path):
    url = fresh_database()
    database = Database(url, connections=6)
    await database.open()
    wakeups = Wakeups(database)

    def opened(**most) -> PostgresSpool:
        return PostgresSpool(database, wakeups, "telegram", **most)

    try:
        with kept_port() as one, kept_port() as other:
            async with (
                rigged(tmp_path) as rig,
                balancer([one, other]) as address,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(wakeups.run)
                rig.spool = opened()
                yield Fleet(rig, url, address, [one, other], opened)
                tasks.cancel_scope.cancel()
    finally:
        await database.close()
    drop(url)


async def said(rig, text: str, user: int = 7) -> dict:
    """Return the update of a message that Telegram has not sent."""
    chat = rig.telegram.private(user)
    rig.telegram.say(chat, user, text)
    return rig.telegram.records.updates[-1].update


async def test_messages_that_come_by_turns_through_two_gateways_are_answered_in_order(fleet):
    rig = fleet.rig
    async with fleet.receiving(0), fleet.receiving(1), rig.running(webhook=fleet.place):
        for number in range(20):
            rig.telegram.say(rig.chat, 7, f"message {number}")
        assert await rig.shown(rig.chat, 20) == [f"echo: message {one}" for one in range(20)]
        await rig.telegram.until_confirmed()
        await fleet.until_handled()
    assert rig.telegram.records.called("getUpdates") == []
    assert len(rig.telegram.records.called("setWebhook")) == 1


async def test_a_gateway_that_dies_loses_nothing_of_what_it_received(fleet):
    rig = fleet.rig
    async with fleet.receiving(0), rig.running(webhook=fleet.place):
        async with fleet.receiving(1):
            rig.telegram.say(rig.chat, 7, "one")
            rig.telegram.say(rig.chat, 7, "two")
            await rig.shown(rig.chat, 2)
        rig.telegram.say(rig.chat, 7, "three")
        assert (await rig.shown(rig.chat, 3))[-1] == "echo: three"


async def test_an_update_that_both_gateways_get_at_once_and_again_later_is_handled_once(fleet):
    rig = fleet.rig
    update = await said(rig, "once")
    async with fleet.receiving(0), fleet.receiving(1), rig.running(webhook=fleet.place):
        codes = []

        async def post(which: int) -> None:
            codes.append(await fleet.post(update, which))

        async with anyio.create_task_group() as tasks:
            for which in (0, 1, 0, 1):
                tasks.start_soon(post, which)
        await rig.shown(rig.chat, 1)
        await fleet.until_handled()
        assert await fleet.post(update, 1) == 200
        assert fleet.kept() == []
        rig.telegram.say(rig.chat, 7, "after")
        await rig.shown(rig.chat, 2)
    assert codes == [200] * 4
    assert [one.text for one in rig.inbounds] == ["once", "after"]


async def test_200_is_given_only_once_the_update_is_durable(fleet):
    update = await said(fleet.rig, "keep me")
    async with fleet.receiving():
        with psycopg.connect(fleet.url, autocommit=True) as connection:
            connection.execute("alter table tapebot.spool rename to away")
            assert await fleet.post(update) == 503
            connection.execute("alter table tapebot.away rename to spool")
        assert await fleet.post(update) == 200
    assert [number for number, _, _ in fleet.kept()] == [update["update_id"]]


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
        assert [known for _, known, _ in fleet.kept()] == [False, False]
        assert await fleet.post(await said(rig, "from the owner")) == 200
    async with rig.running(webhook=fleet.place):
        await rig.shown(rig.telegram.private(13), 2)
        assert await rig.shown(rig.chat, 1) == ["echo: from the owner"]
        await fleet.until_handled()


async def test_an_album_that_comes_through_two_gateways_is_one_message(fleet):
    rig = fleet.rig
    # Each part is on its way through a balancer and a database.
    rig.timing = replace(rig.timing, message_group_wait=3.0)
    async with fleet.receiving(0), fleet.receiving(1), rig.running(webhook=fleet.place):
        items = [
            TelegramMedia("photo", b"1"),
            TelegramMedia("photo", b"22", caption="two"),
            TelegramMedia("photo", b"333"),
        ]
        rig.telegram.album(rig.chat, 7, items)
        [inbound] = await rig.arrived(1)
        await rig.shown(rig.chat, 1)
        await fleet.until_handled()
    assert (inbound.text, len(inbound.attachments)) == ("two", 3)
