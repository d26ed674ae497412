"""Send, edit and delete messages by the Bot API."""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, cast

import anyio
from aiogram.methods import (
    AnswerCallbackQuery,
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

from bot.bus import Address, Button, OutgoingFile
from channels.delivery.messenger import (
    FormattingRejected,
    MessageGone,
    MessageRejected,
    MessengerError,
    OutgoingMessage,
    Pace,
    check_file,
)
from channels.telegram.api import (
    MAX_UPLOAD_BYTES,
    UPLOAD_SECONDS,
    BotApiClient,
    MessageNotModified,
    TelegramTiming,
    UnreadableResult,
)
from channels.telegram.entities import FormattedText
from channels.telegram.render import render, render_plain
from channels.telegram.user_events import PRESS_ID_PREFIX

logger = logging.getLogger(__name__)

_PRIVATE = Pace(edit=1.0, typing=4.5)
_GROUP = Pace(edit=3.0, typing=4.5)
_TYPING_SECONDS = 10
_LONGEST_DATA = 64
_LONGEST_ALERT = 200
_MOST_PRESSES = 1_000
_SHORT_LABEL = 12
_BUTTONS_IN_ROW = 3
_GENERAL = 1
"""The id of a forum's General topic in chat actions; messages to it must have no topic id."""

_NOTHING = FormattedText("…")
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


class TelegramMessenger:
    """One bot's implementation of ``channels.delivery.messenger.MessengerApi``.

    Attributes:
        presses: Pressed buttons that wait for their results.
    """

    def __init__(self, api: BotApiClient, timing: TelegramTiming) -> None:
        self.presses = PressedButtons(api, timing)
        self._api = api
        self._forums: set[str] = set()

    def note_forum(self, address: Address, *, is_forum: bool) -> None:
        """Note whether a group has topics."""
        if is_forum:
            self._forums.add(address.chat_id)
        else:
            self._forums.discard(address.chat_id)

    def rate_limit_key(self, address: Address) -> str:
        """Return the chat's id, since its topics share its limits."""
        return address.chat_id

    def pace(self, address: Address) -> Pace:
        """Return how often a chat may be updated: https://core.telegram.org/bots/faq.

        About one message per second in a private chat, twenty per minute in a group.
        """
        return _PRIVATE if _private(address) else _GROUP

    def render(self, text: str) -> Sequence[FormattedText]:
        """Return Markdown as messages with entities."""
        return render(text) or [_NOTHING]

    def render_plain(self, text: str) -> Sequence[FormattedText]:
        """Return the text as messages without entities."""
        return [FormattedText(one) for one in render_plain(text)] or [_NOTHING]

    async def send(self, message: OutgoingMessage[FormattedText]) -> str:
        """Send a message; return its id."""
        address, piece = message.address, message.piece
        sending = SendMessage(
            chat_id=int(address.chat_id),
            message_thread_id=_topic(address),
            text=piece.text,
            entities=_entities(piece),
            link_preview_options=_NO_PREVIEW,
            reply_parameters=self._reply(address, message.reply_to),
            reply_markup=_keyboard(message.buttons),
        )
        sent = str(await send_message(self._api, sending))
        return self._api.moved.marked(address, sent)

    async def send_file(self, message: OutgoingMessage[OutgoingFile]) -> str:
        """Send a file as a document; return its message's id.

        Raises:
            FileRejected: The file is missing or too large.
        """
        address, file = message.address, message.piece
        await check_file(file, MAX_UPLOAD_BYTES)
        sending = SendDocument(
            chat_id=int(address.chat_id),
            message_thread_id=_topic(address),
            document=FSInputFile(file.path, file.name),
            disable_content_type_detection=True,
        )
        sent = str(await send_document(self._api, sending))
        return self._api.moved.marked(address, sent)

    async def edit(
        self,
        address: Address,
        message_id: str,
        piece: FormattedText,
        buttons: tuple[Button, ...] = (),
    ) -> None:
        """Edit a message; succeed if it already has this content."""
        changing = EditMessageText(
            chat_id=int(address.chat_id),
            message_id=self._api.moved.number(address, message_id),
            text=piece.text,
            entities=_entities(piece),
            link_preview_options=_NO_PREVIEW,
            reply_markup=_keyboard(buttons),
        )
        try:
            await edit_message_text(self._api, changing)
        except MessageNotModified:
            logger.debug("message %s already shows this", message_id)

    async def delete(self, address: Address, message_id: str) -> None:
        """Delete a message; one that is gone or too old to be deleted is skipped."""
        try:
            number = self._api.moved.number(address, message_id)
            await self._api(DeleteMessage(chat_id=int(address.chat_id), message_id=number))
        except MessageGone as gone:
            logger.debug("message %s is not deleted: %s", message_id, gone)

    async def tell_presser(
        self,
        address: Address,  # noqa: ARG002 - the press knows its place
        press: str,
        pieces: Sequence[FormattedText],
    ) -> bool:
        """Show the text in an alert."""
        text = "\n".join(piece.text for piece in pieces)
        return await self.presses.tell(press.removeprefix(PRESS_ID_PREFIX), text)

    async def typing(self, address: Address) -> None:
        """Display the typing indicator, which Telegram shows for five seconds."""
        topic = _topic(address)
        if topic is None and address.chat_id in self._forums:
            topic = _GENERAL
        action = SendChatAction(
            chat_id=int(address.chat_id), action="typing", message_thread_id=topic
        )
        await self._api(action, seconds=_TYPING_SECONDS)

    async def draft(self, address: Address, stream: str, piece: FormattedText) -> bool:
        """Display text as a draft, which only private chats support.

        A draft lasts for 30 seconds: https://core.telegram.org/bots/api#sendmessagedraft.
        """
        if not _private(address):
            return False
        try:
            await self._api(
                SendMessageDraft(
                    chat_id=int(address.chat_id),
                    message_thread_id=_topic(address),
                    draft_id=_draft_id(stream),
                    text=piece.text,
                    entities=_entities(piece),
                ),
                seconds=_TYPING_SECONDS,
            )
        except UnreadableResult:
            return True
        except (FormattingRejected, MessageRejected) as refused:
            # One refusal, a 404 too, is no missing feature: the next answer tries drafts again.
            logger.info("a draft for %s was refused: %s", address.session, refused)
        else:
            return True
        return False

    def _reply(self, address: Address, message_id: str | None) -> ReplyParameters | None:
        # The inbound ids of edits and reactions begin with a message id; those of presses have none.
        try:
            number = self._api.moved.number(address, message_id or "")
        except MessageGone:
            return None
        return ReplyParameters(message_id=number, allow_sending_without_reply=True)


class PressedButtons:
    """Answer each press of a button once: with its result, or with nothing if that does not come soon."""

    def __init__(self, api: BotApiClient, timing: TelegramTiming) -> None:
        self._api = api
        self._seconds = timing.press_wait
        self._results: OrderedDict[str, anyio.Event] = OrderedDict()

    async def end(self, callback: str) -> None:
        """Wait a while for the result of a press, then end its loading animation without one."""
        came = self._results.setdefault(callback, anyio.Event())
        if len(self._results) > _MOST_PRESSES:
            self._results.popitem(last=False)
        with anyio.move_on_after(self._seconds):
            await came.wait()
        if not came.is_set():
            came.set()
            await self._answer(callback, "")

    async def tell(self, callback: str, text: str) -> bool:
        """Show who pressed a button a text, or none; return False if it is too late or too long."""
        came = self._results.setdefault(callback, anyio.Event())
        if came.is_set():
            return False
        came.set()
        short = len(text) <= _LONGEST_ALERT
        return await self._answer(callback, text if short else "") and short

    async def _answer(self, callback: str, text: str) -> bool:
        answering = AnswerCallbackQuery(
            callback_query_id=callback, text=text or None, show_alert=bool(text) or None
        )
        try:
            await self._api(answering, seconds=_TYPING_SECONDS)
        except MessengerError as error:
            # Too old: the loading animation has ended by itself.
            logger.debug("a pressed button was not acknowledged: %s", error)
            return False
        return True


def _private(address: Address) -> bool:
    # Groups and channels have negative ids.
    return not address.chat_id.startswith("-")


def _topic(address: Address) -> int | None:
    return None if address.topic is None else int(address.topic)


def _entities(piece: FormattedText) -> list[MessageEntity] | None:
    return [MessageEntity.model_validate(entity.as_dict()) for entity in piece.entities] or None


def _keyboard(buttons: tuple[Button, ...]) -> InlineKeyboardMarkup | None:
    """Return an inline keyboard: short buttons side by side, others one per row."""
    rows: list[list[InlineKeyboardButton]] = []
    known: set[str] = set()
    for button in buttons:
        if why := _left_out(button, known):
            logger.warning("the button %r is skipped: %s", button.label, why)
            continue
        known.add(button.data)
        key = InlineKeyboardButton(text=button.label, callback_data=button.data)
        row = rows[-1] if rows else []
        short = all(len(keyboard_button.text) <= _SHORT_LABEL for keyboard_button in (*row, key))
        if row and short and len(row) < _BUTTONS_IN_ROW:
            row.append(key)
        else:
            rows.append([key])
    return InlineKeyboardMarkup(inline_keyboard=rows) if rows else None


def _left_out(button: Button, known: set[str]) -> str | None:
    """Return why a button cannot be shown; None if it can."""
    if not button.label.strip():
        return "it has no label"  # for the log
    if button.data in known:
        return "another button has the same command"  # for the log
    if not 0 < len(button.data.encode()) <= _LONGEST_DATA:
        return "Telegram takes data of 1 to 64 bytes"  # for the log
    return None


def _draft_id(stream: str) -> int:
    number = int.from_bytes(hashlib.sha256(stream.encode()).digest()[:4], "big")
    return (number & 0x7FFF_FFFF) or 1


class _Show(SendMessage):
    """https://core.telegram.org/bots/api#sendmessage."""

    __returning__ = dict[str, Any]


class _ShowFile(SendDocument):
    """https://core.telegram.org/bots/api#senddocument."""

    __returning__ = dict[str, Any]


class _Change(EditMessageText):
    """https://core.telegram.org/bots/api#editmessagetext."""

    __returning__ = dict[str, Any]


async def send_message(api: BotApiClient, message: SendMessage) -> int:
    """Send a message; return its id.

    Raises:
        UnreadableResult: It was sent, but its id in Telegram's answer is unreadable.
        MessengerError: It was not sent, as far as is known.
    """
    return _sent_message_id(cast("dict[str, Any]", await api(_Show(**dict(message)))))


async def send_document(api: BotApiClient, message: SendDocument) -> int:
    """Send a file, which may take minutes; return its message's id.

    Raises:
        UnreadableResult: It was sent, but its id in Telegram's answer is unreadable.
        MessengerError: It was not sent, as far as is known.
    """
    sent = await api(_ShowFile(**dict(message)), seconds=UPLOAD_SECONDS)
    return _sent_message_id(cast("dict[str, Any]", sent))


async def edit_message_text(api: BotApiClient, message: EditMessageText) -> None:
    """Edit a message.

    Raises:
        MessengerError: It was not edited, as far as is known.
    """
    try:
        await api(_Change(**dict(message)))
    except UnreadableResult:
        return  # it was edited all the same


def _sent_message_id(sent: dict[str, Any]) -> int:
    number = sent.get("message_id")
    if not isinstance(number, int):
        raise UnreadableResult
    return number
