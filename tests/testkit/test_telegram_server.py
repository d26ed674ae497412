"""The Telegram of the tests hands over, shows, refuses and fails as the real one does."""

from __future__ import annotations

import anyio
import pytest
from aiohttp import ClientSession
from telegram_client_rig import client_of


async def test_a_second_poller_ends_the_first_with_a_conflict(telegram, client):
    from aiogram.exceptions import TelegramConflictError

    async with anyio.create_task_group() as tasks:

        async def first():
            with pytest.raises(TelegramConflictError, match="only one bot instance"):
                await client.get_updates(timeout=10)

        tasks.start_soon(first)
        await telegram.until(lambda books: books.polling)
        assert await client.get_updates(timeout=0) == []


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
