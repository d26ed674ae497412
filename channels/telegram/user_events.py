"""Updates as events: what somebody did, before it was asked whether they may.

Rule 1: nothing is fetched, kept or answered here.
Rule 2: what no person did, and what a bot has no use of, is None: bots' messages, channels' posts,
service messages, taken-back reactions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from aiogram.types import (
    CallbackQuery,
    Chat,
    Document,
    InlineKeyboardMarkup,
    Message,
    MessageReactionUpdated,
    PhotoSize,
    ReactionTypeEmoji,
    Update,
)

from bot.bus import Address, Sender
from channels.telegram.message_content import (
    GROUP_TYPES,
    BotIdentity,
    MessagePlaceholder,
    ParsedText,
    chat_name,
    format_quote,
    forward_header,
    message_placeholder,
    message_sender,
    reaction_sender,
    read_text,
    replied_message,
    reply_quote,
    user_sender,
)
from channels.text import utf16_length

FileKind = Literal["image", "voice", "audio", "video", "document"]

_LONGEST_SIDE = 1_280
_LARGEST_PHOTO = 5 * 1024 * 1024
_UNKNOWN = "application/octet-stream"
_IMAGES = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif"})


@dataclass(frozen=True, slots=True)
class TelegramFile:
    """A file of a message.

    Attributes:
        file_id: Names it to Telegram, for this bot.
        kind: As in ``bot.bus.Attachment``.
        name: Its name, or a word for it.
        mime: Its media type by Telegram.
        size: Bytes by Telegram; None where it does not say.
    """

    file_id: str
    kind: FileKind
    name: str
    mime: str
    size: int | None


def message_files(message: Message) -> tuple[TelegramFile, ...]:
    """Return a message's files; it has at most one, which Telegram may name twice."""
    return tuple(_files(message))[:1]


def _files(message: Message) -> Iterator[TelegramFile]:
    if voice := message.voice:
        mime = voice.mime_type or "audio/ogg"
        yield TelegramFile(voice.file_id, "voice", "voice.ogg", mime, voice.file_size)
    if audio := message.audio:
        name = audio.file_name or audio.title or "audio.mp3"
        yield TelegramFile(
            audio.file_id, "audio", name, audio.mime_type or "audio/mpeg", audio.file_size
        )
    if note := message.video_note:
        yield TelegramFile(note.file_id, "video", "video_note.mp4", "video/mp4", note.file_size)
    if video := message.video or message.animation:
        word = "video.mp4" if message.video else "animation.mp4"
        mime = video.mime_type or "video/mp4"
        yield TelegramFile(video.file_id, "video", video.file_name or word, mime, video.file_size)
    if document := message.document:
        yield _document(document)
    photo = message.photo
    if photo is None and message.live_photo is not None:
        photo = message.live_photo.photo
    if photo:
        size = _size(photo)
        yield TelegramFile(size.file_id, "image", "photo.jpg", "image/jpeg", size.file_size)


def _document(document: Document) -> TelegramFile:
    mime = document.mime_type or _UNKNOWN
    kind: FileKind = "image" if mime in _IMAGES else "document"
    return TelegramFile(
        document.file_id, kind, document.file_name or "document", mime, document.file_size
    )


def _size(sizes: list[PhotoSize]) -> PhotoSize:
    """Return the largest that a model has any use of, else the smallest there is."""
    by_area = sorted(sizes, key=lambda one: one.width * one.height)
    useful = [
        one
        for one in by_area
        if max(one.width, one.height) <= _LONGEST_SIDE and (one.file_size or 0) <= _LARGEST_PHOTO
    ]
    return useful[-1] if useful else by_area[0]


ALLOWED_UPDATES = [
    "message",
    "edited_message",
    "callback_query",
    "message_reaction",
    "my_chat_member",
]
"""The kinds of updates that are read; Telegram is asked for no others."""

_LONG_TEXT = 4_000
"""UTF-16 units; Telegram's programs split what is longer than 4,096."""


@dataclass(frozen=True, slots=True)
class UserEvent:
    """Something that a person did.

    Attributes:
        update_id: The update's id.
        kind: What.
        address: Where.
        sender: Who.
        private: Nobody else is present.
        message_id: Telegram's id of the message that it is, or is about.
        id: For ``Inbound.id``.
        text: The person's own words.
        sent_at: When.
        addressed: It is meant for the bot wherever it was written.
        quote: What it quotes or forwards.
        answered_message_id: The bot's message that all of ``quote`` is from.
        files: What came with it.
        media_group_id: Names the album that it is a part of.
        is_plain_text: Text alone, which may go on in the next message.
        is_forwarded: What it says is somebody else's: forwarded, or made by another bot.
        callback_query_id: To be acknowledged to Telegram.
        is_long_text: Its text is so long that the rest of it may follow in another message.
        is_forum: The group has topics.
    """

    update_id: int
    kind: Literal["message", "edit", "press", "reaction"]
    address: Address
    sender: Sender
    private: bool
    message_id: str
    id: str
    text: str
    sent_at: datetime
    addressed: bool
    quote: str | None = None
    answered_message_id: str | None = None
    files: tuple[TelegramFile, ...] = ()
    media_group_id: str | None = None
    is_plain_text: bool = False
    is_forwarded: bool = False
    callback_query_id: str | None = None
    is_long_text: bool = False
    is_forum: bool = False

    @property
    def urgent(self) -> bool:
        """Whether it must not wait behind what takes long in its chat."""
        return self.text.strip().lower().partition("@")[0] == "/stop"


def read_update(
    update: Update, channel: str, me: BotIdentity
) -> UserEvent | SupergroupMigration | None:
    """Return what an update says that somebody did; None where it is nothing to us."""
    if update.message is not None and (move := read_migration(update.message, channel)) is not None:
        return move
    if update.message is not None:
        return _message(update.update_id, update.message, channel, me)
    if update.edited_message is not None:
        return _edit(update.update_id, update.edited_message, channel, me)
    if update.callback_query is not None:
        return _press(update.update_id, update.callback_query, channel)
    if update.message_reaction is not None:
        return _reaction(update.update_id, update.message_reaction, channel)
    return None


def _message(update: int, message: Message, channel: str, me: BotIdentity) -> UserEvent | None:
    head, private = message_sender(message), message.chat.type == "private"
    said, files, source = _said(message, me), message_files(message), forward_header(message)
    told = MessagePlaceholder() if said.text else message_placeholder(message)
    nothing = not (said.text or told.text or files)
    if head is None or nothing or (said.is_for_other_bot and not private):
        return None
    target = replied_message(message)
    own = target is not None and target.from_user is not None and target.from_user.id == me.id
    text, quote = said.text or told.text, reply_quote(message, me)
    answers = _answers(message, target) if own else None
    if source is not None:
        # Whoever passes a command on does not give it, and names nobody.
        quote, text = format_quote(source, said.text or told.full_text), ""
        said, answers = ParsedText(""), None
    elif told.content:
        quote, answers = "\n\n".join(filter(None, (told.quote, quote))), None
    return UserEvent(
        update_id=update,
        kind="message",
        address=_address(message, channel),
        sender=head,
        private=private,
        message_id=str(message.message_id),
        id=str(message.message_id),
        text=text,
        sent_at=message.date,
        addressed=private or said.is_command or said.mentions_bot or own,
        quote=quote,
        answered_message_id=answers,
        files=files,
        media_group_id=message.media_group_id,
        is_plain_text=bool(message.text) and source is None,
        is_forwarded=source is not None,
        is_long_text=source is None and utf16_length(message.text or "") >= _LONG_TEXT,
        is_forum=_forum(message.chat),
    )


def _edit(update: int, message: Message, channel: str, me: BotIdentity) -> UserEvent | None:
    # Without a text it is a place that moves, or a poll that goes on.
    if message.forward_origin is not None or not (message.text or message.caption):
        return None
    event = _message(update, message, channel, me)
    if event is None:
        return None
    return replace(
        event,
        kind="edit",
        # Two edits may fall into one second; an update's id stays the same when it comes again.
        id=f"{message.message_id}.e{update}",
        sent_at=_moment(message.edit_date) or message.date,
        files=(),
        media_group_id=None,
        is_plain_text=False,
        is_long_text=False,
    )


def _press(update: int, query: CallbackQuery, channel: str) -> UserEvent | None:
    message = query.message
    if message is None or not query.data or query.from_user.is_bot:
        return None
    if message.chat.type not in (*GROUP_TYPES, "private"):
        return None
    topic = None
    if isinstance(message, Message):
        topic = _topic(message)
        # A changed client may send what stands on no button.
        if message.reply_markup is not None and not _carries(message.reply_markup, query.data):
            return None
    return UserEvent(
        update_id=update,
        kind="press",
        address=Address(channel, str(message.chat.id), topic),
        sender=user_sender(query.from_user),
        private=message.chat.type == "private",
        message_id=str(message.message_id),
        id=f"cb{query.id}",
        text=query.data,
        sent_at=datetime.now(UTC),  # Telegram gives none
        addressed=True,
        callback_query_id=query.id,
        is_forum=_forum(message.chat),
    )


def _carries(keyboard: InlineKeyboardMarkup, data: str) -> bool:
    return any(key.callback_data == data for row in keyboard.inline_keyboard for key in row)


def _reaction(update: int, reaction: MessageReactionUpdated, channel: str) -> UserEvent | None:
    chat = reaction.chat
    # The update does not say in which topic the message stands.
    if chat.type not in (*GROUP_TYPES, "private") or chat.is_forum:
        return None
    sender = reaction_sender(reaction.user, reaction.actor_chat)
    before = [one for one in reaction.old_reaction if isinstance(one, ReactionTypeEmoji)]
    known = {one.emoji for one in before}
    added = [
        one.emoji
        for one in reaction.new_reaction
        if isinstance(one, ReactionTypeEmoji) and one.emoji not in known
    ]
    if sender is None or not added:
        return None
    return UserEvent(
        update_id=update,
        kind="reaction",
        address=Address(channel, str(chat.id)),
        sender=sender,
        private=chat.type == "private",
        message_id=str(reaction.message_id),
        id=f"{reaction.message_id}.r{update}",
        text=f"(reacted with {' '.join(added)} to an earlier message)",
        sent_at=reaction.date,
        addressed=False,
    )


def _forum(chat: Chat) -> bool:
    # Private chats may have topics, too, and no General one.
    return bool(chat.is_forum) and chat.type == "supergroup"


def _said(message: Message, me: BotIdentity) -> ParsedText:
    if message.text is not None:
        return read_text(message.text, message.entities, me)
    return read_text(message.caption or "", message.caption_entities, me)


def _answers(message: Message, target: Message | None) -> str | None:
    if target is None or (message.quote is not None and message.quote.is_manual):
        return None
    return str(target.message_id)


def _address(message: Message, channel: str) -> Address:
    return Address(channel, str(message.chat.id), _topic(message))


def _topic(message: Message) -> str | None:
    # A thread of replies outside forums has an id, too, and is no topic.
    if not message.is_topic_message or message.message_thread_id is None:
        return None
    return str(message.message_thread_id)


def _moment(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


@dataclass(frozen=True, slots=True)
class SupergroupMigration:
    """A group's move.

    Attributes:
        old: Its address of before.
        new: Its address from now on.
        sender: Who did it; the group itself where Telegram names nobody.
    """

    old: Address
    new: Address
    sender: Sender


def migrated_ids(message: Message) -> tuple[int, int] | None:
    """Return a group's id of before and of now; Telegram tells them in both chats."""
    old, new = message.migrate_from_chat_id, message.migrate_to_chat_id
    if old is None and new is None:
        return None
    here = message.chat.id
    return here if old is None else old, here if new is None else new


def read_migration(message: Message, channel: str) -> SupergroupMigration | None:
    """Return the move that a message tells of; None where it tells of none."""
    ids = migrated_ids(message)
    if ids is None:
        return None
    old, new = (Address(channel, str(one)) for one in ids)
    sender = message_sender(message) or Sender(old.chat_id, chat_name(message.chat))
    return SupergroupMigration(old, new, sender)
