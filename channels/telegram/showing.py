"""Messages that are shown, of whose answers only the id is read.

Telegram answers with the whole message as it shows it, with what it quotes and links to. Were all of
that read, something new in it would make a message that stands in the chat look like a failure.
"""

from __future__ import annotations

from typing import Any, cast

from aiogram.methods import EditMessageText, SendDocument, SendMessage

from channels.telegram.api import UPLOAD_SECONDS, Api
from channels.telegram.refusals import Unread


class _Show(SendMessage):
    """https://core.telegram.org/bots/api#sendmessage."""

    __returning__ = dict[str, Any]


class _ShowFile(SendDocument):
    """https://core.telegram.org/bots/api#senddocument."""

    __returning__ = dict[str, Any]


class _Change(EditMessageText):
    """https://core.telegram.org/bots/api#editmessagetext."""

    __returning__ = dict[str, Any]


async def show(api: Api, message: SendMessage) -> int:
    """Send a message; return its id.

    Raises:
        Unread: It was sent, but Telegram's answer does not say under which id.
        ScreenError: It was not sent, as far as is known.
    """
    return _number(cast("dict[str, Any]", await api(_Show(**dict(message)))))


async def show_file(api: Api, message: SendDocument) -> int:
    """Send a file; return its message's id. It may take minutes.

    Raises:
        Unread: It was sent, but Telegram's answer does not say under which id.
        ScreenError: It was not sent, as far as is known.
    """
    sent = await api(_ShowFile(**dict(message)), seconds=UPLOAD_SECONDS)
    return _number(cast("dict[str, Any]", sent))


async def change(api: Api, message: EditMessageText) -> None:
    """Change a message.

    Raises:
        ScreenError: It was not changed, as far as is known.
    """
    try:
        await api(_Change(**dict(message)))
    except Unread:
        return  # it was changed all the same


def _number(sent: dict[str, Any]) -> int:
    number = sent.get("message_id")
    if not isinstance(number, int):
        raise Unread
    return number
