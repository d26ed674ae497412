"""Updates by webhook: confirmed when they are safe, from nobody but Telegram."""

from __future__ import annotations

import contextlib
import io
import socket

import aiohttp
import anyio
import pytest
from telegram_rig import rigged
from waiting import until

from bot.bus import BusError
from channels.telegram import WebhookEndpoint
from channels.telegram.webhook import webhook_secret

HEADER = "X-Telegram-Bot-Api-Secret-Token"


@pytest.fixture
async def rig(tmp_path):
    async with rigged(tmp_path) as rig:
        yield rig


@pytest.fixture
def place():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return WebhookEndpoint(f"http://127.0.0.1:{port}/", "127.0.0.1", port)


async def test_an_update_is_confirmed_only_after_its_message_is_on_the_bus(rig, place):
    rig.port().gate = anyio.Event()
    async with rig.running(webhook=place):
        rig.telegram.say(rig.chat, 7, "keep me")
        await rig.telegram.until(lambda books: books.updates[0].handed_at)
        assert rig.telegram.records.unconfirmed
        rig.port().gate.set()
        await rig.shown(rig.chat, 1)
        await rig.telegram.until_confirmed()


async def test_what_the_bus_refuses_during_a_stop_is_not_confirmed(rig, place):
    async def refuse_later() -> None:
        await anyio.sleep(0.1)
        rig.port().refusals.append(BusError("The disk is full."))
        rig.port().gate.set()

    rig.port().gate = anyio.Event()
    async with anyio.create_task_group() as tasks, rig.running(webhook=place):
        rig.telegram.say(rig.chat, 7, "keep me")
        await until(lambda: rig.access_control.knocks)
        tasks.start_soon(refuse_later)
    assert rig.telegram.records.unconfirmed
    async with rig.running(webhook=place):
        assert await rig.shown(rig.chat, 1) == ["echo: keep me"]


async def test_nobody_but_telegram_is_listened_to(rig, place):
    url = place.url_for(rig.telegram.me.id)
    secret = webhook_secret(rig.telegram.token)
    async with rig.running(webhook=place), aiohttp.ClientSession() as session:
        await rig.telegram.until(lambda books: books.called("setWebhook"))

        async def post(where: str, given: str | None, body: bytes) -> int:
            headers = {} if given is None else {HEADER: given}
            async with session.post(where, data=io.BytesIO(body), headers=headers) as answer:
                return answer.status

        good = b'{"update_id": 1}'
        assert await post(url, secret, good) == 200
        assert await post(url, None, good) == 403
        assert await post(url, "wrong\u00e9", good) == 403
        assert await post(url + "0", secret, good) == 404
        assert await post(url, secret, b"{") == 400
        assert await post(url, secret, b"[]") == 400
        assert await post(url, secret, b" " * (1024 * 1024 + 1)) == 413
        assert (await session.get(url)).status == 405
    assert rig.telegram.token.partition(":")[2] not in secret


async def test_from_webhook_to_polling_and_back_nothing_is_lost(rig, place):
    for number, how in enumerate(({"webhook": place}, {}, {"webhook": place})):
        rig.telegram.say(rig.chat, 7, f"message {number}")
        async with rig.running(**how):
            await rig.shown(rig.chat, number + 1)
            await rig.telegram.until_confirmed()
    assert [one.text for one in rig.inbounds] == ["message 0", "message 1", "message 2"]


@pytest.mark.slow
@pytest.mark.parametrize("secret", ["", "the right one"])
async def test_many_posts_that_never_end_keep_no_update_waiting(rig, place, secret):
    number = rig.telegram.token.partition(":")[0]
    shown = webhook_secret(rig.telegram.token) if secret else "wrong"
    begin = (
        f"POST /telegram/{number} HTTP/1.1\r\nHost: bot\r\n{HEADER}: {shown}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    )
    async with rig.running(webhook=place), contextlib.AsyncExitStack() as held:
        rig.telegram.say(rig.chat, 7, "first")
        await rig.shown(rig.chat, 1)
        for sent in (begin, begin[:40]):
            for _ in range(100):
                stream = await anyio.connect_tcp(place.host, place.port)
                await held.enter_async_context(stream)
                await stream.send(sent.encode())
        for text in ("Hello?", "And now?"):
            rig.telegram.say(rig.chat, 7, text)
        assert (await rig.shown(rig.chat, 3))[1:] == ["echo: Hello?", "echo: And now?"]
        await rig.telegram.until_confirmed()
