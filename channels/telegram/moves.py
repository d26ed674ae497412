"""Groups that became supergroups: to Telegram, another chat with another id.

https://core.telegram.org/api/channel#migration
"""

from __future__ import annotations

from dataclasses import dataclass

from aiogram.types import Message

from bot.bus import Address, Sender
from channels.telegram.people import author_of
from channels.telegram.words import chat_name


@dataclass(frozen=True, slots=True)
class Migration:
    """A group's move.

    Attributes:
        old: Its address of before.
        new: Its address from now on.
        sender: Who did it; the group itself where Telegram names nobody.
    """

    old: Address
    new: Address
    sender: Sender


def moved_ids(message: Message) -> tuple[int, int] | None:
    """Return a group's id of before and of now; Telegram tells them in both chats."""
    old, new = message.migrate_from_chat_id, message.migrate_to_chat_id
    if old is None and new is None:
        return None
    here = message.chat.id
    return here if old is None else old, here if new is None else new


def migration_of(message: Message, channel: str) -> Migration | None:
    """Return the move that a message tells of; None where it tells of none."""
    ids = moved_ids(message)
    if ids is None:
        return None
    old, new = (Address(channel, str(one)) for one in ids)
    sender = author_of(message) or Sender(old.chat_id, chat_name(message.chat))
    return Migration(old, new, sender)
