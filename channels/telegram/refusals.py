"""What Telegram's refusals mean: its errors, as ours (pure).

Rule 1: a refusal is read by what was asked: the words of one method mean nothing in another.

::

    ScreenError
    |-- Unchanged          an edit that changes nothing
    |-- Moved              the group has another id now
    |-- Flooded, FormatRefused, MessageGone
    |-- Unreachable        another try may succeed
    |   |-- Conflict       somebody else gets the updates
    |   `-- LockedOut      the token is not known
    `-- Refused            it will never be taken
        |-- MethodUnknown  nor anything like it
        `-- Unread         it was done, and must not be done again
"""

from __future__ import annotations

from typing import Any

from aiogram.exceptions import (
    TelegramAPIError,
    TelegramBadRequest,
    TelegramConflictError,
    TelegramEntityTooLarge,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from aiogram.methods import (
    DeleteMessage,
    EditMessageText,
    SendDocument,
    SendMessage,
    TelegramMethod,
)

from channels.delivery.screen import (
    Flooded,
    FormatRefused,
    MessageGone,
    Refused,
    ScreenError,
    Unreachable,
)

_FLOOD_SECONDS = 5.0

_GONE = (
    "message to edit not found",
    "message can't be edited",
    "message to delete not found",
    "message can't be deleted",
    "message_id_invalid",
    "there is no text in the message to edit",
)
_TARGET_GONE = (
    "message to be replied not found",
    "message to reply not found",
    "replied message not found",
    "reply message not found",
    "reply_message_id_invalid",
)
_TOPIC_GONE = ("message thread not found", "topic_deleted")
_FORMAT = (
    "can't parse entities",
    "entity",
    "entities",
    "message is too long",
    "message_too_long",
    "text must be non-empty",
    "message text is empty",
)


class Unchanged(ScreenError):
    """An edit that changes nothing."""


class Conflict(Unreachable):
    """Somebody else gets this bot's updates; the text is Telegram's."""


class LockedOut(Unreachable):
    """Telegram does not know the token, or says so.

    Not refused: what was to be sent is to be sent once the token is right again.
    """

    def __init__(self) -> None:
        super().__init__("Telegram does not know this bot's token")


class MethodUnknown(Refused):
    """The server does not have this method."""


class Unread(Refused):
    """Telegram did it, and what it answered could not be read: another try would do it twice."""

    def __init__(self) -> None:
        super().__init__("Telegram took it, but what it answered could not be read")


class Moved(ScreenError):
    """The group became a supergroup.

    Attributes:
        chat_id: Its id from now on.
    """

    def __init__(self, chat_id: int) -> None:
        super().__init__(f"the group is chat {chat_id} now")
        self.chat_id = chat_id


_SIMPLE: tuple[tuple[type[TelegramAPIError], type[ScreenError]], ...] = (
    (TelegramConflictError, Conflict),
    (TelegramNotFound, MethodUnknown),
    (TelegramEntityTooLarge, Refused),  # a kind of network error to aiogram
    (TelegramNetworkError, Unreachable),
    (TelegramServerError, Unreachable),
)


def meaning(exc: TelegramAPIError, text: str, method: TelegramMethod[Any]) -> ScreenError:
    """Return what an error of aiogram's means.

    Args:
        exc: The error.
        text: Its words, without the token; empty where it has none.
        method: What was asked.
    """
    if isinstance(exc, TelegramUnauthorizedError):
        return LockedOut()
    if not text:
        return Unreachable("Telegram gave an error without a word on it")
    match exc:
        case TelegramRetryAfter(retry_after=seconds):
            return Flooded(float(seconds))
        case TelegramMigrateToChat(migrate_to_chat_id=chat_id):
            return Moved(chat_id)
        case TelegramBadRequest():
            return _bad_request(text, method)
    for theirs, ours in _SIMPLE:
        if isinstance(exc, theirs):
            return ours(text)
    # A flood without parameters has no class of its own in aiogram.
    if "too many requests" in text.lower():
        return Flooded(_FLOOD_SECONDS)
    return Refused(text)


def _bad_request(text: str, method: TelegramMethod[Any]) -> ScreenError:
    said = text.lower()

    def says(words: tuple[str, ...]) -> bool:
        return any(one in said for one in words)

    if "message is not modified" in said:
        return Unchanged(text)
    if isinstance(method, EditMessageText | DeleteMessage) and says(_GONE):
        return MessageGone(text)
    if isinstance(method, SendMessage | SendDocument):
        if method.reply_parameters is not None and says(_TARGET_GONE):
            return MessageGone(text)
        if method.message_thread_id is not None and says(_TOPIC_GONE):
            return Refused(f"the topic is not there any more, or the bot cannot see it ({text})")
    if says(_FORMAT):
        return FormatRefused(text)
    if "method not found" in said or "method is not available" in said:
        return MethodUnknown(text)
    return Refused(text)
