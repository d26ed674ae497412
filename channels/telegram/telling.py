"""Short words of the channel's own to a chat: best effort, behind nobody's back, never in the way."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from aiogram.methods import AnswerCallbackQuery, SendMessage
from aiogram.types import LinkPreviewOptions, ReplyParameters

from bot.bus import Address
from channels.delivery.screen import Flooded, ScreenError, Unreachable
from channels.lanes import Lanes
from channels.telegram.api import Api
from channels.telegram.reading import Event
from channels.telegram.showing import show
from channels.telegram.timing import Pause, Timing

logger = logging.getLogger(__name__)

_TRIES = 3
_MOST_WAITING = 3
_LONGEST_TEXT = 4_000
_MOST_NAMED = 1_000
_LONGEST_NAME = 60


@dataclass(slots=True)
class _Refusals:
    """Messages of one chat that were not taken and whose senders do not know it yet.

    Attributes:
        address: The chat.
        first: The platform's id of the first.
        reason: Why, in the words that are shown for one.
        names: The beginning of each message, in order.
        more: How many were refused beyond those that are named.
    """

    address: Address
    first: int
    reason: str
    names: list[str] = field(default_factory=list)
    more: int = 0

    def add(self, name: str) -> None:
        if len(self.names) < _MOST_NAMED:
            self.names.append(name)
        else:
            self.more += 1

    def texts(self) -> list[str]:
        """Return what the chat is told, within the length of a message."""
        if len(self.names) == 1:
            return [self.reason[:_LONGEST_TEXT]]
        texts = [f"{len(self.names) + self.more} messages were not taken ({self.reason}):"]
        lines = [f"- {name}" for name in self.names]
        if self.more:
            lines.append(f"- and {self.more} messages after these")
        for line in lines:
            if len(texts[-1]) + len(line) >= _LONGEST_TEXT:
                texts.append(line)
            else:
                texts[-1] += f"\n{line}"
        return texts


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
        self._refusals: dict[str, _Refusals] = {}

    def tell(self, address: Address, text: str) -> None:
        """Send a text as it is; returns at once. A chat with too much to be told is left alone."""
        if self._waiting[address.session] >= _MOST_WAITING:
            logger.debug("a word to %s is left out, as others wait there", address.session)
            return
        self._waiting[address.session] += 1
        self._lanes.put(f"tell {address.session}", partial(self._send, address, text))

    def refuse(self, event: Event, reason: str) -> None:
        """Tell a chat that a message was not taken; returns at once.

        The notice replies to the message. Messages that are refused before the notice is sent are named
        in it, so that none is lost without a word however many there are.

        Args:
            event: The message.
            reason: Why, with what its sender can do.
        """
        session = event.address.session
        waiting = self._refusals.get(session)
        if waiting is None:
            waiting = _Refusals(event.address, int(event.message), reason)
            self._refusals[session] = waiting
            self._lanes.put(f"tell {session}", partial(self._send_refusals, session))
        waiting.add(_name_of(event))

    def acknowledge(self, callback: str) -> None:
        """Let a pressed button stop turning; returns at once."""
        self._lanes.put(f"press {callback}", partial(self._acknowledge, callback))

    async def _send_refusals(self, session: str) -> None:
        refusals = self._refusals.pop(session)
        reply_to: int | None = refusals.first
        pause = Pause(self._timing)
        for text in refusals.texts():
            while True:
                try:
                    await show(self._api, _message(refusals.address, text, reply_to))
                except Flooded as flood:
                    await pause.wait(flood.seconds)
                except Unreachable:
                    await pause.wait()
                except ScreenError as refused:
                    logger.warning(
                        "refused messages of %s could not be named: %s", session, refused
                    )
                    return
                else:
                    break
            reply_to = None

    async def _send(self, address: Address, text: str) -> None:
        message = _message(address, text[:_LONGEST_TEXT])
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


def _message(address: Address, text: str, reply_to: int | None = None) -> SendMessage:
    return SendMessage(
        chat_id=int(address.chat_id),
        message_thread_id=None if address.topic is None else int(address.topic),
        text=text,
        link_preview_options=LinkPreviewOptions(is_disabled=True),
        reply_parameters=None
        if reply_to is None
        else ReplyParameters(message_id=reply_to, allow_sending_without_reply=True),
    )


def _name_of(event: Event) -> str:
    """Return the words by which a sender knows a message again."""
    words = " ".join(event.text.split()) or ", ".join(file.name for file in event.files)
    name = words if len(words) <= _LONGEST_NAME else f"{words[: _LONGEST_NAME - 1]}…"
    return f"“{name}”" if name else "a message without words"
