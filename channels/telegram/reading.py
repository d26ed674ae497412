"""Updates as events: what somebody did, before it was asked whether they may.

Rule 1: nothing is fetched, kept or answered here.
Rule 2: what no person did, and what a bot has no use of, is None: bots' messages, channels' posts,
service messages, taken-back reactions.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from aiogram.types import (
    CallbackQuery,
    Chat,
    Message,
    MessageReactionUpdated,
    ReactionTypeEmoji,
    Update,
    User,
)

from bot.bus import Address, Sender
from channels.telegram.files import Wanted, files_of
from channels.telegram.words import (
    Me,
    Said,
    author_name,
    chat_name,
    forwarded_from,
    quote_of_reply,
    quoted,
    read_text,
    reply_of,
    told_of,
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

_GROUPS = ("group", "supergroup")
_LONG_TEXT = 4_000


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
        forwarded: It is somebody else's.
        callback: To be acknowledged to Telegram.
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
    forwarded: bool = False
    callback: str | None = None

    @property
    def urgent(self) -> bool:
        """Whether it must not wait behind what takes long in its chat."""
        return self.text.strip().lower().partition("@")[0] == "/stop"

    @property
    def long(self) -> bool:
        """Whether its text is so long that the rest of it may follow in another message.

        Telegram's programs split what is longer than 4,096 UTF-16 units.
        """
        return self.plain and utf16_length(self.text) >= _LONG_TEXT


def read_update(update: Update, channel: str, me: Me) -> Event | None:
    """Return what an update says that somebody did; None where it is nothing to us."""
    if update.message is not None:
        return _message(update.update_id, update.message, channel, me)
    if update.edited_message is not None:
        return _edit(update.update_id, update.edited_message, channel, me)
    if update.callback_query is not None:
        return _press(update.update_id, update.callback_query, channel)
    if update.message_reaction is not None:
        return _reaction(update.update_id, update.message_reaction, channel)
    return None


def news_of(update: Update, me: Me) -> str | None:
    """Return what an update tells of a group that somebody has to act on, in a line."""
    member, message = update.my_chat_member, update.message
    if member is not None and member.chat.type in _GROUPS:
        present = ("member", "administrator", "restricted")
        if (
            member.new_chat_member.status in present
            and member.old_chat_member.status not in present
        ):
            return (
                f"@{me.username} was added to the group {member.chat.id}. It answers there once "
                f"an owner writes /pair here in it, or TAPEBOT_ALLOW has telegram:{member.chat.id}"
            )
    if message is not None and message.migrate_to_chat_id is not None:
        new = message.migrate_to_chat_id
        return (
            f"the group {message.chat.id} is {new} now: where the settings or /pair name it, "
            f"name telegram:{new}"
        )
    return None


def _message(update: int, message: Message, channel: str, me: Me) -> Event | None:
    head = _head(message)
    if head is None:
        return None
    said = _said(message, me)
    files = files_of(message)
    if not said.text:
        said = Said(told_of(message))
    private = message.chat.type == "private"
    if (said.for_another and not private) or not (said.text or files):
        return None
    text, quote, forwarded = said.text, quote_of_reply(message, me), forwarded_from(message)
    if forwarded is not None:
        # Whoever forwards a command does not give it.
        said = Said("")
        quote, text = quoted(f"Forwarded from {forwarded}:", text), ""
    target = reply_of(message)
    own = target is not None and target.from_user is not None and target.from_user.id == me.id
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
        answers=_answers(message, target) if own and forwarded is None else None,
        files=files,
        album=message.media_group_id,
        plain=bool(message.text) and forwarded is None,
        forwarded=forwarded is not None,
    )


def _edit(update: int, message: Message, channel: str, me: Me) -> Event | None:
    head, said = _head(message), _said(message, me)
    if head is None or not said.text or said.for_another or forwarded_from(message) is not None:
        return None
    target = reply_of(message)
    own = target is not None and target.from_user is not None and target.from_user.id == me.id
    private = message.chat.type == "private"
    return Event(
        update=update,
        kind="edit",
        address=_address(message, channel),
        sender=head,
        private=private,
        message=str(message.message_id),
        # Two edits may fall into one second; an update's id stays the same when it comes again.
        id=f"{message.message_id}.e{update}",
        text=said.text,
        sent_at=_moment(message.edit_date) or message.date,
        addressed=private or said.command or said.mentions_me or own,
        quote=quote_of_reply(message, me),
        answers=_answers(message, target) if own else None,
    )


def _press(update: int, query: CallbackQuery, channel: str) -> Event | None:
    message = query.message
    if message is None or not query.data or query.from_user.is_bot:
        return None
    if message.chat.type not in (*_GROUPS, "private"):
        return None
    topic = _topic(message) if isinstance(message, Message) else None
    return Event(
        update=update,
        kind="press",
        address=Address(channel, str(message.chat.id), topic),
        sender=_person(query.from_user),
        private=message.chat.type == "private",
        message=str(message.message_id),
        id=f"cb{query.id}",
        text=query.data,
        sent_at=datetime.now(UTC),  # Telegram gives none
        addressed=True,
        callback=query.id,
    )


def _reaction(update: int, reaction: MessageReactionUpdated, channel: str) -> Event | None:
    chat = reaction.chat
    # The update does not say in which topic the message stands.
    if chat.type not in (*_GROUPS, "private") or chat.is_forum:
        return None
    sender = _reactor(reaction.user, reaction.actor_chat)
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


def _head(message: Message) -> Sender | None:
    """Return who wrote a message; None where it is nobody's that a bot listens to."""
    if message.chat.type not in (*_GROUPS, "private") or message.is_automatic_forward:
        return None
    if message.sender_chat is not None:
        # An anonymous administrator, or somebody who writes in the name of a channel.
        return Sender(str(message.sender_chat.id), author_name(message))
    if message.from_user is None or message.from_user.is_bot:
        return None
    return _person(message.from_user)


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


def _reactor(user: User | None, chat: Chat | None) -> Sender | None:
    if user is not None:
        return None if user.is_bot else _person(user)
    return None if chat is None else Sender(str(chat.id), chat_name(chat))


def _person(user: User) -> Sender:
    return Sender(str(user.id), user.full_name)


def _moment(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
