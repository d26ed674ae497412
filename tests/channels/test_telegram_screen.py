"""What the bot shows in Telegram: each call, and what each refusal means."""

from __future__ import annotations

import traceback

import anyio
import pytest
from aiogram.methods import GetMe
from aiohttp import web
from telegram_rig import rigged

from bot.bus import Activity, Address, Answer, Button, FileUnavailable, PartialAnswer
from channels.delivery.messenger import (
    FormattingRejected,
    MessageGone,
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


async def test_an_edit_that_changes_nothing_is_fine(telegram, screen):
    sent = await screen.send(out("one"))
    await screen.edit(ADA, sent, FormattedText("one"))
    await screen.edit(ADA, sent, FormattedText("two"))
    assert telegram.records.texts(7) == ["two"]


async def test_what_cannot_be_edited_is_gone(telegram, screen):
    theirs = telegram.say(7, 7, "mine")
    for number in ("999", str(theirs), "nonsense"):
        with pytest.raises(MessageGone):
            await screen.edit(ADA, number, FormattedText("x"))


async def test_what_is_gone_already_is_deleted(telegram, screen):
    sent = await screen.send(out("one"))
    await screen.delete(ADA, sent)
    await screen.delete(ADA, sent)
    telegram.faults.refuse(400, "Bad Request: message can't be deleted for everyone")
    await screen.delete(ADA, sent)
    assert telegram.records.texts(7) == []


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


async def test_a_server_that_is_away_is_worth_another_try(telegram, screen):
    async with telegram.outage():
        with pytest.raises(PlatformUnreachable):
            await screen.send(out("x"))


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b'{"ok": false}'),
        (200, b"null"),
        (200, b"[]"),
        (200, b""),
        (200, b'"\xff\xfe"'),
        (500, b'{"ok": false}'),
        (302, b"moved"),
        (403, b"<html>"),
    ],
)
async def test_an_answer_that_is_none_is_worth_another_try(status, body):
    async def answer(request):
        return web.Response(status=status, body=body, headers={"Content-Type": "application/json"})

    runner = web.AppRunner(app := web.Application(), access_log=None)
    app.router.add_route("*", "/{path:.*}", answer)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    api = BotApiClient("4200001:SECRET", f"http://127.0.0.1:{runner.addresses[0][1]}")
    try:
        with pytest.raises(PlatformUnreachable):
            await api(GetMe())
    finally:
        await api.aclose()
        await runner.cleanup()


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


async def test_a_revoked_token_is_noted_and_the_answer_is_not_given_up(telegram, api, screen):
    telegram.revoke(telegram.token)
    with pytest.raises(PlatformUnreachable):
        await screen.send(out("x"))
    assert api.token_rejected.is_set()


@pytest.mark.parametrize("words", ["message to be replied not found", "REPLY_MESSAGE_ID_INVALID"])
async def test_a_target_that_telegram_does_not_know_is_gone_only_where_there_is_one(
    telegram, screen, words
):
    number = str(telegram.say(7, 7, "Hello?"))
    telegram.faults.refuse(400, f"Bad Request: {words}", method="sendMessage", times=2)
    with pytest.raises(MessageGone):
        await screen.send(out("x", reply_to=number))
    with pytest.raises(MessageRejected):
        await screen.send(out("x"))


async def test_what_is_said_of_edits_means_nothing_to_a_new_message(telegram, screen):
    words = "Bad Request: MESSAGE_ID_INVALID"
    telegram.faults.refuse(400, words, method="sendMessage")
    telegram.faults.refuse(400, words, method="editMessageText")
    number = str(telegram.say(7, 7, "Hello?"))
    with pytest.raises(MessageRejected):
        await screen.send(out("x", reply_to=number))
    sent = await screen.send(out("x"))
    with pytest.raises(MessageGone):
        await screen.edit(ADA, sent, FormattedText("y"))


async def test_a_topic_that_is_gone_is_said_in_plain_words(telegram, screen):
    forum = telegram.group(-1002, "Forum", forum=True)
    topic = telegram.topic(forum, "Roses", 7)
    telegram.drop_topic(forum, topic)
    with pytest.raises(MessageRejected, match="the topic no longer exists"):
        await screen.send(out("x", Address("telegram", "-1002", str(topic))))


async def test_of_buttons_with_one_command_and_of_those_without_a_label_one_is_shown(
    telegram, screen
):
    buttons = (Button("Yes", "/yes"), Button(" ", "/no"), Button("Yes!", "/yes"))
    await screen.send(out("Sure?", buttons=buttons))
    [row] = telegram.records.messages(7)[0].buttons
    assert [one["text"] for one in row] == ["Yes"]


async def test_a_group_that_moved_is_followed(telegram, screen):
    old = telegram.group(-55, "Old", basic=True)
    telegram.migrate(old, -1009)
    address = Address("telegram", "-55")
    sent = await screen.send(out("one", address))
    await screen.edit(address, sent, FormattedText("two"))
    assert telegram.records.texts(-1009) == ["two"]
    assert len(telegram.records.called("sendMessage", chat=-55)) == 1
    assert len(telegram.records.called("editMessageText", chat=-55)) == 0


async def test_drafts_are_for_private_chats(telegram, screen):
    assert await screen.draft(ADA, "a1", FormattedText("so far"))
    assert await screen.draft(ADA, "a1", FormattedText("so far, so good"))
    assert not await screen.draft(GROUP, "a2", FormattedText("so far"))
    one, two = telegram.records.drafts
    assert one.draft == two.draft != 0
    assert two.text == "so far, so good"


async def test_a_server_without_drafts_is_asked_once(telegram, screen):
    telegram.missing.add("sendMessageDraft")
    assert not await screen.draft(ADA, "a1", FormattedText("so far"))
    assert not await screen.draft(ADA, "a1", FormattedText("so far"))
    assert len(telegram.records.called("sendMessageDraft")) == 1


async def test_groups_are_written_to_more_slowly(screen):
    assert screen.pace(ADA).edit < screen.pace(GROUP).edit
    assert screen.pace(ADA).typing < 5


async def test_there_is_always_something_to_show(screen):
    for text in ("", "   ", "\u200b"):
        assert all(piece.text.strip() for piece in screen.render(text))
        assert screen.render(text)
        assert screen.render_plain(text)


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


@pytest.mark.slow
async def test_typing_and_a_draft_are_seen_before_the_answer(rig):
    chat = rig.telegram.private(7)
    async with rig.running():
        await rig.bus.send(Activity(ADA, "thinking"))
        await rig.telegram.until(lambda books: books.actions)
        await rig.bus.send(PartialAnswer(ADA, "a1", "The answer to this is rather long"))
        await rig.telegram.until(lambda books: books.drafts)
        assert rig.telegram.records.texts(chat.id) == []
        await rig.bus.send(Answer(ADA, "a1", "The answer to this is rather long.", stream="a1"))
        await rig.telegram.until_messages(chat, 1)
    assert rig.telegram.records.texts(chat.id) == ["The answer to this is rather long."]


@pytest.mark.parametrize("words", ["TEXTDRAFT_PEER_INVALID", "can't parse entities", "whatever"])
async def test_a_refused_draft_ends_the_drafts_of_its_answer_alone(rig, words):
    chat = rig.telegram.private(7)
    rig.telegram.faults.refuse(400, f"Bad Request: {words}", method="sendMessageDraft", times=1)
    async with rig.running():
        await rig.bus.send(Activity(ADA, "thinking"))
        await rig.bus.send(PartialAnswer(ADA, "a1", "The answer to this is rather long"))
        await rig.telegram.until_messages(chat, 1)
        await rig.bus.send(Answer(ADA, "a1", "The answer to this is rather long.", stream="a1"))
        await rig.until_reported(1)
        assert not rig.telegram.records.drafts
        await rig.bus.send(PartialAnswer(ADA, "a2", "The answer to that is rather long"))
        await rig.telegram.until(lambda books: books.drafts)
        await rig.bus.send(Answer(ADA, "a2", "The answer to that is rather long.", stream="a2"))
        await rig.until_reported(2)
    assert rig.telegram.records.texts(chat.id) == [
        "The answer to this is rather long.",
        "The answer to that is rather long.",
    ]


async def test_typing_is_seen_in_the_general_topic_of_a_forum(rig):
    forum = rig.telegram.group(-1002, "Forum", forum=True)
    topics = rig.telegram.private(7, topics=True)
    rig.telegram.topic(topics, "Roses", 7)
    async with rig.running():
        for chat in (forum, topics):
            rig.telegram.say(chat, 7, "@tape_bot hello")
            await rig.shown(chat, 1)
            await rig.bus.send(Activity(Address("telegram", str(chat.id)), "thinking"))
            await rig.telegram.until(
                lambda books, here=chat.id: any(one.chat == here for one in books.actions)
            )
            await rig.bus.send(Activity(Address("telegram", str(chat.id)), "idle"))
    seen = {(one.chat, one.topic) for one in rig.telegram.records.actions}
    assert seen == {(-1002, 1), (7, None)}


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
