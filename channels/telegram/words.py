"""What a Telegram message says, in words.

Rule 1: a person's own words and what they only quote or forward are kept apart.
Rule 2: who is meant is read from entities, never from the text: anybody may write a name.
Rule 3: entities count UTF-16 code units (https://core.telegram.org/bots/api#messageentity).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aiogram.types import (
    Chat,
    Message,
    MessageEntity,
    MessageOriginChannel,
    MessageOriginChat,
    MessageOriginHiddenUser,
    MessageOriginUser,
)

MOST_QUOTED = 2_000
"""Characters of a quote that are kept."""

_SPACE, _COMMA, _COLON = (char.encode("utf-16-le") for char in " ,:")


@dataclass(frozen=True, slots=True)
class Me:
    """The bot.

    Attributes:
        id: Its user id.
        username: Its handle, without ``@``.
    """

    id: int
    username: str

    def named(self, handle: str) -> bool:
        """Return whether a handle, without ``@``, is the bot's."""
        return handle.casefold() == self.username.casefold()


@dataclass(frozen=True, slots=True)
class Said:
    """A text with whom it names.

    Attributes:
        text: Without the bot's own name; of others ``@name``.
        mentions_me: It names the bot.
        command: It begins with a slash command for this bot.
        for_another: It begins with a slash command for another bot.
    """

    text: str
    mentions_me: bool = False
    command: bool = False
    for_another: bool = False


def read_text(text: str, entities: list[MessageEntity] | None, me: Me) -> Said:
    """Return what a text says, and to whom."""
    mentions = command = for_another = False
    coded = text.encode("utf-16-le", "surrogatepass")
    end = len(coded)
    # From the end, so that what is replaced moves nothing that is still to be replaced.
    for entity in sorted(entities or [], key=lambda one: one.offset, reverse=True):
        start, stop = 2 * entity.offset, 2 * (entity.offset + entity.length)
        if not 0 <= start < stop <= end:
            continue
        shown = coded[start:stop].decode("utf-16-le", "replace")
        new = shown
        if entity.type == "mention" and me.named(shown.removeprefix("@")):
            mentions, new = True, ""
        elif entity.type == "text_mention" and entity.user is not None:
            mine = entity.user.id == me.id
            mentions, new = mentions or mine, "" if mine else f"@{shown.removeprefix('@')}"
        elif entity.type == "bot_command":
            name, _, target = shown.partition("@")
            mine = not target or me.named(target)
            mentions = mentions or (bool(target) and mine)
            new = name if mine else shown
            if entity.offset == 0:
                command, for_another = mine, not mine
        if new != shown:
            before, after = coded[:start], coded[stop:]
            if not new:
                after = _closed_up(before, after)
            coded = before + new.encode("utf-16-le", "surrogatepass") + after
    told = coded.decode("utf-16-le", "replace").strip()
    return Said(told or (text.strip() if mentions else ""), mentions, command, for_another)


def _closed_up(before: bytes, after: bytes) -> bytes:
    """Return what follows a name that is taken out, without what stood between the two."""
    if not before:
        after = after.removeprefix(_COMMA).removeprefix(_COLON)
    if not before or before.endswith(_SPACE):
        after = after.removeprefix(_SPACE)
    return after


def told_of(message: Message) -> str:
    """Return what stands for a message that is neither text nor file; empty for a service message."""
    return next(iter((*_of_person(message), *_of_place(message), *_of_list(message))), "")


def _of_person(message: Message) -> Iterator[str]:
    if sticker := message.sticker:
        yield f"(sticker {sticker.emoji})" if sticker.emoji else "(sticker)"
    if contact := message.contact:
        name = " ".join(filter(None, (contact.first_name, contact.last_name)))
        yield f"(contact: {name}, {contact.phone_number})"
    if dice := message.dice:
        yield f"(dice {dice.emoji}: {dice.value})"
    if message.story:
        yield "(a story, which bots cannot see)"
    if message.paid_media:
        yield "(paid media, which bots cannot see)"


def _of_place(message: Message) -> Iterator[str]:
    if venue := message.venue:
        place = venue.location
        yield f"(place: {venue.title}, {venue.address}, {place.latitude}, {place.longitude})"
    if location := message.location:
        yield f"(location: {location.latitude}, {location.longitude})"


def _of_list(message: Message) -> Iterator[str]:
    if poll := message.poll:
        options = "; ".join(option.text for option in poll.options)
        yield f"(poll: {poll.question} Options: {options})"
    if checklist := message.checklist:
        tasks = "; ".join(task.text for task in checklist.tasks)
        yield f"(checklist: {checklist.title}: {tasks})"
    if game := message.game:
        yield f"(game: {game.title})"


def forwarded_from(message: Message) -> str | None:
    """Return the name of the author of a forwarded message; None where it is not forwarded."""
    match message.forward_origin:
        case MessageOriginUser(sender_user=user):
            return user.full_name
        case MessageOriginHiddenUser(sender_user_name=name):
            return name
        case MessageOriginChat(sender_chat=chat) | MessageOriginChannel(chat=chat):
            return chat_name(chat)
    return None


def quoted(author: str, said: str) -> str:
    """Return a quote under a line on its author, bounded."""
    said = said.strip()
    if len(said) > MOST_QUOTED:
        said = said[: MOST_QUOTED - 1] + "…"
    return f"{author}\n{said}".strip()


def reply_of(message: Message) -> Message | None:
    """Return the message that one replies to; not the one that opened the topic it stands in."""
    target = message.reply_to_message
    if target is None or target.forum_topic_created is not None:
        return None
    if message.is_topic_message and target.message_id == message.message_thread_id:
        return None
    return target


def quote_of_reply(message: Message, me: Me) -> str | None:
    """Return what a message replies to: the part that was marked, else its whole text."""
    marked = message.quote.text if message.quote is not None and message.quote.is_manual else None
    target = reply_of(message)
    if target is None:
        if message.external_reply is None or not marked:
            return None
        return quoted("In reply to another chat:", marked)
    said = marked or target.text or target.caption or told_of(target) or _named_file(target)
    if not said:
        return None
    if target.from_user is not None and target.from_user.id == me.id:
        return quoted("In reply to your message:", said)
    return quoted(f"In reply to {author_name(target)}:", said)


def _named_file(message: Message) -> str:
    kinds = ("photo", "voice", "audio", "video", "video_note", "animation", "document")
    found = next((kind for kind in kinds if getattr(message, kind)), None)
    return f"({found.replace('_', ' ')})" if found else ""


def author_name(message: Message) -> str:
    """Return the name shown above a message."""
    if message.sender_chat is not None:
        return chat_name(message.sender_chat)
    return message.from_user.full_name if message.from_user is not None else "somebody"


def chat_name(chat: Chat) -> str:
    """Return a chat's title, or its person's name."""
    return chat.title or " ".join(filter(None, (chat.first_name, chat.last_name))) or "somebody"
