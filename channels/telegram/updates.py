"""Parse raw updates one by one, without the unknown or malformed parts of their messages.

An update that cannot be parsed affects no others; its sender is told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import Any

from aiogram.types import Update
from pydantic import ValidationError

from bot.core.i18n import _
from channels.telegram.message_content import GROUP_TYPES, BotIdentity
from channels.telegram.user_events import TelegramEvent, migrated_ids, read_update

logger = logging.getLogger(__name__)

_MOST_NEWS = 20
"""The most announcements of one kind, so that strangers' groups do not suppress other kinds."""

_ROUNDS = 4


class UpdateReader:
    """Parse raw updates of one bot."""

    def __init__(self, channel: str, me: BotIdentity, announce: Callable[[str], None]) -> None:
        self._channel = channel
        self._me = me
        self._announce = announce
        self._news: dict[str, set[str]] = {}

    def read(self, raw: Any) -> TelegramEvent | None:
        """Return the event in an update; None if it is irrelevant, or malformed and nobody's."""
        try:
            update = validate_update(raw)
            self._announce_news(update)
            return read_update(update, self._channel, self._me)
        except ValidationError as exc:
            # Without the input, which may be a stranger's text.
            places = [
                ".".join(map(str, error_details["loc"]))
                for error_details in exc.errors(include_input=False)
            ]
            logger.warning(
                "the update %s is skipped, as it is malformed: %s",
                read_update_id(raw),
                ", ".join(places[:3]),
            )
        except (ValueError, OverflowError, OSError):
            logger.warning("the update %s is skipped: invalid time", read_update_id(raw))
        return self._unreadable(raw)

    def _unreadable(self, raw: Any) -> TelegramEvent | None:
        """Return who sent an unreadable update where, as far as it says so."""
        with suppress(ValidationError, ValueError, KeyError, TypeError, AttributeError):
            query = raw.get("callback_query") or {}
            message = raw.get("message") or raw.get("edited_message") or query["message"]
            sender, chat, number = query.get("from") or message["from"], message["chat"], 0
            if isinstance(message.get("message_id"), int):
                number = message["message_id"]
            bare = {
                "message_id": number,
                "date": 0,
                "text": "…",
                "from": {"first_name": "somebody", "is_bot": False, "id": sender["id"]},
                "chat": {"id": chat["id"], "type": chat["type"]},
            }
            for kept in (_KEPT_UNREADABLE, ()):
                with suppress(ValidationError):
                    told = {**bare, **{name: message[name] for name in kept if name in message}}
                    update = Update.model_validate({"update_id": raw["update_id"], "message": told})
                    event = read_update(update, self._channel, self._me)
                    if event is not None:
                        addressed = event.addressed or bool(query)
                        return replace(event, kind="unreadable", addressed=addressed)
        return None

    def _announce_news(self, update: Update) -> None:
        news = _news_of(update, self._me)
        if news is None:
            return
        kind, line = news
        told = self._news.setdefault(kind, set())
        if line in told or len(told) >= _MOST_NEWS:
            return
        told.add(line)
        logger.info("%s", line)
        self._announce(_("Telegram: {line}", line=line))


def read_update_id(raw: Any) -> int | None:
    """Return a raw update's id; None if it has none."""
    number = raw.get("update_id") if isinstance(raw, dict) else None
    return number if isinstance(number, int) else None


def validate_update(raw: Any) -> Update:
    """Return a validated update, if necessary without optional fields that are malformed.

    Raises:
        ValidationError: A required field is malformed.
    """
    for _round in range(_ROUNDS):
        try:
            return Update.model_validate(raw)
        except ValidationError as error:
            left_out = _without_malformed(raw, error)
            if left_out is None:
                raise
            raw = left_out
    return Update.model_validate(raw)


def _without_malformed(raw: Any, error: ValidationError) -> dict[str, Any] | None:
    """Return an update without the malformed fields of its message, or None if none can be left out.

    Of the message that it replies to, the rest can still be quoted.
    """
    smaller, names = deepcopy(raw), set()
    # Without the input, which may be a stranger's text.
    wrong = {each["loc"] for each in error.errors(include_url=False, include_input=False)}
    for path in _PLACES:
        message, given = smaller, raw
        for step in path:
            message = message.get(step) if isinstance(message, dict) else None
            given = given.get(step) if isinstance(given, dict) else None
        for where in [each for each in wrong if message and each[: len(path)] == path]:
            # A location may also contain the names of a union's members.
            name = next((str(one) for one in where[len(path) :] if one in given), None)
            if name is None or name in _NEEDED:
                continue
            wrong.discard(where)
            if (*path, name) in names:
                continue
            names.add((*path, name))
            if name in _REPLACEMENTS and message[name] != _REPLACEMENTS[name]:
                message[name] = _REPLACEMENTS[name]
            else:
                del message[name]
    shown = ", ".join(sorted(".".join(each) for each in names))
    logger.info("the update %s is read without its %s", read_update_id(raw), shown)
    return smaller if names else None


def _news_of(update: Update, me: BotIdentity) -> tuple[str, str] | None:
    """Return an announcement about a group that was joined or migrated: its kind and text."""
    member, message = update.my_chat_member, update.message
    if member is not None and member.chat.type in GROUP_TYPES:
        present = ("member", "administrator", "restricted")
        if (
            member.new_chat_member.status in present
            and member.old_chat_member.status not in present
        ):
            return "joined", (
                _(
                    "@{username} was added to the group {id}. It answers there once an owner sends /pair here in it, or TAPEBOT_ALLOW contains telegram:{id}",
                    username=me.username,
                    id=member.chat.id,
                )
            )
    if message is not None and (ids := migrated_ids(message)) is not None:
        old, new = ids
        return "moved", (
            _(
                "the group {old} is now {new}: use telegram:{new} in the settings and in /pair",
                old=old,
                new=new,
            )
        )
    return None


_TARGET = "reply_to_message"
_PLACES = tuple(
    (*path, *more)
    for more in ((_TARGET,), ())
    for path in (("message",), ("edited_message",), ("callback_query", "message"))
)
"""Where messages stand in an update, those that are replied to first."""

_NEEDED = frozenset(
    {
        "message_id",
        "message_thread_id",
        "is_topic_message",
        "from",
        "sender_chat",
        "is_automatic_forward",
        "chat",
        "date",
        "edit_date",
        "text",
        "migrate_to_chat_id",
        "migrate_from_chat_id",
    }
)
_REPLACEMENTS: dict[str, dict[str, Any]] = {
    "forward_origin": {"type": "hidden_user", "sender_user_name": "somebody", "date": 0},
    "via_bot": {"id": 0, "is_bot": True, "first_name": "a bot"},
}
_KEPT_UNREADABLE = ("text", "entities", "caption", "caption_entities", _TARGET)
