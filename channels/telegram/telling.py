"""Short words of the channel's own to a chat: best effort, behind nobody's back, never in the way."""

from __future__ import annotations

import logging
from collections import Counter
from functools import partial

from aiogram.methods import AnswerCallbackQuery, SendMessage
from aiogram.types import LinkPreviewOptions

from bot.bus import Address
from channels.delivery.screen import Flooded, ScreenError, Unreachable
from channels.lanes import Lanes
from channels.telegram.api import Api
from channels.telegram.showing import show
from channels.telegram.timing import Pause, Timing

logger = logging.getLogger(__name__)

_TRIES = 3
_MOST_WAITING = 3
_LONGEST_TEXT = 4_000


class Teller:
    """Tells chats what the bus does not: that somebody may not, or that a message was not taken.

    Args:
        api: Telegram.
        lanes: Run what is told, apart from the chats' own.
        timing: Waits between tries.
    """

    def __init__(self, api: Api, lanes: Lanes, timing: Timing) -> None:
        self._api = api
        self._lanes = lanes
        self._timing = timing
        self._waiting: Counter[str] = Counter()

    def tell(self, address: Address, text: str) -> None:
        """Send a text as it is; returns at once. A chat with too much to be told is left alone."""
        if self._waiting[address.session] >= _MOST_WAITING:
            logger.debug("a word to %s is left out, as others wait there", address.session)
            return
        self._waiting[address.session] += 1
        self._lanes.put(f"tell {address.session}", partial(self._send, address, text))

    def acknowledge(self, callback: str) -> None:
        """Let a pressed button stop turning; returns at once."""
        self._lanes.put(f"press {callback}", partial(self._acknowledge, callback))

    async def _send(self, address: Address, text: str) -> None:
        message = SendMessage(
            chat_id=int(address.chat_id),
            message_thread_id=None if address.topic is None else int(address.topic),
            text=text[:_LONGEST_TEXT],
            link_preview_options=LinkPreviewOptions(is_disabled=True),
        )
        pause = Pause(self._timing)
        try:
            for _ in range(_TRIES):
                try:
                    await show(self._api, message)
                except Flooded as flood:
                    await pause.wait(flood.seconds)
                except Unreachable:
                    await pause.wait()
                else:
                    return
            logger.info("a word to %s could not be sent", address.session)
        except ScreenError as refused:
            logger.info("a word to %s could not be sent: %s", address.session, refused)
        finally:
            self._waiting[address.session] -= 1
            self._waiting += Counter()

    async def _acknowledge(self, callback: str) -> None:
        try:
            await self._api(AnswerCallbackQuery(callback_query_id=callback), seconds=10)
        except ScreenError as error:
            # Too old, or acknowledged before: the button has stopped turning by itself.
            logger.debug("a pressed button was not acknowledged: %s", error)
