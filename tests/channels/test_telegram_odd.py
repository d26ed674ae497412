"""What Telegram will know one day and this program does not costs nobody a message."""

from __future__ import annotations

import anyio
import pytest
from aiogram.methods import GetMe
from aiohttp import web
from telegram_rig import rigged

from bot.bus import Address, Answer, Button
from channels.delivery.messenger import OutgoingMessage, PlatformUnreachable
from channels.telegram.api import BotApiClient, UnreadableResult
from channels.telegram.entities import FormattedText
from channels.telegram.inbound_composer import RecentMessages
from channels.telegram.messenger import TelegramMessenger

ADA = Address("telegram", "7")
GROUP = -1001
EVE = {"id": 13, "is_bot": False, "first_name": "Eve"}
ODD = {"a": {"kind": "of next year"}}


@pytest.fixture
async def rig(tmp_path):
    async with rigged(tmp_path) as rig:
        rig.chat = rig.telegram.private(7)
        rig.group = rig.telegram.group(GROUP, "Garden")
        rig.answering = False
        yield rig


# Answers.


async def reported(rig) -> list:
    with anyio.fail_after(30):
        while not any(one.final for one in rig.port().reports):
            await rig.port().reported.wait()
    return [one for one in rig.port().reports if one.final]


async def test_a_message_that_telegram_took_is_sent_once_whatever_it_answers(rig):
    rig.telegram.faults.odd(times=100)
    async with rig.running():
        await rig.bus.send(Answer(ADA, "a1", "Hello", buttons=(Button("Yes", "/yes"),)))
        [report] = await reported(rig)
    [shown] = rig.telegram.records.messages(7)
    assert (report.delivered, report.platform_ids) == (True, (str(shown.id),))
    assert shown.text == "Hello"


@pytest.mark.parametrize(
    "body", [b'{"ok": true}', b'{"ok": true, "result": 5}', b'{"ok": true, "result": {}}']
)
async def test_what_was_done_is_never_tried_again(body):
    async def answer(request):
        return web.Response(body=body, headers={"Content-Type": "application/json"})

    runner = web.AppRunner(app := web.Application(), access_log=None)
    app.router.add_route("*", "/{path:.*}", answer)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    api = BotApiClient("4200001:SECRET", f"http://127.0.0.1:{runner.addresses[0][1]}")
    screen = TelegramMessenger(api, RecentMessages())
    try:
        with pytest.raises(UnreadableResult) as error:
            await api(GetMe())
        assert not isinstance(error.value, PlatformUnreachable)
        with pytest.raises(UnreadableResult):
            await screen.send(OutgoingMessage(ADA, FormattedText("x"), "a1/0"))
        await screen.edit(ADA, "5", FormattedText("x"))
    finally:
        await api.aclose()
        await runner.cleanup()


# Messages.


@pytest.mark.parametrize(
    "odd",
    [
        {
            "external_reply": {
                "origin": {"type": "user", "sender_user": EVE, "date": 1},
                "story": {},
            }
        },
        {"external_reply": {"origin": {"type": "of next year"}}},
        {"gift": ODD, "unique_gift": ODD, "quote": ODD, "link_preview_options": 5},
        {"reply_to_message": ODD},
        {"entities": ODD},
    ],
    ids=["a story", "a new origin", "gifts", "a new kind of message", "entities"],
)
async def test_something_odd_in_a_message_costs_itself_alone(rig, odd, caplog):
    caplog.set_level("INFO")
    async with rig.running():
        rig.telegram.say(rig.chat, 7, "what is this?", extra=odd)
        [inbound] = await rig.arrived(1)
        await rig.telegram.until_confirmed()
    assert (inbound.text, inbound.quote, inbound.sender.id) == ("what is this?", None, "7")
    assert "is read without its" in caplog.text
    assert "next year" not in caplog.text


@pytest.mark.parametrize(
    "origin", [{"type": "hidden_user", "date": 1}, {"type": "of next year", "date": 1}, ODD, 5]
)
async def test_a_forward_from_nobody_knows_whom_is_still_a_forward(rig, origin):
    async with rig.running():
        number = rig.telegram.say(rig.chat, 7, "/pair CODE", extra={"forward_origin": origin})
        rig.telegram.edit(number, "/pair OTHER")
        rig.telegram.say(rig.group, 7, "@tape_bot hi", extra={"forward_origin": origin})
        rig.telegram.say(rig.chat, 7, "mine")
        got = await rig.arrived(2)
    assert [(one.text, one.quote) for one in got] == [
        ("", 'Forwarded from "somebody":\n/pair CODE'),
        ("mine", None),
    ]
    assert {one.text for one in rig.access_control.knocks if one.text} == {"mine"}


async def test_a_result_of_an_odd_inline_bot_is_still_that_bots_word(rig):
    async with rig.running():
        rig.telegram.say(rig.chat, 7, "/pair CODE", extra={"via_bot": ODD})
        [inbound] = await rig.arrived(1)
    assert (inbound.text, inbound.quote) == ("", "Sent through @a_bot:\n/pair CODE")


@pytest.mark.parametrize("field", ["from", "chat", "date", "text", "sender_chat"])
async def test_who_wrote_what_where_and_when_is_never_guessed(rig, field, caplog):
    async with rig.running():
        rig.telegram.say(rig.chat, 7, "one", extra={field: ODD, "gift": ODD})
        rig.telegram.say(rig.chat, 7, "two")
        [inbound] = await rig.arrived(1)
    assert inbound.text == "two"
    assert "is skipped, as it is malformed" in caplog.text
