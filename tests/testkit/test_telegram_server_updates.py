"""The Telegram of the tests hands a bot what people say and do as the real one does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from testkit.telegram.media_files import TelegramMedia
from testkit.telegram.server import TelegramServer

if TYPE_CHECKING:
    pass
from telegram_client_rig import client_of


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
