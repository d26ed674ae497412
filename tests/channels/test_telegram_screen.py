"""What the bot shows in Telegram: each call, and what each refusal means."""

from __future__ import annotations

import traceback

import anyio
import pytest
from aiogram.methods import GetMe
from telegram_rig import rigged

from bot.bus import Address, Answer, Button, FileUnavailable
from channels.delivery.messenger import (
    FormattingRejected,
    MessageRejected,
    OutgoingMessage,
    PlatformUnreachable,
    RateLimited,
)
from channels.telegram.api import BotApiClient
from channels.telegram.entities import Entity, FormattedText
from channels.telegram.inbound_composer import RecentMessages
from channels.telegram.messenger import TelegramMessenger
from testkit.telegram.server import TelegramServer

ADA = Address("telegram", "7")
GROUP = Address("telegram", "-1001")


@pytest.fixture
async def telegram():
    async with TelegramServer() as server:
        ada = server.user(7, "Ada")
        server.private(ada)
        server.group(-1001, "Garden")
        yield server


@pytest.fixture
async def api(telegram):
    api = BotApiClient(telegram.token, telegram.url)
    yield api
    await api.aclose()


@pytest.fixture
def screen(api):
    return TelegramMessenger(api, RecentMessages())


def out(text: str, address: Address = ADA, **more) -> OutgoingMessage[FormattedText]:
    return OutgoingMessage(address, FormattedText(text), "a1/0", **more)


async def test_a_message_has_its_styles_its_target_and_no_preview(telegram, screen):
    number = telegram.say(7, 7, "Hello?")
    piece = FormattedText("so bold", (Entity("bold", 3, 4),))
    sent = await screen.send(OutgoingMessage(ADA, piece, "a1/0", reply_to=str(number)))
    [shown] = telegram.records.messages(7)
    assert (str(shown.id), shown.text, shown.reply_to) == (sent, "so bold", number)
    assert [(one["type"], one["offset"], one["length"]) for one in shown.entities] == [
        ("bold", 3, 4)
    ]
    [call] = telegram.records.called("sendMessage")
    assert "is_disabled" in str(call.params["link_preview_options"])


async def test_a_reply_to_what_is_gone_is_a_plain_message(telegram, screen):
    for target in ("999", "cb12", "5.e7", "nonsense"):
        await screen.send(out(f"to {target}", reply_to=target))
    assert [one.reply_to for one in telegram.records.messages(7)] == [None] * 4


async def test_a_topic_is_answered_in_the_topic(telegram, screen):
    forum = telegram.group(-1002, "Forum", forum=True)
    topic = telegram.topic(forum, "Roses", 7)
    address = Address("telegram", "-1002", str(topic))
    await screen.send(out("there", address))
    await screen.typing(address)
    assert telegram.records.messages(-1002)[0].topic == topic
    assert telegram.records.actions[0].topic == topic


async def test_buttons_carry_their_commands_and_those_that_cannot_are_left_out(telegram, screen):
    buttons = (
        Button("Yes", "/yes"),
        Button("No", "/no"),
        Button("Something rather long", "/other"),
        Button("Too much", "/" + "x" * 64),
    )
    sent = await screen.send(out("Sure?", buttons=buttons))
    rows = telegram.records.messages(7)[0].buttons
    assert [[one["callback_data"] for one in row] for row in rows] == [["/yes", "/no"], ["/other"]]
    await screen.edit(ADA, sent, FormattedText("Done"))
    assert telegram.records.messages(7)[0].buttons == ()


@pytest.mark.parametrize(
    ("status", "words", "error"),
    [
        (400, "Bad Request: can't parse entities: unsupported", FormattingRejected),
        (400, "Bad Request: ENTITY_BOUNDS_INVALID", FormattingRejected),
        (400, "Bad Request: message is too long", FormattingRejected),
        (400, "Bad Request: chat not found", MessageRejected),
        (400, "Bad Request: message thread not found", MessageRejected),
        (403, "Forbidden: bot was blocked by the user", MessageRejected),
        (404, "Not Found", MessageRejected),
        (409, "Conflict", PlatformUnreachable),
        (413, "Request Entity Too Large", MessageRejected),
        (500, "Internal Server Error", PlatformUnreachable),
        (502, "Bad Gateway", PlatformUnreachable),
        (429, "Too Many Requests", RateLimited),
    ],
)
async def test_each_refusal_has_its_meaning(telegram, screen, status, words, error):
    telegram.faults.refuse(status, words, method="sendMessage")
    with pytest.raises(error):
        await screen.send(out("x"))


async def test_a_flood_says_how_long(telegram, screen):
    telegram.faults.flood_once(retry_after=17)
    with pytest.raises(RateLimited) as flooded:
        await screen.send(out("x"))
    assert flooded.value.seconds == 17


@pytest.mark.parametrize("kind", ["html", "hang_up", "garbage"])
async def test_a_broken_answer_is_worth_another_try(telegram, screen, kind):
    getattr(telegram.faults, kind)(method="sendMessage")
    with pytest.raises(PlatformUnreachable) as error:
        await screen.send(out("x"))
    assert telegram.token.partition(":")[2] not in str(error.value)


@pytest.mark.parametrize("base", ["http://127.0.0.1:1", "http://127.0.0.1:99999999", "http://a b"])
async def test_an_address_that_cannot_be_called_tells_no_token(base):
    token = "4200001:SECRET-OF-SECRETS"
    api = BotApiClient(token, base)
    try:
        with pytest.raises(PlatformUnreachable) as error:
            await api(GetMe())
        told = "".join(traceback.format_exception(error.value))
        assert "SECRET-OF-SECRETS" not in told
    finally:
        await api.aclose()


@pytest.mark.parametrize(("status", "error"), [(404, FileUnavailable), (500, PlatformUnreachable)])
async def test_a_file_that_is_not_given_tells_no_token(telegram, api, status, error):
    telegram.voice(7, 7, b"x")
    [file_id] = telegram.world.files
    telegram.faults.html(status, method="download")
    with pytest.raises(error) as refused:
        await api.download(file_id, 100)
    told = "".join(traceback.format_exception(refused.value))
    assert telegram.token.partition(":")[2] not in told


# Through the channel.


@pytest.fixture
async def rig(tmp_path):
    async with rigged(tmp_path) as rig:
        yield rig


async def test_a_long_answer_comes_whole_and_is_reported_with_its_messages(rig):
    chat = rig.telegram.private(7)
    text = "\n\n".join(f"Paragraph {n} " + "words " * 100 for n in range(20))
    async with rig.running():
        await rig.bus.send(Answer(ADA, "a1", text))
        await rig.until(lambda: rig.said)
        with anyio.fail_after(30):
            while not any(one.final for one in rig.port().reports):
                await rig.port().reported.wait()
    shown = rig.telegram.records.messages(chat.id)
    assert len(shown) > 2
    assert "\n\n".join(one.text for one in shown).split() == text.split()
    report = rig.port().reports[-1]
    assert (report.delivered, report.platform_ids) == (True, tuple(str(one.id) for one in shown))


async def test_a_chat_that_blocked_the_bot_is_reported_as_not_reached(rig):
    chat = rig.telegram.private(7)
    rig.telegram.faults.forbid(chat.id)
    async with rig.running():
        await rig.bus.send(Answer(ADA, "a1", "Hello"))
        with anyio.fail_after(30):
            while not rig.port().reports:
                await rig.port().reported.wait()
    [report] = rig.port().reports
    assert (report.delivered, "blocked" in report.error) == (False, True)
