"""Bot API methods for accounts, commands, files and webhooks: functions of world, bot and parameters."""

from __future__ import annotations

import time

from testkit.telegram import validation as rules
from testkit.telegram.records import CallbackAnswer, Json
from testkit.telegram.validation import Params, bad
from testkit.telegram.world import BotAccount, TelegramWorld

MAX_DOWNLOAD = 20 * 1024 * 1024
"""Maximum size for ``getFile``: https://core.telegram.org/bots/api#getfile."""


def get_me(_world: TelegramWorld, bot: BotAccount, _params: Params) -> Json:
    return bot.user.as_json() | {
        "can_join_groups": True,
        "can_read_all_group_messages": True,
        "supports_inline_queries": False,
    }


def answer_callback(world: TelegramWorld, bot: BotAccount, params: Params) -> bool:
    """``answerCallbackQuery``; each query can be answered once."""
    number = params.text("callback_query_id")
    text = params.text("text")
    if rules.units(text) > rules.MAX_TOAST:
        raise bad("MESSAGE_TOO_LONG")
    if number not in bot.callbacks:
        raise bad("query is too old and response timeout expired or query ID is invalid")
    bot.callbacks.discard(number)
    fact = CallbackAnswer(bot.user.id, number, text, params.boolean("show_alert"), time.monotonic())
    world.records.pressed.append(fact)
    world.records.changed()
    return True


def _menu(params: Params) -> tuple[str, str]:
    scope = params.json("scope") or {"type": "default"}
    return repr(sorted(scope.items())), params.text("language_code")


def set_commands(_world: TelegramWorld, bot: BotAccount, params: Params) -> bool:
    bot.commands[_menu(params)] = rules.checked_commands(params.json("commands"))
    return True


def get_commands(_world: TelegramWorld, bot: BotAccount, params: Params) -> list[Json]:
    return bot.commands.get(_menu(params), [])


def delete_commands(_world: TelegramWorld, bot: BotAccount, params: Params) -> bool:
    bot.commands.pop(_menu(params), None)
    return True


def get_file(world: TelegramWorld, _bot: BotAccount, params: Params) -> Json:
    stored = world.files.get(params.text("file_id"))
    if stored is None:
        raise bad("wrong file_id or the file is temporarily unavailable")
    if stored.size > MAX_DOWNLOAD:
        raise bad("file is too big")
    return stored.as_json() | {"file_path": stored.path}


def set_webhook(_world: TelegramWorld, bot: BotAccount, params: Params) -> bool:
    """``setWebhook``; plain HTTP is accepted, as a local Bot API server does."""
    url = params.text("url")
    secret = params.text("secret_token")
    if url and not url.startswith(("https://", "http://")):
        raise bad("bad webhook: An HTTPS URL must be provided for webhook")
    if not all(one.isascii() and (one.isalnum() or one in "_-") for one in secret):
        raise bad("secret token contains unallowed characters")
    _set_up(bot, params)
    bot.webhook = {"url": url, "secret": secret} if url else None
    bot.webhook_error = None
    bot.end_poll("Conflict: terminated by setWebhook request")
    return True


def _set_up(bot: BotAccount, params: Params) -> None:
    allow(bot, params)
    if params.boolean("drop_pending_updates"):
        for one in bot.queue:
            one.dropped = True
        bot.queue.clear()


def allow(bot: BotAccount, params: Params) -> None:
    """Set ``allowed_updates`` if given; an empty list restores the default."""
    kinds = params.json("allowed_updates")
    if kinds is not None:
        bot.allowed = frozenset(kinds) or None


def delete_webhook(_world: TelegramWorld, bot: BotAccount, params: Params) -> bool:
    _set_up(bot, params)
    bot.webhook = None
    bot.changed.set()
    return True


def webhook_info(_world: TelegramWorld, bot: BotAccount, _params: Params) -> Json:
    info: Json = {
        "url": bot.webhook["url"] if bot.webhook else "",
        "has_custom_certificate": False,
        "pending_update_count": len(bot.queue),
    }
    if bot.webhook_error is not None:
        date, text = bot.webhook_error
        info |= {"last_error_date": date, "last_error_message": text}
    return info
