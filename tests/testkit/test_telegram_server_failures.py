"""The Telegram of the tests floods, fails, loses answers and shuts out as the real one does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from aiohttp import ClientSession

from testkit.telegram.faults import BotApiFault

if TYPE_CHECKING:
    pass
from telegram_client_rig import client_of


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


async def test_a_wait_that_fails_says_what_the_books_hold(telegram, client, chat):
    await client.send_message(chat.id, "only this")
    with pytest.raises(TimeoutError, match="only this"):
        await telegram.until_messages(chat, 2, within=0.05)


def test_a_fault_without_a_method_spares_the_waiting_poll():
    fault = BotApiFault("hang_up")
    assert not fault.meets(1, "getUpdates", None, {})
    assert fault.meets(1, "sendMessage", 5, {})
