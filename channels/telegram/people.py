"""Who did something: people, and chats that somebody speaks for."""

from __future__ import annotations

from aiogram.types import Chat, Message, User

from bot.bus import Sender
from channels.telegram.words import chat_name

GROUPS = ("group", "supergroup")
"""The kinds of chats where more than one person is present."""


def author_of(message: Message) -> Sender | None:
    """Return who wrote a message; None where it is nobody's that a bot listens to."""
    if message.chat.type not in (*GROUPS, "private") or message.is_automatic_forward:
        return None
    if message.sender_chat is not None:
        # An anonymous administrator, or somebody who writes in the name of a channel.
        return Sender(str(message.sender_chat.id), chat_name(message.sender_chat))
    if message.from_user is None or message.from_user.is_bot:
        return None
    return person(message.from_user)


def reactor(user: User | None, chat: Chat | None) -> Sender | None:
    """Return who reacted; None where it is nobody that a bot listens to."""
    if user is not None:
        return None if user.is_bot else person(user)
    return None if chat is None else Sender(str(chat.id), chat_name(chat))


def person(user: User) -> Sender:
    """Return a person."""
    return Sender(str(user.id), user.full_name)
