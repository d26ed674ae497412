"""Updates by webhook: confirmed when they are safe, from nobody but Telegram."""

from __future__ import annotations

import contextlib
import io
import socket
import time

import aiohttp
import anyio
import pytest
from refusals import refused
from telegram_rig import rigged

from bot.bus import BusError
from channels.telegram import WebhookEndpoint
from channels.telegram.webhook import webhook_secret

HEADER = "X-Telegram-Bot-Api-Secret-Token"


@pytest.fixture
async def rig(tmp_path):
    async with rigged(tmp_path) as rig:
        rig.chat = rig.telegram.private(7)
        yield rig


@pytest.fixture
def place():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return WebhookEndpoint(f"http://127.0.0.1:{port}/", "127.0.0.1", port)


async def test_a_message_is_answered(rig, place):
    rig.telegram.say(rig.chat, 7, "sent while the bot was away")
    async with rig.running(webhook=place):
        rig.telegram.say(rig.chat, 7, "Hello?")
        assert await rig.shown(rig.chat, 2) == ["echo: sent while the bot was away", "echo: Hello?"]
        await rig.telegram.until_confirmed()
    assert rig.telegram.records.called("getUpdates") == []


async def test_an_update_is_confirmed_only_after_its_message_is_on_the_bus(rig, place):
    rig.port().gate = anyio.Event()
    async with rig.running(webhook=place):
        rig.telegram.say(rig.chat, 7, "keep me")
        await rig.telegram.until(lambda books: books.updates[0].handed_at)
        assert rig.telegram.records.unconfirmed
        rig.port().gate.set()
        await rig.shown(rig.chat, 1)
        await rig.telegram.until_confirmed()


async def test_what_the_bus_refuses_is_sent_again(rig, place):
    rig.port().refusals += [BusError("the disk is full")] * 2
    async with rig.running(webhook=place):
        rig.telegram.say(rig.chat, 7, "Hello?")
        # The channel's own word is in nobody's way, so that the answer may overtake it.
        assert sorted(await rig.shown(rig.chat, 2)) == [
            "echo: Hello?",
            "the disk is full (Retrying.)",
        ]
        await rig.telegram.until_confirmed()
    assert len(rig.telegram.records.updates[0].handed_at) == 3


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


async def test_two_bots_share_a_port(rig, place):
    other = "4300002:ANOTHER-TOKEN"
    work = rig.telegram.bot(other, name="Work", username="work_bot")
    async with rig.running(webhook=place):
        async with rig.running("telegram-work", token=other, webhook=place):
            rig.telegram.say(rig.chat, 7, "to one", bot=rig.telegram.me)
            rig.telegram.say(rig.chat, 7, "to the other", bot=work)
            await rig.shown(rig.chat, 2)
        rig.telegram.say(rig.chat, 7, "still here", bot=rig.telegram.me)
        await rig.shown(rig.chat, 3)
    sessions = {one.text: one.session for one in rig.inbounds}
    assert sessions == {
        "to one": "telegram:7",
        "to the other": "telegram-work:7",
        "still here": "telegram:7",
    }


async def test_a_port_that_is_taken_is_refused_by_the_name_of_its_setting(rig, place):
    with socket.socket() as taken:
        taken.bind((place.host, place.port))
        taken.listen()
        with refused("TAPEBOT_TELEGRAM_WEBHOOK_LISTEN"):
            with anyio.fail_after(30):
                await rig.channel(webhook=place).run(rig.port())
    async with rig.running(webhook=place):
        rig.telegram.say(rig.chat, 7, "Hello?")
        assert await rig.shown(rig.chat, 1) == ["echo: Hello?"]


async def test_setting_the_webhook_is_tried_until_it_works(rig, place):
    words = "Bad Request: bad webhook: Failed to resolve host"
    rig.telegram.faults.refuse(400, words, method="setWebhook", times=3)
    async with rig.running(webhook=place):
        rig.telegram.say(rig.chat, 7, "Hello?")
        assert await rig.shown(rig.chat, 1) == ["echo: Hello?"]
    assert len([one for one in rig.said if "TAPEBOT_TELEGRAM_WEBHOOK_URL" in one]) == 1


async def test_a_webhook_that_somebody_takes_away_is_set_again(rig, place):
    async with rig.running(webhook=place):
        await rig.telegram.until(lambda books: books.called("setWebhook"))
        bot = rig.telegram.world.bots[rig.telegram.token]
        bot.webhook = None
        bot.wake()
        await rig.telegram.until(lambda books: len(books.called("setWebhook")) == 2)
        rig.telegram.say(rig.chat, 7, "Hello?")
        assert await rig.shown(rig.chat, 1) == ["echo: Hello?"]
    assert any("another program" in one for one in rig.said)


async def test_old_trouble_of_the_webhook_is_no_news_and_new_trouble_is_told_once(rig, place):
    bot = rig.telegram.world.bots[rig.telegram.token]
    rig.port().gate = anyio.Event()

    async def looked(times: int) -> None:
        most = len(rig.telegram.records.called("getWebhookInfo")) + times
        await rig.telegram.until(lambda books: len(books.called("getWebhookInfo")) >= most)

    async with rig.running(webhook=place):
        rig.telegram.say(rig.chat, 7, "on its way, so that something is pending")
        await rig.until_tried(1)
        bot.webhook_error = (int(time.time()) - 3600, "of an hour ago")
        await looked(2)
        now = int(time.time())
        for words in ("of now", "of the same second"):
            bot.webhook_error = (now, words)
            await looked(2)
        rig.port().gate.set()
    told = [one for one in rig.said if "updates do not arrive" in one]
    assert told == ["Telegram: updates do not arrive: of now"]


async def test_from_webhook_to_polling_and_back_nothing_is_lost(rig, place):
    for number, how in enumerate(({"webhook": place}, {}, {"webhook": place})):
        rig.telegram.say(rig.chat, 7, f"message {number}")
        async with rig.running(**how):
            await rig.shown(rig.chat, number + 1)
            await rig.telegram.until_confirmed()
    assert [one.text for one in rig.inbounds] == ["message 0", "message 1", "message 2"]


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
