"""How the Telegram test server calls a bot's webhook."""

from __future__ import annotations

import time

import aiohttp
import anyio

from testkit.telegram.records import Books, Delivery, Json
from testkit.telegram.world import Bot

_SECRET = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - a header's name
_PATIENCE = aiohttp.ClientTimeout(total=60)


async def deliver(bot: Bot, books: Books, pause: float) -> None:
    """Post the bot's updates to its webhook, each until a 2xx confirms it, one at a time.

    Ends when the webhook is removed or replaced.

    Args:
        bot: Whose.
        books: Where hand-overs are noted.
        pause: Seconds before an update that was not taken is posted again.
    """
    webhook = bot.webhook
    async with aiohttp.ClientSession(timeout=_PATIENCE) as session:
        while webhook is not None and bot.webhook is webhook:
            if not bot.queue:
                await bot.changed.wait()
                continue
            update = bot.queue[0]
            update.handed_at.append(time.monotonic())
            fault = await _post(session, webhook, update)
            if fault:
                bot.webhook_error = (int(time.time()), fault)
                await anyio.sleep(pause)
                continue
            bot.webhook_error = None
            update.confirmed_at = time.monotonic()
            if update in bot.queue:
                bot.queue.remove(update)
            books.note("confirmed", {"bot": bot.user.id, "update_id": update.id})


async def _post(session: aiohttp.ClientSession, webhook: Json, update: Delivery) -> str:
    """Post one; returns why it was not taken, or nothing."""
    headers = {_SECRET: webhook["secret"]} if webhook["secret"] else {}
    try:
        async with session.post(webhook["url"], json=update.update, headers=headers) as answer:
            await answer.read()
            if answer.ok and answer.status < 300:
                return ""
            return f"Wrong response from the webhook: {answer.status} {answer.reason}"
    except (aiohttp.ClientError, TimeoutError) as exc:
        return f"Connection failed: {type(exc).__name__}"
