"""The foreign Telegram works with the client that the bot uses."""

from __future__ import annotations

import anyio
import pytest
from telegram_peer_server import telegram_peer

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def client_library() -> None:
    """Load the client before any test's clock runs: its import takes seconds."""
    import aiogram  # noqa: F401


async def test_a_conversation_with_the_foreign_telegram():
    from aiogram import Bot
    from aiogram.client.session.aiohttp import AiohttpSession
    from aiogram.client.telegram import TelegramAPIServer
    from aiogram.exceptions import TelegramNotFound
    from aiogram.types import BotCommand, InlineKeyboardButton, InlineKeyboardMarkup

    async with telegram_peer() as telegram:
        session = AiohttpSession(api=TelegramAPIServer.from_base(telegram.url))
        async with Bot(telegram.token, session=session).context() as bot:
            assert (await bot.get_me()).is_bot
            await bot.set_my_commands([BotCommand(command="new", description="Anew")])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(poll_and_answer, bot)
                await telegram.say("hello")
            await bot.send_chat_action(7, "typing")
            await telegram.until_text("hello to you")
            (shown,) = await telegram.messages()
            await bot.edit_message_text("hello again", chat_id=7, message_id=shown["messageId"])
            assert await telegram.texts() == ["hello again"]
            button = InlineKeyboardButton(text="Stop", callback_data="stop")
            keyboard = InlineKeyboardMarkup(inline_keyboard=[[button]])
            await bot.send_message(7, "working", reply_markup=keyboard)
            await telegram.press("stop", (await telegram.messages())[-1])
            assert [one.callback_query.data for one in await bot.get_updates()] == ["stop"]
            with pytest.raises(TelegramNotFound):
                await bot.send_message_draft(chat_id=7, draft_id=1, text="x")


async def poll_and_answer(bot):
    with anyio.fail_after(30):
        (update,) = await bot.get_updates(timeout=10)
    await bot.send_message(update.message.chat.id, f"{update.message.text} to you")
