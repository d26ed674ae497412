"""Updates as events: what somebody did, before it was asked whether they may.

Rule 1: nothing is fetched, kept or answered here.
Rule 2: what no person did, and what a bot has no use of, is None: bots' messages, channels' posts,
service messages, taken-back reactions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from aiogram.types import (
    CallbackQuery,
    Chat,
    InlineKeyboardMarkup,
    Message,
    MessageReactionUpdated,
    ReactionTypeEmoji,
    Update,
)

from bot.bus import Address, Sender
from channels.telegram.files import Wanted, files_of
from channels.telegram.moves import Migration, migration_of
from channels.telegram.people import GROUPS, author_of, person, reactor
from channels.telegram.told import Told, told_of
from channels.telegram.words import (
    Me,
    Said,
    passed_on,
    quote_of_reply,
    quoted,
    read_text,
    reply_of,
)
from channels.text import utf16_length

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
class Event:
    """Something that a person did.

    Attributes:
        update: The update's id.
        kind: What.
        address: Where.
        sender: Who.
        private: Nobody else is present.
        message: Telegram's id of the message that it is, or is about.
        id: For ``Inbound.id``.
        text: The person's own words.
        sent_at: When.
        addressed: It is meant for the bot wherever it was written.
        quote: What it quotes or forwards.
        answers: The bot's message that all of ``quote`` is from.
        files: What came with it.
        album: Names the album that it is a part of.
        plain: Text alone, which may go on in the next message.
        passed_on: What it says is somebody else's: forwarded, or made by another bot.
        callback: To be acknowledged to Telegram.
        long: Its text is so long that the rest of it may follow in another message.
        forum: The group has topics.
    """

    update: int
    kind: Literal["message", "edit", "press", "reaction"]
    address: Address
    sender: Sender
    private: bool
    message: str
    id: str
    text: str
    sent_at: datetime
    addressed: bool
    quote: str | None = None
    answers: str | None = None
    files: tuple[Wanted, ...] = ()
    album: str | None = None
    plain: bool = False
    passed_on: bool = False
    callback: str | None = None
    long: bool = False
    forum: bool = False

    @property
    def urgent(self) -> bool:
        """Whether it must not wait behind what takes long in its chat."""
        return self.text.strip().lower().partition("@")[0] == "/stop"


def read_update(update: Update, channel: str, me: Me) -> Event | Migration | None:
    """Return what an update says that somebody did; None where it is nothing to us."""
    if update.message is not None and (move := migration_of(update.message, channel)) is not None:
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


def _message(update: int, message: Message, channel: str, me: Me) -> Event | None:
    head, private = author_of(message), message.chat.type == "private"
    said, files, source = _said(message, me), files_of(message), passed_on(message)
    told = Told() if said.text else told_of(message)
    nothing = not (said.text or told.text or files)
    if head is None or nothing or (said.for_another and not private):
        return None
    target = reply_of(message)
    own = target is not None and target.from_user is not None and target.from_user.id == me.id
    text, quote = said.text or told.text, quote_of_reply(message, me)
    answers = _answers(message, target) if own else None
    if source is not None:
        # Whoever passes a command on does not give it, and names nobody.
        quote, text = quoted(source, said.text or told.whole), ""
        said, answers = Said(""), None
    elif told.content:
        quote, answers = "\n\n".join(filter(None, (told.quote, quote))), None
    return Event(
        update=update,
        kind="message",
        address=_address(message, channel),
        sender=head,
        private=private,
        message=str(message.message_id),
        id=str(message.message_id),
        text=text,
        sent_at=message.date,
        addressed=private or said.command or said.mentions_me or own,
        quote=quote,
        answers=answers,
        files=files,
        album=message.media_group_id,
        plain=bool(message.text) and source is None,
        passed_on=source is not None,
        long=source is None and utf16_length(message.text or "") >= _LONG_TEXT,
        forum=_forum(message.chat),
    )


def _edit(update: int, message: Message, channel: str, me: Me) -> Event | None:
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
        album=None,
        plain=False,
        long=False,
    )


def _press(update: int, query: CallbackQuery, channel: str) -> Event | None:
    message = query.message
    if message is None or not query.data or query.from_user.is_bot:
        return None
    if message.chat.type not in (*GROUPS, "private"):
        return None
    topic = None
    if isinstance(message, Message):
        topic = _topic(message)
        # A changed client may send what stands on no button.
        if message.reply_markup is not None and not _carries(message.reply_markup, query.data):
            return None
    return Event(
        update=update,
        kind="press",
        address=Address(channel, str(message.chat.id), topic),
        sender=person(query.from_user),
        private=message.chat.type == "private",
        message=str(message.message_id),
        id=f"cb{query.id}",
        text=query.data,
        sent_at=datetime.now(UTC),  # Telegram gives none
        addressed=True,
        callback=query.id,
        forum=_forum(message.chat),
    )


def _carries(keyboard: InlineKeyboardMarkup, data: str) -> bool:
    return any(key.callback_data == data for row in keyboard.inline_keyboard for key in row)


def _reaction(update: int, reaction: MessageReactionUpdated, channel: str) -> Event | None:
    chat = reaction.chat
    # The update does not say in which topic the message stands.
    if chat.type not in (*GROUPS, "private") or chat.is_forum:
        return None
    sender = reactor(reaction.user, reaction.actor_chat)
    before = [one for one in reaction.old_reaction if isinstance(one, ReactionTypeEmoji)]
    known = {one.emoji for one in before}
    added = [
        one.emoji
        for one in reaction.new_reaction
        if isinstance(one, ReactionTypeEmoji) and one.emoji not in known
    ]
    if sender is None or not added:
        return None
    return Event(
        update=update,
        kind="reaction",
        address=Address(channel, str(chat.id)),
        sender=sender,
        private=chat.type == "private",
        message=str(reaction.message_id),
        id=f"{reaction.message_id}.r{update}",
        text=f"(reacted with {' '.join(added)} to an earlier message)",
        sent_at=reaction.date,
        addressed=False,
    )


def _forum(chat: Chat) -> bool:
    # Private chats may have topics, too, and no General one.
    return bool(chat.is_forum) and chat.type == "supergroup"


def _said(message: Message, me: Me) -> Said:
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
