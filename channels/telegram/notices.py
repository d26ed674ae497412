"""Send notices about rejected messages and access, best effort."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from aiogram.methods import SendMessage
from aiogram.types import LinkPreviewOptions, ReplyParameters

from bot.bus import Address
from bot.core.i18n import _, current_language, ngettext, use_language
from channels.delivery.messenger import MessengerError, PlatformUnreachable, RateLimited
from channels.keyed_executor import KeyedExecutor
from channels.telegram.api import Backoff, BotApiClient, TelegramTiming
from channels.telegram.messenger import send_message
from channels.telegram.presses import PressedButtons
from channels.telegram.user_events import UserEvent

logger = logging.getLogger(__name__)

_TRIES = 3
_MOST_WAITING = 3
_LONGEST_TEXT = 4_000
_MOST_NAMED = 1_000
_LONGEST_NAME = 60


@dataclass(slots=True)
class _Refusals:
    """Rejected messages of one chat whose senders are not notified yet.

    Attributes:
        address: The chat.
        first: The platform's id of the first message.
        reason: The text of the notice if there is only one message.
        language: The language of the first message's sender.
        names: The beginning of each message, in order.
        more: The number of messages beyond those in ``names``.
    """

    address: Address
    first: int
    reason: str
    language: str
    names: list[str] = field(default_factory=list)
    more: int = 0

    def add(self, name: str) -> None:
        if len(self.names) < _MOST_NAMED:
            self.names.append(name)
        else:
            self.more += 1

    def texts(self) -> list[str]:
        """Return the notice as texts that each fit into a message."""
        if len(self.names) == 1:
            return [self.reason[:_LONGEST_TEXT]]
        texts = [
            ngettext(
                "{n} message was not accepted ({reason}):",
                "{n} messages were not accepted ({reason}):",
                len(self.names) + self.more,
                reason=self.reason,
            )
        ]
        lines = [f"- {name}" for name in self.names]
        if self.more:
            more = ngettext(
                "and {n} message after these", "and {n} messages after these", self.more
            )
            lines.append(f"- {more}")
        for line in lines:
            if len(texts[-1]) + len(line) >= _LONGEST_TEXT:
                texts.append(line)
            else:
                texts[-1] += f"\n{line}"
        return texts


class NoticeSender:
    """Send notices of the channel itself, outside the chats' delivery queues.

    Args:
        api: The Bot API client.
        executor: Run the sending, in lanes of its own.
        presses: Pressed buttons that wait for their results.
        timing: Delays between tries.
    """

    def __init__(
        self,
        api: BotApiClient,
        executor: KeyedExecutor,
        presses: PressedButtons,
        timing: TelegramTiming,
    ) -> None:
        self._api = api
        self._presses = presses
        self._executor = executor
        self._timing = timing
        self._waiting: Counter[str] = Counter()
        self._refusals: dict[str, _Refusals] = {}

    def send(self, address: Address, text: str) -> None:
        """Send a text without waiting; drop it if three others already wait for this chat."""
        if self._waiting[address.session] >= _MOST_WAITING:
            logger.debug("a notice to %s is skipped, since others are waiting", address.session)
            return
        self._waiting[address.session] += 1
        self._executor.submit(f"tell {address.session}", partial(self._send, address, text))

    def report_rejected(self, event: UserEvent, reason: str) -> None:
        """Notify a chat that a message was rejected, without waiting.

        The notice replies to the message. It also names the messages that are rejected before it is
        sent, so that every rejection is reported, however many there are.

        Args:
            event: The message.
            reason: Why it was rejected, and what the sender can do.
        """
        session = event.address.session
        waiting = self._refusals.get(session)
        if waiting is None:
            waiting = _Refusals(
                event.address, int(event.message_id.partition(".")[0]), reason, current_language()
            )
            self._refusals[session] = waiting
            self._executor.submit(f"tell {session}", partial(self._send_refusals, session))
        waiting.add(_name_of(event))

    def expect_press_result(self, callback: str) -> None:
        """End a pressed button's loading animation soon, if its result does not end it before."""
        self._executor.submit(f"press {callback}", partial(self._presses.end, callback))

    async def _send_refusals(self, session: str) -> None:
        refusals = self._refusals.pop(session)
        reply_to = refusals.first or None
        pause = Backoff(self._timing)
        with use_language(refusals.language):
            texts = refusals.texts()
        for text in texts:
            while True:
                try:
                    await send_message(self._api, _message(refusals.address, text, reply_to))
                except RateLimited as flood:
                    await pause.wait(flood.seconds)
                except PlatformUnreachable:
                    await pause.wait()
                except MessengerError as refused:
                    logger.warning(
                        "refused messages of %s could not be listed: %s", session, refused
                    )
                    return
                else:
                    break
            reply_to = None

    async def _send(self, address: Address, text: str) -> None:
        message = _message(address, text[:_LONGEST_TEXT])
        pause = Backoff(self._timing)
        try:
            for _ in range(_TRIES):
                try:
                    await send_message(self._api, message)
                except RateLimited as flood:
                    await pause.wait(flood.seconds)
                except PlatformUnreachable:
                    await pause.wait()
                else:
                    return
            logger.info("a notice to %s could not be sent", address.session)
        except MessengerError as refused:
            logger.info("a notice to %s could not be sent: %s", address.session, refused)
        finally:
            self._waiting[address.session] -= 1
            self._waiting += Counter()


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


def _name_of(event: UserEvent) -> str:
    """Return a short description by which the sender recognises a message."""
    words = " ".join(event.text.split()) or ", ".join(file.name for file in event.files)
    name = words if len(words) <= _LONGEST_NAME else f"{words[: _LONGEST_NAME - 1]}…"
    return f"“{name}”" if name else _("a message without words")
