"""What the bot shows, as calls of the Bot API."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from aiogram.methods import (
    DeleteMessage,
    EditMessageText,
    SendChatAction,
    SendDocument,
    SendMessage,
    SendMessageDraft,
)
from aiogram.types import (
    FSInputFile,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    MessageEntity,
    ReplyParameters,
)

from bot.bus import Address, Button, OutFile
from channels.delivery.files import check
from channels.delivery.screen import MessageGone, Outgoing, Pace, Refused
from channels.telegram.api import MOST_UPLOAD, Api
from channels.telegram.entities import Piece
from channels.telegram.recent import Recent
from channels.telegram.refusals import MethodUnknown, Moved, Unchanged, Unread
from channels.telegram.render import plain, render
from channels.telegram.showing import change, show, show_file

logger = logging.getLogger(__name__)

_PRIVATE = Pace(edit=1.0, typing=4.5)
_GROUP = Pace(edit=3.0, typing=4.5)
_TYPING_SECONDS = 10
_LONGEST_DATA = 64
_SHORT_LABEL = 12
_BUTTONS_IN_ROW = 3
_GENERAL = 1
"""A forum's General topic, to actions only: messages for it must name none."""

_NOTHING = Piece("…")
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)

ResultT = TypeVar("ResultT")


class TelegramScreen:
    """One bot's messages (``channels.delivery.screen.Screen``).

    Args:
        api: Telegram.
        recent: Learns which message carries the last answer.
    """

    def __init__(self, api: Api, recent: Recent) -> None:
        self._api = api
        self._recent = recent
        self._drafts = True
        self._no_drafts: set[int] = set()
        self._moved: dict[int, int] = {}

    def room(self, address: Address) -> str:
        """Return the chat: its topics share its limits."""
        return address.chat_id

    def pace(self, address: Address) -> Pace:
        """Return how fast a chat may be written to: https://core.telegram.org/bots/faq.

        About one message a second to a person, twenty a minute to a group.
        """
        return _PRIVATE if _private(address) else _GROUP

    def render(self, text: str) -> Sequence[Piece]:
        """Return Markdown as styled messages."""
        return render(text) or [_NOTHING]

    def plain(self, text: str) -> Sequence[Piece]:
        """Return the same without styles."""
        return [Piece(one) for one in plain(text)] or [_NOTHING]

    async def send(self, message: Outgoing[Piece]) -> str:
        """Show a message; return its id."""
        address, piece = message.address, message.piece

        async def call(chat: int) -> str:
            # In a chat with a new id, the message that is answered has another one, too.
            moved = chat != int(address.chat_id)
            sending = SendMessage(
                chat_id=chat,
                message_thread_id=_topic(address),
                text=piece.text,
                entities=_entities(piece),
                link_preview_options=_NO_PREVIEW,
                reply_parameters=None if moved else _reply(message.reply_to),
                reply_markup=_keyboard(message.buttons),
            )
            return str(await show(self._api, sending))

        return self._noted(message, await self._in_chat(address, call))

    async def send_file(self, message: Outgoing[OutFile]) -> str:
        """Show a file as a document; return its message's id."""
        address, file = message.address, message.piece
        await check(file, MOST_UPLOAD)

        async def call(chat: int) -> str:
            sending = SendDocument(
                chat_id=chat,
                message_thread_id=_topic(address),
                document=FSInputFile(file.path, file.name),
                disable_content_type_detection=True,
            )
            return str(await show_file(self._api, sending))

        return self._noted(message, await self._in_chat(address, call))

    def _noted(self, message: Outgoing[Piece] | Outgoing[OutFile], sent: str) -> str:
        """Note which message carries the last answer; return its id."""
        self._recent.shown(message.address.session, message.key.rpartition("/")[0], sent)
        return sent

    async def edit(
        self, address: Address, message_id: str, piece: Piece, buttons: tuple[Button, ...] = ()
    ) -> None:
        """Change a message; one that is so already is fine."""

        async def call(chat: int) -> None:
            changing = EditMessageText(
                chat_id=chat,
                message_id=_number(message_id),
                text=piece.text,
                entities=_entities(piece),
                link_preview_options=_NO_PREVIEW,
                reply_markup=_keyboard(buttons),
            )
            await change(self._api, changing)

        try:
            await self._in_chat(address, call)
        except Unchanged:
            logger.debug("message %s shows this already", message_id)

    async def delete(self, address: Address, message_id: str) -> None:
        """Take a message away; one that is gone, or cannot go any more, is left."""

        async def call(chat: int) -> None:
            await self._api(DeleteMessage(chat_id=chat, message_id=_number(message_id)))

        try:
            await self._in_chat(address, call)
        except MessageGone as gone:
            logger.debug("message %s is not deleted: %s", message_id, gone)

    async def typing(self, address: Address) -> None:
        """Show that an answer is on its way, for five seconds."""
        topic = _topic(address)
        if topic is None and self._recent.is_forum(address.chat_id):
            topic = _GENERAL

        async def call(chat: int) -> None:
            action = SendChatAction(chat_id=chat, action="typing", message_thread_id=topic)
            await self._api(action, seconds=_TYPING_SECONDS)

        await self._in_chat(address, call)

    async def draft(self, address: Address, stream: str, piece: Piece) -> bool:
        """Show text that is no message yet, in a private chat.

        A draft stands for 30 seconds: https://core.telegram.org/bots/api#sendmessagedraft.
        """
        chat = int(address.chat_id)
        if not self._drafts or not _private(address) or chat in self._no_drafts:
            return False
        try:
            await self._api(
                SendMessageDraft(
                    chat_id=chat,
                    message_thread_id=_topic(address),
                    draft_id=_draft_id(stream),
                    text=piece.text,
                    entities=_entities(piece),
                ),
                seconds=_TYPING_SECONDS,
            )
        except MethodUnknown:
            logger.info("this Bot API server has no drafts: answers are streamed by edits")
            self._drafts = False
        except Unread:
            return True
        except Refused as refused:
            logger.info("no drafts for %s: %s", address.session, refused)
            self._no_drafts.add(chat)
        else:
            return True
        return False

    async def _in_chat(
        self, address: Address, call: Callable[[int], Awaitable[ResultT]]
    ) -> ResultT:
        """Call with the chat's id of now: a group that became a supergroup has another."""
        chat = int(address.chat_id)
        try:
            return await call(self._moved.get(chat, chat))
        except Moved as moved:
            logger.info("the chat %s is %s now", chat, moved.chat_id)
            self._moved[chat] = moved.chat_id
            return await call(moved.chat_id)


def _private(address: Address) -> bool:
    # Groups and channels have negative ids.
    return not address.chat_id.startswith("-")


def _topic(address: Address) -> int | None:
    return None if address.topic is None else int(address.topic)


def _number(message_id: str) -> int:
    """Return a message's number.

    Raises:
        MessageGone: It is none, so there is no such message.
    """
    try:
        return int(message_id)
    except ValueError:
        raise MessageGone(f"{message_id!r} is no message of Telegram's") from None


def _reply(message_id: str | None) -> ReplyParameters | None:
    # The ids of edits, presses and reactions name what they were done to, or nothing.
    number = "" if message_id is None else message_id.partition(".")[0]
    if not number.isdecimal():
        return None
    return ReplyParameters(message_id=int(number), allow_sending_without_reply=True)


def _entities(piece: Piece) -> list[MessageEntity] | None:
    return [MessageEntity.model_validate(one.as_dict()) for one in piece.entities] or None


def _keyboard(buttons: tuple[Button, ...]) -> InlineKeyboardMarkup | None:
    """Return buttons below a message: short ones side by side, others a row each."""
    rows: list[list[InlineKeyboardButton]] = []
    known: set[str] = set()
    for button in buttons:
        if why := _left_out(button, known):
            logger.warning("the button %r is left out: %s", button.label, why)
            continue
        known.add(button.command)
        key = InlineKeyboardButton(text=button.label, callback_data=button.command)
        row = rows[-1] if rows else []
        short = all(len(one.text) <= _SHORT_LABEL for one in (*row, key))
        if row and short and len(row) < _BUTTONS_IN_ROW:
            row.append(key)
        else:
            rows.append([key])
    return InlineKeyboardMarkup(inline_keyboard=rows) if rows else None


def _left_out(button: Button, known: set[str]) -> str | None:
    """Return why a button is not shown; None where it is."""
    if not button.label.strip():
        return "it has no label"
    if button.command in known:
        return "another one has its command"
    if not 0 < len(button.command.encode()) <= _LONGEST_DATA:
        return "Telegram takes commands of 1 to 64 bytes"
    return None


def _draft_id(stream: str) -> int:
    number = int.from_bytes(hashlib.sha256(stream.encode()).digest()[:4], "big")
    return (number & 0x7FFF_FFFF) or 1
