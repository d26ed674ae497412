"""Updates as they came, read one by one: what is malformed costs itself alone."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from aiogram.types import Update
from pydantic import ValidationError

from channels.telegram.reading import Event, news_of, read_update
from channels.telegram.words import Me

logger = logging.getLogger(__name__)

_MOST_NEWS = 20


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
        self._news: set[str] = set()

    def read(self, raw: Any) -> Event | None:
        """Return what somebody did; None where it is nothing to us, or malformed."""
        try:
            update = Update.model_validate(raw)
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
        news = news_of(update, self._me)
        if news is None or news in self._news or len(self._news) >= _MOST_NEWS:
            return
        self._news.add(news)
        logger.info("%s", news)
        self._announce(f"Telegram: {news}")


def update_number(raw: Any) -> int | None:
    """Return an update's id; None where it has none."""
    number = raw.get("update_id") if isinstance(raw, dict) else None
    return number if isinstance(number, int) else None
