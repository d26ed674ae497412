"""Convert updates to events of users, before anybody is authorized.

Rule 1: nothing is fetched, stored or answered here.
Rule 2: updates that no person caused, or that the bot does not use, are None: bots' messages,
channel posts, service messages, removed reactions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from aiogram.enums import ContentType
from aiogram.types import (
    CallbackQuery,
    Chat,
    Document,
    ExternalReplyInfo,
    InlineKeyboardMarkup,
    Message,
    MessageReactionUpdated,
    PhotoSize,
    ReactionTypeEmoji,
    Update,
)

from bot.bus import Address
from channels.intake import Event, FileKind, SentFile
from channels.telegram.message_content import (
    GROUP_TYPES,
    BotIdentity,
    MessagePlaceholder,
    ParsedText,
    forward_header,
    message_placeholder,
    message_sender,
    press_sender,
    quoted_author,
    reaction_sender,
    read_text,
    replied_message,
    reply_quote,
)
from channels.text import format_quote, utf16_length

_LONGEST_SIDE = 1_280
_LARGEST_PHOTO = 5 * 1024 * 1024
_UNKNOWN = "application/octet-stream"
_IMAGES = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif"})


def message_files(message: Message) -> tuple[SentFile, ...]:
    """Return a message's files: at most one, although Telegram may list it in two fields."""
    return tuple(_files(message))[:1]


def quoted_files(message: Message, me: BotIdentity) -> tuple[SentFile, ...]:
    """Return the files of the message that this one replies to: at most one."""
    target = replied_message(message) or message.external_reply
    if target is None:
        return ()
    author = quoted_author(target, message.chat, me)
    return tuple(replace(one, quoted=True, author=author) for one in _files(target))[:1]


def _files(message: Message | ExternalReplyInfo) -> Iterator[SentFile]:
    if voice := message.voice:
        mime = voice.mime_type or "audio/ogg"
        yield SentFile(voice.file_id, "voice", "voice.ogg", mime, voice.file_size)
    if audio := message.audio:
        name = audio.file_name or audio.title or "audio.mp3"
        yield SentFile(
            audio.file_id, "audio", name, audio.mime_type or "audio/mpeg", audio.file_size
        )
    if note := message.video_note:
        yield SentFile(note.file_id, "video", "video_note.mp4", "video/mp4", note.file_size)
    if video := message.video or message.animation:
        word = "video.mp4" if message.video else "animation.mp4"
        mime = video.mime_type or "video/mp4"
        yield SentFile(video.file_id, "video", video.file_name or word, mime, video.file_size)
    if document := message.document:
        yield _document(document)
    photo = message.photo
    if photo is None and message.live_photo is not None:
        photo = message.live_photo.photo
    if photo:
        size = _size(photo)
        yield SentFile(size.file_id, "image", "photo.jpg", "image/jpeg", size.file_size)


def _document(document: Document) -> SentFile:
    mime = document.mime_type or _UNKNOWN
    kind: FileKind = "image" if mime in _IMAGES else "document"
    return SentFile(
        document.file_id, kind, document.file_name or "document", mime, document.file_size
    )


def _size(sizes: list[PhotoSize]) -> PhotoSize:
    """Return the largest photo size that is useful to a model, or else the smallest."""
    by_area = sorted(sizes, key=lambda photo_size: photo_size.width * photo_size.height)
    useful = [
        photo_size
        for photo_size in by_area
        if max(photo_size.width, photo_size.height) <= _LONGEST_SIDE
        and (photo_size.file_size or 0) <= _LARGEST_PHOTO
    ]
    return useful[-1] if useful else by_area[0]


ALLOWED_UPDATES = [
    "message",
    "edited_message",
    "callback_query",
    "message_reaction",
    "my_chat_member",
]
"""The update types that are requested from Telegram."""

PRESS_ID_PREFIX = "cb"
"""The prefix of presses' inbound ids; the id of the callback query follows."""

_LONG_TEXT = 4_000
"""UTF-16 code units from which a text may continue; clients split texts longer than 4,096."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramEvent(Event):
    """Something that a person did on Telegram.

    Attributes:
        update_id: The update's id.
        media_group_id: The id of the album that it is a part of.
        is_plain_text: Whether it is text only, and so may continue the previous message.
        callback_query_id: The id with which the pressed button is acknowledged to Telegram.
        is_long_text: Whether its text is so long that another message may continue it.
        is_forum: Whether the group has topics.
    """

    update_id: int
    media_group_id: str | None = None
    is_plain_text: bool = False
    callback_query_id: str | None = None
    is_long_text: bool = False
    is_forum: bool = False

    @property
    def urgent(self) -> bool:
        """Whether it must not wait for slow events of its chat."""
        return self.text.strip().lower().partition("@")[0] == "/stop"


def read_update(update: Update, channel: str, me: BotIdentity) -> TelegramEvent | None:
    """Return the user's action in an update; None if it is irrelevant."""
    if update.message is not None:
        return _message(update.update_id, update.message, channel, me)
    if update.edited_message is not None:
        return _edit(update.update_id, update.edited_message, channel, me)
    if update.callback_query is not None:
        return _press(update.update_id, update.callback_query, channel)
    if update.message_reaction is not None:
        return _reaction(update.update_id, update.message_reaction, channel)
    return None


def _message(update: int, message: Message, channel: str, me: BotIdentity) -> TelegramEvent | None:
    head, private = message_sender(message), message.chat.type == "private"
    parsed_text, files, source = _said(message, me), message_files(message), forward_header(message)
    told = MessagePlaceholder() if parsed_text.text else message_placeholder(message)
    nothing = not (parsed_text.text or told.text or files)
    service = nothing and message.content_type != ContentType.UNKNOWN
    if head is None or service or (parsed_text.is_for_other_bot and not private):
        return None
    target = replied_message(message)
    own = target is not None and target.from_user is not None and target.from_user.id == me.id
    text, quote = parsed_text.text or told.text, reply_quote(message, me)
    answers = _answers(message, target) if own else None
    if source is not None:
        # Forwarding a command does not give it, and forwarded mentions mention nobody.
        quote, text = format_quote(source, parsed_text.text or told.full_text), ""
        parsed_text, answers = ParsedText(""), None
    elif told.content:
        quote, answers = "\n\n".join(filter(None, (told.quote, quote))), None
    event = TelegramEvent(
        update_id=update,
        # It may be of a kind that is newer than this program.
        kind="unreadable" if nothing else "message",
        address=_address(message, channel),
        chat_ids=(str(message.chat.id),),
        sender=head,
        private=private,
        message_id=str(message.message_id),
        id=str(message.message_id),
        text=text,
        sent_at=message.date,
        addressed=private or parsed_text.is_command or parsed_text.mentions_bot or own,
        quote=quote,
        answered_message_id=answers,
        files=files,
        media_group_id=message.media_group_id,
        is_plain_text=bool(message.text) and source is None,
        is_forwarded=source is not None,
        is_long_text=source is None and utf16_length(message.text or "") >= _LONG_TEXT,
        is_forum=_forum(message.chat),
    )
    if event.urgent or source is not None:
        return event
    return replace(event, files=(*files, *quoted_files(message, me)))


def _edit(update: int, message: Message, channel: str, me: BotIdentity) -> TelegramEvent | None:
    # With neither text nor file it is a live location that moved, or a poll that changed.
    said = message.text or message.caption or message_files(message)
    if message.forward_origin is not None or not said:
        return None
    event = _message(update, message, channel, me)
    if event is None:
        return None
    return replace(
        event,
        kind="edit",
        # Two edits may have the same second; the update's id is the same when it is sent again.
        id=f"{message.message_id}.e{update}",
        sent_at=_moment(message.edit_date) or message.date,
        files=(),
        media_group_id=None,
        is_plain_text=False,
        is_long_text=False,
    )


def _press(update: int, query: CallbackQuery, channel: str) -> TelegramEvent | None:
    message = query.message
    sender = press_sender(query)
    if message is None or not query.data or sender is None:
        return None
    if message.chat.type not in (*GROUP_TYPES, "private"):
        return None
    topic = None
    if isinstance(message, Message):
        topic = _topic(message)
        # A modified client may send data that is on no button.
        if message.reply_markup is not None and not _carries(message.reply_markup, query.data):
            return None
    return TelegramEvent(
        update_id=update,
        kind="press",
        address=Address(channel, str(message.chat.id), topic),
        chat_ids=(str(message.chat.id),),
        sender=sender,
        private=message.chat.type == "private",
        message_id=str(message.message_id),
        id=f"{PRESS_ID_PREFIX}{query.id}",
        text=query.data,
        sent_at=datetime.now(UTC),  # a callback query has no date
        addressed=True,
        callback_query_id=query.id,
        is_forum=_forum(message.chat),
    )


def _carries(keyboard: InlineKeyboardMarkup, data: str) -> bool:
    return any(key.callback_data == data for row in keyboard.inline_keyboard for key in row)


def _reaction(update: int, reaction: MessageReactionUpdated, channel: str) -> TelegramEvent | None:
    chat = reaction.chat
    # The update does not name the message's topic.
    if chat.type not in (*GROUP_TYPES, "private") or chat.is_forum:
        return None
    sender = reaction_sender(reaction.user, reaction.actor_chat)
    before = [
        type_union
        for type_union in reaction.old_reaction
        if isinstance(type_union, ReactionTypeEmoji)
    ]
    known = {type_emoji.emoji for type_emoji in before}
    added = [
        type_union.emoji
        for type_union in reaction.new_reaction
        if isinstance(type_union, ReactionTypeEmoji) and type_union.emoji not in known
    ]
    if sender is None or not added:
        return None
    return TelegramEvent(
        update_id=update,
        kind="reaction",
        address=Address(channel, str(chat.id)),
        chat_ids=(str(chat.id),),
        sender=sender,
        private=chat.type == "private",
        message_id=str(reaction.message_id),
        id=f"{reaction.message_id}.r{update}",
        text=f"(reacted with {' '.join(added)} to an earlier message)",  # for the model
        sent_at=reaction.date,
        addressed=False,
    )


def _forum(chat: Chat) -> bool:
    # Private chats may have topics, too, but no General one.
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
    # Outside forums, a thread of replies has an id as well, but is not a topic.
    if not message.is_topic_message or message.message_thread_id is None:
        return None
    return str(message.message_thread_id)


def _moment(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def migrated_ids(message: Message) -> tuple[int, int] | None:
    """Return the old and the new id of a migrated group; Telegram sends a message in both chats."""
    old, new = message.migrate_from_chat_id, message.migrate_to_chat_id
    if old is None and new is None:
        return None
    here = message.chat.id
    return here if old is None else old, here if new is None else new
