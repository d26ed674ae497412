"""The Telegram of the tests behaves to the real client as the real one does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from testkit.telegram.faults import BotApiFault
from testkit.telegram.media_files import TelegramMedia
from testkit.telegram.server import TelegramServer

if TYPE_CHECKING:
    from aiogram import Bot


@pytest.fixture(scope="session", autouse=True)
def client_library() -> None:
    """Load the client before any test's clock runs: its import takes seconds."""
    import aiogram  # noqa: F401


@asynccontextmanager
async def client_of(server: TelegramServer, token: str | None = None) -> AsyncIterator[Bot]:
    from aiogram import Bot
    from aiogram.client.session.aiohttp import AiohttpSession
    from aiogram.client.telegram import TelegramAPIServer

    session = AiohttpSession(api=TelegramAPIServer.from_base(server.url))
    bot = Bot(token or server.token, session=session)
    try:
        yield bot
    finally:
        # The session's own end waits a quarter of a second more.
        await (await session.create_session()).close()


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        with anyio.fail_after(20):
            yield server


@pytest.fixture
async def client(telegram: TelegramServer) -> AsyncIterator[Bot]:
    async with client_of(telegram) as bot:
        yield bot


@pytest.fixture
def ada(telegram: TelegramServer):
    return telegram.user(7, "Ada", "ada")


@pytest.fixture
def chat(telegram: TelegramServer, ada):
    return telegram.private(ada)


async def test_a_message_waits_until_a_higher_offset_confirms_it(telegram, client, chat, ada):
    telegram.say(chat, ada, "one")
    telegram.say(chat, ada, "two /start @tape_bot")
    first, second = await client.get_updates()
    assert (first.message.text, first.message.from_user.username) == ("one", "ada")
    assert [one.type for one in second.message.entities] == ["bot_command", "mention"]
    assert len(await client.get_updates()) == 2, "nothing was confirmed yet"
    assert [one.update_id for one in await client.get_updates(offset=second.update_id)] == [
        second.update_id
    ]
    assert [len(one.handed_at) for one in telegram.records.updates] == [2, 3]
    assert [one.confirmed_at is None for one in telegram.records.updates] == [False, True]
    assert await client.get_updates(offset=second.update_id + 1, timeout=0) == []
    await telegram.until_confirmed()


async def test_a_long_poll_ends_as_soon_as_something_is_said(telegram, client, chat, ada):
    async with anyio.create_task_group() as tasks:

        async def poll():
            with anyio.fail_after(20):
                updates = await client.get_updates(timeout=40)
            assert updates[0].message.text == "hello"

        tasks.start_soon(poll)
        await telegram.until(lambda books: books.polling)
        telegram.say(chat, ada, "hello")


@pytest.mark.slow
async def test_an_empty_long_poll_ends_after_its_timeout(telegram, client):
    with anyio.fail_after(20):
        assert await client.get_updates(timeout=1) == []


async def test_limit_and_a_negative_offset_select_updates(telegram, client, chat, ada):
    for text in "abc":
        telegram.say(chat, ada, text)
    assert [one.message.text for one in await client.get_updates(limit=2)] == ["a", "b"]
    assert [one.message.text for one in await client.get_updates(offset=-1)] == ["c"]
    assert len(telegram.records.unconfirmed) == 1


async def test_a_second_poller_ends_the_first_with_a_conflict(telegram, client):
    from aiogram.exceptions import TelegramConflictError

    async with anyio.create_task_group() as tasks:

        async def first():
            with pytest.raises(TelegramConflictError, match="only one bot instance"):
                await client.get_updates(timeout=10)

        tasks.start_soon(first)
        await telegram.until(lambda books: books.polling)
        assert await client.get_updates(timeout=0) == []


async def test_a_poller_that_died_costs_no_update(telegram, client, chat, ada):
    url = f"{telegram.url}/bot{telegram.token}/getUpdates"
    async with ClientSession() as http, anyio.create_task_group() as tasks:
        tasks.start_soon(poll_for_long, http, url)
        await telegram.until(lambda books: books.polling)
        tasks.cancel_scope.cancel()
    telegram.say(chat, ada, "still there?")
    (update,) = await client.get_updates(timeout=5)
    assert update.message.text == "still there?"


async def poll_for_long(http, url):
    async with http.post(url, data={"timeout": 30}) as answer:
        await answer.read()


async def test_an_update_whose_answer_was_lost_is_handed_again(telegram, client, chat, ada):
    from aiogram.exceptions import TelegramNetworkError

    telegram.say(chat, ada, "hello")
    telegram.faults.lose_answer(method="getUpdates")
    with pytest.raises(TelegramNetworkError):
        await client.get_updates()
    (update,) = await client.get_updates()
    assert update.message.text == "hello"


async def test_messages_are_shown_edited_and_deleted(telegram, client, chat, ada):
    from aiogram.types import InlineKeyboardButton, InlineKeyboardMarkup, ReplyParameters

    asked = telegram.say(chat, ada, "hello")
    keyboard = InlineKeyboardMarkup(
        inline_keyboard=[[InlineKeyboardButton(text="Yes", callback_data="y")]]
    )
    reply = ReplyParameters(message_id=asked)
    sent = await client.send_message(
        chat.id, "a <b>&amp;</b>", parse_mode="HTML", reply_parameters=reply, reply_markup=keyboard
    )
    assert (sent.text, sent.reply_to_message.text) == ("a &", "hello")
    edited = await client.edit_message_text("b ", chat_id=chat.id, message_id=sent.message_id)
    assert edited.text == "b"
    (shown,) = telegram.records.messages(chat.id)
    assert (shown.text, shown.reply_to, shown.buttons) == ("b", asked, ())
    assert [one.text for one in shown.versions] == ["a &", "b"]
    assert shown.versions[0].buttons[0][0]["callback_data"] == "y"
    await client.delete_message(chat.id, sent.message_id)
    assert telegram.records.texts(chat.id) == []
    assert telegram.records.messages(chat.id, deleted=True) == [shown]


@pytest.mark.parametrize(
    ("method", "arguments", "reason"),
    [
        ("send_message", {"chat_id": 7, "text": "x" * 4097}, "message is too long"),
        ("send_message", {"chat_id": 7, "text": "😀" * 2049}, "message is too long"),
        ("send_message", {"chat_id": 7, "text": ""}, "message text is empty"),
        ("send_message", {"chat_id": 7, "text": " \n"}, "text must be non-empty"),
        ("send_message", {"chat_id": 8, "text": "x"}, "chat not found"),
        ("send_message", {"chat_id": 7, "text": "x", "message_thread_id": 99}, "thread not found"),
        ("send_message", {"chat_id": 7, "text": "<b>x", "parse_mode": "HTML"}, "can't parse"),
        (
            "edit_message_text",
            {"chat_id": 7, "message_id": 99, "text": "x"},
            "message to edit not found",
        ),
        ("delete_message", {"chat_id": 7, "message_id": 99}, "message to delete not found"),
        ("send_chat_action", {"chat_id": 7, "action": "dancing"}, "wrong parameter action"),
        ("get_file", {"file_id": "nonsense"}, "wrong file_id"),
        ("answer_callback_query", {"callback_query_id": "1"}, "query is too old"),
    ],
)
async def test_what_telegram_refuses_is_refused(telegram, client, chat, method, arguments, reason):
    from aiogram.exceptions import TelegramBadRequest

    with pytest.raises(TelegramBadRequest, match=reason):
        await getattr(client, method)(**arguments)
    assert [one.status for one in telegram.records.rejected] == [400]


@pytest.mark.parametrize(
    ("kind", "offset", "length"),
    [("bold", 0, 4), ("bold", 1, 1), ("bold", -1, 2), ("glitter", 0, 1), ("text_link", 0, 1)],
)
async def test_entities_that_do_not_fit_are_refused(client, chat, kind, offset, length):
    from aiogram.exceptions import TelegramBadRequest
    from aiogram.types import MessageEntity

    entity = MessageEntity(type=kind, offset=offset, length=length)
    with pytest.raises(TelegramBadRequest, match="can't parse entities"):
        await client.send_message(chat.id, "😀x", entities=[entity])


async def test_an_edit_that_changes_nothing_is_refused(client, chat):
    from aiogram.exceptions import TelegramBadRequest

    sent = await client.send_message(chat.id, "x")
    with pytest.raises(TelegramBadRequest, match="message is not modified"):
        await client.edit_message_text("x ", chat_id=chat.id, message_id=sent.message_id)


async def test_a_reply_to_nothing_is_refused_unless_it_may_go_without(telegram, client, chat):
    from aiogram.exceptions import TelegramBadRequest
    from aiogram.types import ReplyParameters

    with pytest.raises(TelegramBadRequest, match="message to be replied not found"):
        await client.send_message(chat.id, "x", reply_parameters=ReplyParameters(message_id=99))
    lenient = ReplyParameters(message_id=99, allow_sending_without_reply=True)
    await client.send_message(chat.id, "x", reply_parameters=lenient)
    assert telegram.records.messages(chat.id)[0].reply_to is None


async def test_buttons_are_pressed_and_answered_once(telegram, client, chat):
    from aiogram.exceptions import TelegramBadRequest
    from aiogram.types import InlineKeyboardButton, InlineKeyboardMarkup

    rows = [[InlineKeyboardButton(text="Stop", callback_data="stop")]]
    await client.send_message(
        chat.id, "working", reply_markup=InlineKeyboardMarkup(inline_keyboard=rows)
    )
    (shown,) = telegram.records.messages(chat.id)
    with pytest.raises(ValueError, match="has no button 'other'"):
        telegram.press(shown, "other")
    telegram.press(shown, "stop")
    (update,) = await client.get_updates()
    query = update.callback_query
    assert (query.data, query.message.text, query.from_user.id) == ("stop", "working", 7)
    await client.answer_callback_query(query.id, text="Stopped.")
    assert [one.text for one in telegram.records.pressed] == ["Stopped."]
    with pytest.raises(TelegramBadRequest, match="query ID is invalid"):
        await client.answer_callback_query(query.id)
    await client.edit_message_reply_markup(chat_id=chat.id, message_id=shown.id)
    assert shown.buttons == ()
    await client.delete_message(chat.id, shown.id)
    telegram.press(shown, "stop")
    (late,) = await client.get_updates(offset=-1)
    assert late.callback_query.message.date == 0, "a message that is gone is inaccessible"


async def test_files_are_fetched_and_the_books_say_by_whom(telegram, client, chat, ada):
    from aiogram.exceptions import TelegramBadRequest

    telegram.document(chat, ada, "notes.txt", "text/plain", b"remember", caption="see /x")
    telegram.photo(chat, ada, b"the whole picture", caption="a cat")
    telegram.voice(chat, ada, b"sound", size=21 * 1024 * 1024)
    document, photo, voice = [one.message for one in await client.get_updates()]
    assert (document.document.file_name, document.caption) == ("notes.txt", "see /x")
    fetched = await client.download(document.document)
    assert fetched.read() == b"remember"
    assert len(photo.photo) == 4
    assert (await client.download(photo.photo[-1])).read() == b"the whole picture"
    with pytest.raises(TelegramBadRequest, match="file is too big"):
        await client.get_file(voice.voice.file_id)
    assert [(one.bot, one.status) for one in telegram.records.downloads] == [(client.id, 200)] * 2


async def test_an_album_is_several_messages_of_one_group(telegram, client, chat, ada):
    telegram.album(
        chat,
        ada,
        [TelegramMedia("photo", caption="both"), TelegramMedia("document", b"x", name="b")],
    )
    messages = [one.message for one in await client.get_updates()]
    assert len({one.media_group_id for one in messages}) == 1
    assert [one.caption for one in messages] == ["both", None]


async def test_topics_have_threads_and_replies_outside_forums_have_them_too(telegram, client, ada):
    from aiogram.exceptions import TelegramBadRequest

    forum = telegram.group(-1001, "Forum", forum=True)
    group = telegram.group(-1002, "Group")
    topic = telegram.topic(forum, "Plans", ada)
    telegram.say(forum, ada, "in plans", topic=topic)
    telegram.say(forum, ada, "in general")
    first = telegram.say(group, ada, "first")
    telegram.say(group, ada, "second", reply_to=first, quote="fir")
    _, plans, general, _, second = [one.message for one in await client.get_updates()]
    assert (plans.message_thread_id, plans.is_topic_message) == (topic, True)
    assert plans.reply_to_message.forum_topic_created.name == "Plans"
    assert (general.message_thread_id, general.is_topic_message) == (None, None)
    assert (second.message_thread_id, second.is_topic_message) == (first, None)
    assert (second.reply_to_message.text, second.quote.text) == ("first", "fir")
    await client.send_message(forum.id, "noted", message_thread_id=topic)
    assert telegram.records.texts(forum.id, topic=topic) == ["noted"]
    telegram.drop_topic(forum, topic)
    with pytest.raises(TelegramBadRequest, match="message thread not found"):
        await client.send_message(forum.id, "noted", message_thread_id=topic)


async def test_edits_reactions_forwards_and_places_arrive(telegram, client, chat, ada):
    asked = telegram.say(chat, ada, "helo", forward_from="Someone")
    telegram.react(asked, "👍")
    assert len(await client.get_updates(allowed_updates=["message", "message_reaction"])) == 1
    telegram.react(asked, "👍")
    telegram.location(chat, ada, 50.1, 8.7)
    telegram.sticker(chat, ada)
    telegram.edit(asked, "hello")
    await client.get_updates(allowed_updates=["message", "edited_message"])
    telegram.edit(asked, "hello!")
    first, reaction, place, sticker, edited = await client.get_updates()
    assert first.message.forward_origin.sender_user_name == "Someone"
    assert first.message.text == "helo", "an edit changes no update that is under way"
    assert reaction.message_reaction.new_reaction[0].emoji == "👍"
    assert (place.message.location.latitude, sticker.message.sticker.emoji) == (50.1, "🙂")
    assert edited.edited_message.text == "hello!"
    assert [one.dropped for one in telegram.records.updates].count(True) == 2


async def test_every_kind_of_content_validates(telegram, client, chat, ada):
    group = telegram.group(-1007, "Group")
    kinds = ["video", "video_note", "animation", "audio", "sticker"]
    for kind in kinds:
        telegram.send(chat, ada, TelegramMedia(kind))
    telegram.post(chat, ada, {"dice": {"emoji": "🎲", "value": 3}})
    telegram.say(group, ada, "as the group", anonymous=True)
    messages = [one.message for one in await client.get_updates()]
    assert [one.content_type for one in messages] == [*kinds, "dice", "text"]
    assert (messages[-1].sender_chat.id, messages[-1].from_user.first_name) == (group.id, "Group")


async def test_a_message_that_a_person_removed_cannot_be_edited(telegram, client, chat):
    from aiogram.exceptions import TelegramBadRequest

    sent = await client.send_message(chat.id, "x")
    telegram.remove(telegram.records.messages(chat.id)[0])
    with pytest.raises(TelegramBadRequest, match="message to edit not found"):
        await client.edit_message_text("y", chat_id=chat.id, message_id=sent.message_id)


async def test_privacy_mode_hides_what_is_not_for_the_bot(telegram, ada):
    shy = telegram.bot("55:T", username="shy_bot", privacy=True)
    group = telegram.group(-1003, "Group")
    for text in ("hello all", "/start@shy_bot", "/start@tape_bot", "so, @shy_bot?", "/help"):
        telegram.say(group, ada, text)
    async with client_of(telegram, "55:T") as client:
        heard = [one.message.text for one in await client.get_updates()]
        sent = await client.send_message(group.id, "here")
        telegram.say(group, ada, "to you", reply_to=sent.message_id)
        (reply,) = await client.get_updates(offset=-1)
    assert heard == ["/start@shy_bot", "so, @shy_bot?", "/help"]
    assert (reply.message.text, reply.message.reply_to_message.from_user.id) == ("to you", shy.id)


async def test_bots_join_leave_and_are_blocked(telegram, client, chat, ada):
    from aiogram.exceptions import TelegramForbiddenError

    group = telegram.group(-1004, "Group", bots=[])
    with pytest.raises(TelegramForbiddenError, match="not a member"):
        await client.send_message(group.id, "x")
    telegram.join(telegram.me, group, ada)
    joined, greeting = await client.get_updates()
    assert joined.my_chat_member.new_chat_member.status == "member"
    assert greeting.message.new_chat_members[0].id == client.id
    assert (await client.get_chat(group.id)).title == "Group"
    assert (await client.get_chat_member(group.id, client.id)).status == "member"
    assert await client.leave_chat(group.id)
    telegram.block(chat)
    left, blocked = await client.get_updates(offset=greeting.update_id + 1)
    assert left.my_chat_member.new_chat_member.status == "left"
    assert blocked.my_chat_member.new_chat_member.status == "kicked"
    with pytest.raises(TelegramForbiddenError, match="bot was blocked by the user"):
        await client.send_message(chat.id, "x")


async def test_a_group_that_became_a_supergroup_names_its_new_id(telegram, client, ada):
    from aiogram.exceptions import TelegramMigrateToChat

    old = telegram.group(-5, "Old", basic=True)
    telegram.say(old, ada, "x")
    telegram.migrate(old, -1005)
    with pytest.raises(TelegramMigrateToChat) as caught:
        await client.send_message(old.id, "x")
    assert caught.value.migrate_to_chat_id == -1005
    await client.send_message(-1005, "x")


async def test_drafts_actions_and_menus_are_kept(telegram, client, chat):
    from aiogram.exceptions import TelegramNotFound
    from aiogram.types import BotCommand

    await client.send_chat_action(chat.id, "typing")
    await client.send_message_draft(chat_id=chat.id, draft_id=3, text="thin")
    assert [one.action for one in telegram.records.actions] == ["typing"]
    assert [(one.draft, one.text) for one in telegram.records.drafts] == [(3, "thin")]
    telegram.missing.add("sendMessageDraft")
    with pytest.raises(TelegramNotFound):
        await client.send_message_draft(chat_id=chat.id, draft_id=3, text="think")
    await client.set_my_commands([BotCommand(command="new", description="Start anew")])
    assert [one.command for one in await client.get_my_commands()] == ["new"]


async def test_a_webhook_gets_updates_until_it_confirms_them(telegram, client, chat, ada):
    from aiogram.exceptions import TelegramConflictError

    seen = []

    async def take(request: web.Request) -> web.Response:
        secret = request.headers["X-Telegram-Bot-Api-Secret-Token"]
        seen.append((secret, (await request.json())["message"]["text"]))
        return web.Response(status=500 if len(seen) == 1 else 200)

    app = web.Application()
    app.router.add_post("/hook", take)
    async with TestServer(app) as hook:
        telegram.say(chat, ada, "before")
        await client.set_webhook(str(hook.make_url("/hook")), secret_token="s3-cret")
        telegram.say(chat, ada, "after")
        await telegram.until_confirmed()
        with pytest.raises(TelegramConflictError, match="webhook is active"):
            await client.get_updates()
        assert (await client.get_webhook_info()).url.endswith("/hook")
        await client.delete_webhook()
    assert seen == [("s3-cret", "before"), ("s3-cret", "before"), ("s3-cret", "after")]
    assert await client.get_updates() == []


async def test_a_flooded_chat_is_refused_and_early_calls_are_in_the_books(telegram, client, chat):
    from aiogram.exceptions import TelegramRetryAfter

    telegram.faults.flood(chat.id, per_second=1 / 60, retry_after=60)
    await client.send_message(chat.id, "1")
    for _ in range(2):
        with pytest.raises(TelegramRetryAfter) as caught:
            await client.send_message(chat.id, "2")
        assert 30 < caught.value.retry_after <= 60
    assert [one.early for one in telegram.records.calls] == [False, False, True]
    telegram.faults.clear()
    await client.send_message(chat.id, "3")


async def test_errors_broken_connections_and_garbage_reach_the_client(telegram, client, chat):
    from aiogram import exceptions

    telegram.faults.flood_once(chat.id, retry_after=7)
    telegram.faults.refuse(500, "Internal Server Error")
    telegram.faults.html(502)
    telegram.faults.hang_up()
    telegram.faults.garbage()
    for kind in (
        exceptions.TelegramRetryAfter,
        exceptions.TelegramServerError,
        exceptions.ClientDecodeError,
        exceptions.TelegramNetworkError,
        exceptions.ClientDecodeError,
    ):
        with pytest.raises(kind):
            await client.send_message(chat.id, "x")
    assert [one.status for one in telegram.records.calls] == [429, 500, 502, 0, 200]
    assert len(telegram.records.messages(chat.id)) == 1
    await client.send_message(chat.id, "y")


async def test_an_answer_may_be_lost_after_the_message_was_shown(telegram, client, chat):
    from aiogram.exceptions import TelegramNetworkError

    telegram.faults.lose_answer()
    with pytest.raises(TelegramNetworkError):
        await client.send_message(chat.id, "x")
    assert telegram.records.texts(chat.id) == ["x"]
    assert [(one.status, one.performed) for one in telegram.records.calls] == [(0, True)]


async def test_entities_may_be_refused_while_plain_text_passes(telegram, client, chat):
    from aiogram.exceptions import TelegramBadRequest

    telegram.faults.refuse_entities()
    with pytest.raises(TelegramBadRequest, match="can't parse entities"):
        await client.send_message(chat.id, "<b>x</b>", parse_mode="HTML")
    await client.send_message(chat.id, "x")


async def test_a_call_may_be_held_at_a_gate(telegram, client, chat):
    gate = anyio.Event()
    telegram.faults.slow(gate=gate, chat=chat.id)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.send_message, chat.id, "held")
        other = telegram.private(telegram.user(8, "Bob"))
        await client.send_message(other.id, "free")
        assert telegram.records.texts(chat.id) == []
        gate.set()
    assert telegram.records.texts(chat.id) == ["held"]


async def test_an_outage_refuses_connections_and_ends_at_the_same_port(telegram, client, chat, ada):
    from aiogram.exceptions import TelegramNetworkError

    await client.get_me()
    async with telegram.outage():
        with pytest.raises(TelegramNetworkError):
            await client.get_me()
        telegram.say(chat, ada, "anybody?")
    (update,) = await client.get_updates()
    assert update.message.text == "anybody?"


async def test_tokens_are_unknown_or_revoked_and_methods_missing(telegram, client, chat):
    from aiogram.exceptions import TelegramUnauthorizedError

    async with client_of(telegram, "99:NO") as stranger:
        with pytest.raises(TelegramUnauthorizedError):
            await stranger.get_me()
    async with ClientSession() as http:
        async with http.post(f"{telegram.url}/bot{telegram.token}/danceALittle") as answer:
            assert (answer.status, (await answer.json())["description"]) == (404, "Not Found")
        url = f"{telegram.url}/bot{telegram.token}/SENDMESSAGE"
        async with http.post(url, json={"chat_id": chat.id, "text": "json"}) as answer:
            assert (await answer.json())["result"]["text"] == "json"
        async with http.get(url, params={"chat_id": chat.id, "text": "query"}) as answer:
            assert (await answer.json())["result"]["text"] == "query"
    telegram.revoke(telegram.token)
    with pytest.raises(TelegramUnauthorizedError):
        await client.get_me()


async def test_two_bots_share_a_group_and_have_queues_of_their_own(telegram, client, ada):
    telegram.bot("55:T", name="Other", username="other_bot")
    group = telegram.group(-1006, "Group")
    telegram.say(group, ada, "both")
    async with client_of(telegram, "55:T") as other:
        for one in (client, other):
            (update,) = await one.get_updates()
            assert update.message.text == "both"
            await one.send_message(group.id, f"I am {one.id}")
    assert [one.bot for one in telegram.records.messages(group.id)] == [client.id, 55]


async def test_ids_may_collide_between_chats():
    async with TelegramServer(colliding_ids=True) as telegram:
        ada, bob = telegram.user(7, "Ada"), telegram.user(8, "Bob")
        first = telegram.say(telegram.private(ada), ada, "x")
        assert first == telegram.say(telegram.private(bob), bob, "y")
        with pytest.raises(ValueError, match="name the chat"):
            telegram.edit(first, "z")
        telegram.edit(first, "z", chat=8)


async def test_unknown_updates_pass_as_they_are(telegram, client):
    from aiogram.exceptions import ClientDecodeError

    telegram.raw({"brand_new_kind": {"x": 1}})
    (update,) = await client.get_updates()
    assert update.update_id
    telegram.raw({"message": {"nonsense": True}})
    with pytest.raises(ClientDecodeError):
        await client.get_updates()


async def test_a_wait_that_fails_says_what_the_books_hold(telegram, client, chat):
    await client.send_message(chat.id, "only this")
    with pytest.raises(TimeoutError, match="only this"):
        await telegram.until_messages(chat, 2, within=0.05)


def test_a_fault_without_a_method_spares_the_waiting_poll():
    fault = BotApiFault("hang_up")
    assert not fault.meets(1, "getUpdates", None, {})
    assert fault.meets(1, "sendMessage", 5, {})
