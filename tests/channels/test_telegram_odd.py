"""What Telegram will know one day and this program does not costs nobody a message."""

from __future__ import annotations

import anyio
import pytest
from aiogram.methods import GetMe
from aiohttp import web
from telegram_rig import rigged

from bot.bus import Activity, Address, Answer, Button, PartialAnswer
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


async def test_an_edit_that_telegram_took_is_made_once_whatever_it_answers(rig):
    rig.telegram.faults.odd(method="editMessageText", times=100)
    async with rig.running():
        await rig.bus.send(Answer(ADA, "a1", "Sure?"))
        await reported(rig)
        rig.port().reports.clear()
        [sent] = rig.telegram.records.messages(7)
        await rig.bus.send(Answer(ADA, "a2", "Done", replaced_message_id=str(sent.id)))
        [report] = await reported(rig)
    assert (report.delivered, report.platform_ids) == (True, (str(sent.id),))
    assert rig.telegram.records.texts(7) == ["Done"]
    assert len(rig.telegram.records.called("editMessageText")) == 1


async def test_a_word_of_the_channels_own_is_said_once_whatever_telegram_answers(rig):
    eve = rig.telegram.private(13)
    rig.telegram.faults.odd(times=100)
    async with rig.running():
        rig.telegram.say(eve, 13, "let me in")
        await rig.shown(eve, 1)
        rig.telegram.say(rig.chat, 7, "Hello?")
        await rig.arrived(1)
    assert len(rig.telegram.records.texts(13)) == 1


@pytest.mark.slow
async def test_signs_and_drafts_go_on_whatever_telegram_answers(rig):
    for method in ("sendChatAction", "sendMessageDraft"):
        rig.telegram.faults.odd(method=method, times=100)
    async with rig.running():
        await rig.bus.send(Activity(ADA, "thinking"))
        await rig.telegram.until(lambda books: books.actions)
        await rig.bus.send(PartialAnswer(ADA, "a1", "The answer to this is rather long"))
        await rig.telegram.until(lambda books: books.drafts)
        await rig.bus.send(Answer(ADA, "a1", "The answer is long.", stream="a1"))
        await reported(rig)
    assert rig.telegram.records.texts(7) == ["The answer is long."]


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


@pytest.mark.parametrize(
    "odd", [{"forward_origin": {"type": "hidden_user", "date": 1}}, {"gift": ODD}, {"story": {}}]
)
async def test_what_is_answered_is_quoted_without_what_is_odd_in_it(rig, odd):
    target = {
        "message_id": 899,
        "date": 1,
        "chat": rig.chat.as_json(),
        "from": EVE,
        "text": "a present",
    }
    async with rig.running():
        rig.telegram.say(rig.chat, 7, "thanks", extra={"reply_to_message": target | odd})
        [inbound] = await rig.arrived(1)
    assert (inbound.text, inbound.quote) == ("thanks", 'In reply to "Eve" (13):\na present')


async def test_a_button_below_an_odd_message_can_be_pressed(rig):
    message = {
        "message_id": 900,
        "date": 1_700_000_000,
        "chat": rig.chat.as_json(),
        "from": rig.telegram.me.as_json(),
        "text": "Sure?",
        "reply_to_message": ODD,
    }
    person = rig.telegram.world.users[7].as_json()
    query = {"id": "1", "from": person, "chat_instance": "1", "data": "/yes", "message": message}
    async with rig.running():
        rig.telegram.raw({"callback_query": query})
        [inbound] = await rig.arrived(1)
    assert (inbound.text, inbound.pressed_message_id) == ("/yes", "900")


@pytest.mark.parametrize("field", ["from", "chat", "date", "text", "sender_chat"])
async def test_who_wrote_what_where_and_when_is_never_guessed(rig, field, caplog):
    async with rig.running():
        rig.telegram.say(rig.chat, 7, "one", extra={field: ODD, "gift": ODD})
        rig.telegram.say(rig.chat, 7, "two")
        [inbound] = await rig.arrived(1)
    assert inbound.text == "two"
    assert "is skipped, as it is malformed" in caplog.text
