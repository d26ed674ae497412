"""Groups that became supergroups: both ids lead to the session of the first one.

Rule 1: a session keeps the id that its group had at first; only calls of the Bot API have the new one.
Rule 2: both chats count their messages from 1, so ids of the new one's messages are marked.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from bot.bus import Address
from channels.base import MoveChats
from channels.delivery.messenger import MessageGone
from channels.telegram.user_events import TelegramEvent

logger = logging.getLogger(__name__)

_MARK = ".s"


class MovedChats:
    """The new ids of groups by their first ones.

    Args:
        keep: Keeps some for all processes, and returns all; None keeps them in memory.
    """

    def __init__(self, keep: MoveChats | None = None) -> None:
        self._keep = keep
        self._ids: dict[int, int] = {}

    def current(self, chat: int) -> int:
        """Return the present id of a chat."""
        return self._ids.get(chat, chat)

    async def learn(self, moves: dict[int, int]) -> None:
        """Keep that groups have other ids, and read what is kept.

        Raises:
            BusError: They could not be kept or read.
        """
        for old, new in moves.items():
            logger.info("the chat %s is now %s", old, new)
        if self._keep is not None:
            kept = await self._keep({str(old): str(new) for old, new in moves.items()})
            moves = {int(old): int(new) for old, new in kept.items()}
        self._ids |= moves

    async def learn_from(self, raw: object) -> None:
        """Keep the move that a raw update tells of, if it tells of one.

        Raises:
            BusError: It could not be kept.
        """
        message = raw.get("message") if isinstance(raw, dict) else None
        chat = message.get("chat") if isinstance(message, dict) else None
        here = chat.get("id") if isinstance(chat, dict) else None
        if isinstance(message, dict) and isinstance(here, int):
            old, new = message.get("migrate_from_chat_id"), message.get("migrate_to_chat_id")
            if isinstance(old, int) or isinstance(new, int):
                first = old if isinstance(old, int) else here
                await self.learn({first: new if isinstance(new, int) else here})

    def in_session(self, event: TelegramEvent) -> TelegramEvent:
        """Return an event of a new chat as one of the session that it continues."""
        chat = int(event.address.chat_id)
        old = next((old for old, new in self._ids.items() if new == chat), None)
        if old is None:
            new = self.moved_to(event.address)
            both = event.chat_ids if new is None else (*event.chat_ids, new)
            return replace(event, chat_ids=both, moved_to=new)
        number, answered = event.message_id, event.answered_message_id
        rest = event.id.removeprefix(number)
        return replace(
            event,
            address=Address(event.address.channel, str(old), event.address.topic),
            chat_ids=(str(old), str(chat)),
            moved_to=str(chat),
            message_id=f"{number}{_MARK}",
            id=event.id if rest == event.id else f"{number}{_MARK}{rest}",
            answered_message_id=None if answered is None else f"{answered}{_MARK}",
        )

    def marked(self, address: Address, message_id: str) -> str:
        """Return the id of a message that was sent to a session's chat as the session knows it."""
        return f"{message_id}{_MARK}" if self.moved_to(address) else message_id

    def number(self, address: Address, message_id: str) -> int:
        """Return Telegram's id of a message that a session names.

        Raises:
            MessageGone: It is no id, or that of a message in the chat before it moved.
        """
        number, mark, rest = message_id.partition(".")
        if not number.isdecimal() or (
            self.moved_to(address) and not f"{mark}{rest}".startswith(_MARK)
        ):
            raise MessageGone(f"{message_id!r} is not a Telegram message")  # for the log
        return int(number)

    def moved_to(self, address: Address) -> str | None:
        """Return the present id of a session's chat, if it has another than the session."""
        new = self._ids.get(int(address.chat_id))
        return None if new is None else str(new)
