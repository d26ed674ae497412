"""Answer presses of buttons to who pressed them."""

from __future__ import annotations

import logging
from collections import OrderedDict

import anyio
from aiogram.methods import AnswerCallbackQuery

from channels.delivery.messenger import MessengerError
from channels.telegram.api import BotApiClient, TelegramTiming

logger = logging.getLogger(__name__)

_LONGEST_ALERT = 200
_MOST_PRESSES = 1_000


class PressedButtons:
    """Answer each press of a button once: with its result, or with nothing if that does not come soon.

    Args:
        api: The Bot API client.
        timing: How long a result is awaited.
    """

    def __init__(self, api: BotApiClient, timing: TelegramTiming) -> None:
        self._api = api
        self._seconds = timing.press_wait
        self._results: OrderedDict[str, anyio.Event] = OrderedDict()

    async def end(self, callback: str) -> None:
        """Wait a while for the result of a press, then end its loading animation without one."""
        came = self._results.setdefault(callback, anyio.Event())
        if len(self._results) > _MOST_PRESSES:
            self._results.popitem(last=False)
        with anyio.move_on_after(self._seconds):
            await came.wait()
        if not came.is_set():
            came.set()
            await self._answer(callback, "")

    async def tell(self, callback: str, text: str) -> bool:
        """Show who pressed a button a text, or none; return False if it is too late or too long."""
        came = self._results.setdefault(callback, anyio.Event())
        if came.is_set():
            return False
        came.set()
        short = len(text) <= _LONGEST_ALERT
        return await self._answer(callback, text if short else "") and short

    async def _answer(self, callback: str, text: str) -> bool:
        try:
            await self._api(
                AnswerCallbackQuery(
                    callback_query_id=callback, text=text or None, show_alert=bool(text) or None
                ),
                seconds=10,
            )
        except MessengerError as error:
            # Too old: the loading animation has ended by itself.
            logger.debug("a pressed button was not acknowledged: %s", error)
            return False
        return True
