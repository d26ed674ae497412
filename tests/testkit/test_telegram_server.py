"""The Telegram of the tests hands over, shows, refuses and fails as the real one does."""

from __future__ import annotations

import pytest


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
