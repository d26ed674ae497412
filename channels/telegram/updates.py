"""Updates as they came, read one by one: what is malformed costs itself alone."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from aiogram.types import Update
from pydantic import ValidationError

from channels.telegram.mending import mended
from channels.telegram.moves import Migration, moved_ids
from channels.telegram.people import GROUPS
from channels.telegram.reading import Event, read_update
from channels.telegram.words import Me

logger = logging.getLogger(__name__)

_MOST_NEWS = 20
"""Of a kind, so that strangers' groups are never what keeps another kind back."""

_ROUNDS = 4


class UpdateReader:
    """Reads what Telegram sends for one bot.

    Args:
        channel: The channel's name.
        me: The bot.
        announce: Tells whoever runs the program what they have to act on.
    """

    def __init__(self, channel: str, me: Me, announce: Callable[[str], None]) -> None:
        self._channel = channel
        self._me = me
        self._announce = announce
        self._news: dict[str, set[str]] = {}

    def read(self, raw: Any) -> Event | Migration | None:
        """Return what somebody did; None where it is nothing to us, or malformed."""
        try:
            update = validated(raw)
            self._tell_news(update)
            return read_update(update, self._channel, self._me)
        except ValidationError as exc:
            # Not what it says: that may be a stranger's.
            places = [".".join(map(str, one["loc"])) for one in exc.errors(include_input=False)]
            logger.warning(
                "the update %s is skipped, as it is malformed: %s",
                update_number(raw),
                ", ".join(places[:3]),
            )
        except (ValueError, OverflowError, OSError):
            logger.warning("the update %s is skipped: no such time", update_number(raw))
        return None

    def _tell_news(self, update: Update) -> None:
        news = _news_of(update, self._me)
        if news is None:
            return
        kind, line = news
        told = self._news.setdefault(kind, set())
        if line in told or len(told) >= _MOST_NEWS:
            return
        told.add(line)
        logger.info("%s", line)
        self._announce(f"Telegram: {line}")


def update_number(raw: Any) -> int | None:
    """Return an update's id; None where it has none."""
    number = raw.get("update_id") if isinstance(raw, dict) else None
    return number if isinstance(number, int) else None


def validated(raw: Any) -> Update:
    """Return an update, if need be without what nobody can read of its message.

    Raises:
        ValidationError: What it needs is malformed.
    """
    for _ in range(_ROUNDS):
        try:
            return Update.model_validate(raw)
        except ValidationError as error:
            found = mended(raw, error)
            if found is None:
                raise
            raw, left_out = found
            names = ", ".join(sorted(left_out))
            logger.info("the update %s is read without its %s", update_number(raw), names)
    return Update.model_validate(raw)


def _news_of(update: Update, me: Me) -> tuple[str, str] | None:
    """Return what an update tells of a group that somebody has to act on: its kind, and a line."""
    member, message = update.my_chat_member, update.message
    if member is not None and member.chat.type in GROUPS:
        present = ("member", "administrator", "restricted")
        if (
            member.new_chat_member.status in present
            and member.old_chat_member.status not in present
        ):
            return "joined", (
                f"@{me.username} was added to the group {member.chat.id}. It answers there once "
                f"an owner writes /pair here in it, or TAPEBOT_ALLOW has telegram:{member.chat.id}"
            )
    if message is not None and (ids := moved_ids(message)) is not None:
        old, new = ids
        return "moved", (
            f"the group {old} is {new} now: where the settings or /pair name it, "
            f"name telegram:{new}"
        )
    return None
