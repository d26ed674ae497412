"""Groups that became supergroups: both ids lead to the session of the first one.

Rule 1: a session keeps the id that its group had at first; only calls of the Bot API have the new one.
Rule 2: both chats count their messages from 1, so ids of the new one's messages are marked.
"""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import anyio.to_thread

from bot.bus import Address, create_or_replace_file
from channels.delivery.messenger import MessageGone
from channels.telegram.user_events import UserEvent

logger = logging.getLogger(__name__)

_MARK = ".s"


class MovedChats:
    """The new ids of groups by their first ones, kept in a file.

    Args:
        path: The file; None keeps them in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._ids: dict[int, int] = {}
        if path is not None and path.exists():
            try:
                self._ids = {
                    int(old): int(new) for old, new in json.loads(path.read_bytes()).items()
                }
            except (OSError, ValueError, AttributeError) as error:
                logger.warning("%s cannot be read: %s", path, error)

    def current(self, chat: int) -> int:
        """Return the present id of a chat."""
        return self._ids.get(chat, chat)

    async def learn(self, old: int, new: int) -> None:
        """Keep that a group has another id."""
        if old == new or self._ids.get(old) == new:
            return
        logger.info("the chat %s is now %s", old, new)
        self._ids[old] = new
        if self._path is not None:
            data = json.dumps(self._ids).encode()
            try:
                await anyio.to_thread.run_sync(create_or_replace_file, self._path, data)
            except OSError as error:
                logger.warning("that the chat %s is now %s was not kept: %s", old, new, error)

    async def learn_from(self, raw: object) -> None:
        """Keep the move that a raw update tells of, if it tells of one."""
        message = raw.get("message") if isinstance(raw, dict) else None
        chat = message.get("chat") if isinstance(message, dict) else None
        here = chat.get("id") if isinstance(chat, dict) else None
        if isinstance(message, dict) and isinstance(here, int):
            old, new = message.get("migrate_from_chat_id"), message.get("migrate_to_chat_id")
            if isinstance(old, int) or isinstance(new, int):
                await self.learn(
                    old if isinstance(old, int) else here, new if isinstance(new, int) else here
                )

    def in_session(self, event: UserEvent) -> UserEvent:
        """Return an event of a new chat as one of the session that it continues."""
        chat = int(event.address.chat_id)
        old = next((old for old, new in self._ids.items() if new == chat), None)
        if old is None:
            return event
        number, answered = event.message_id, event.answered_message_id
        rest = event.id.removeprefix(number)
        return replace(
            event,
            address=Address(event.address.channel, str(old), event.address.topic),
            message_id=f"{number}{_MARK}",
            id=event.id if rest == event.id else f"{number}{_MARK}{rest}",
            answered_message_id=None if answered is None else f"{answered}{_MARK}",
        )

    def marked(self, address: Address, message_id: str) -> str:
        """Return the id of a message that was sent to a session's chat as the session knows it."""
        return f"{message_id}{_MARK}" if self._has_moved(address) else message_id

    def number(self, address: Address, message_id: str) -> int:
        """Return Telegram's id of a message that a session names.

        Raises:
            MessageGone: It is no id, or that of a message in the chat before it moved.
        """
        number, mark, rest = message_id.partition(".")
        if not number.isdecimal() or (
            self._has_moved(address) and not f"{mark}{rest}".startswith(_MARK)
        ):
            raise MessageGone(f"{message_id!r} is not a Telegram message")  # for the log
        return int(number)

    def _has_moved(self, address: Address) -> bool:
        return int(address.chat_id) in self._ids
