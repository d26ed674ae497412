"""The Telegram of the tests hands over, shows, refuses and fails as the real one does."""

from __future__ import annotations

import anyio
import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
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


@pytest.mark.parametrize(
    ("method", "arguments", "reason"),
    [
        ("send_message", {"chat_id": 7, "text": "x" * 4097}, "message is too long"),
        ("send_message", {"chat_id": 7, "text": "😀" * 2049}, "message is too long"),
        ("send_message", {"chat_id": 7, "text": ""}, "message text is empty"),
        ("send_message", {"chat_id": 7, "text": " \n"}, "text must be non-empty"),
        ("send_message", {"chat_id": 8, "text": "x"}, "chat not found"),
        ("send_message", {"chat_id": 7, "text": "x", "message_thread_id": 99}, "thread not found"),
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


async def test_a_group_that_became_a_supergroup_names_its_new_id(telegram, client, ada):
    from aiogram.exceptions import TelegramMigrateToChat

    old = telegram.group(-5, "Old", basic=True)
    telegram.say(old, ada, "x")
    telegram.migrate(old, -1005)
    with pytest.raises(TelegramMigrateToChat) as caught:
        await client.send_message(old.id, "x")
    assert caught.value.migrate_to_chat_id == -1005
    await client.send_message(-1005, "x")


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
