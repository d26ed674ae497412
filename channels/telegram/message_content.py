"""Convert a Telegram message to plain text: mentions, quotes, forwards, placeholders and senders.

Rule 1: a person's own words are kept apart from what they quote or forward.
Rule 2: mentions are read from entities, never from the text, since anybody may write a name.
Rule 3: a name is always in quotation marks, which the bot's own words never are, so that no name
can imitate them.
Rule 4: who is mentioned chose their name: none of its words is the sender's.
Rule 5: entities count UTF-16 code units (https://core.telegram.org/bots/api#messageentity).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aiogram.types import (
    CallbackQuery,
    Chat,
    ExternalReplyInfo,
    Message,
    MessageEntity,
    MessageOriginChannel,
    MessageOriginChat,
    MessageOriginHiddenUser,
    MessageOriginUser,
    User,
)

from bot.bus import Sender, others_name
from bot.core.i18n import match_language
from channels.text import format_quote, quote_name

_LONGEST_LINK = 1_000
_SPACE, _COMMA, _COLON = (char.encode("utf-16-le") for char in " ,:")


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """The bot's user and commands.

    Attributes:
        id: The bot's user id.
        username: The username, without ``@``.
        commands: The names of its commands, without the slash.
    """

    id: int
    username: str
    commands: frozenset[str] = frozenset()

    def has_username(self, handle: str) -> bool:
        """Return whether a username, without ``@``, is the bot's."""
        return handle.casefold() == self.username.casefold()


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A message's text and whom it addresses.

    Attributes:
        text: The text without mentions of the bot; others' text mentions as ``@name``.
        mentions_bot: Whether it mentions the bot.
        is_command: Whether it begins with a command of this bot: one with its username, or one that
            it has.
        is_for_other_bot: Whether it begins with a command for another bot.
    """

    text: str
    mentions_bot: bool = False
    is_command: bool = False
    is_for_other_bot: bool = False


def read_text(text: str, entities: list[MessageEntity] | None, me: BotIdentity) -> ParsedText:
    """Return a text without mentions of the bot, and whom it addresses."""
    mentions = command = for_another = False
    coded = text.encode("utf-16-le", "surrogatepass")
    end = len(coded)
    # Backwards, so that a replacement does not shift the offsets of later ones.
    for entity in sorted(
        entities or [], key=lambda message_entity: message_entity.offset, reverse=True
    ):
        start, stop = 2 * entity.offset, 2 * (entity.offset + entity.length)
        if not 0 <= start < stop <= end:
            continue
        shown = coded[start:stop].decode("utf-16-le", "replace")
        new = shown
        if entity.type == "mention" and me.has_username(shown.removeprefix("@")):
            mentions, new = True, ""
        elif entity.type == "text_mention" and entity.user is not None:
            mine = entity.user.id == me.id
            mentions, new = (
                mentions or mine,
                "" if mine else others_name("@", shown.removeprefix("@")),
            )
        elif entity.type == "bot_command":
            name, _, target = shown.partition("@")
            mine = not target or me.has_username(target)
            mentions = mentions or (bool(target) and mine)
            new = name if mine else shown
            if entity.offset == 0:
                has = bool(target) or name.removeprefix("/").lower() in me.commands
                command, for_another = mine and has, not mine
        elif entity.type == "text_link":
            new = shown + _behind(shown, entity.url)
        if new != shown:
            before, after = coded[:start], coded[stop:]
            if not new:
                after = _closed_up(before, after)
            coded = before + new.encode("utf-16-le", "surrogatepass") + after
    told = coded.decode("utf-16-le", "replace").strip()
    return ParsedText(told or (text.strip() if mentions else ""), mentions, command, for_another)


def with_links(text: str, entities: list[MessageEntity] | None) -> str:
    """Return a text with the URLs of its links added in parentheses."""
    coded = text.encode("utf-16-le", "surrogatepass")
    for entity in sorted(
        entities or [], key=lambda message_entity: message_entity.offset, reverse=True
    ):
        start, stop = 2 * entity.offset, 2 * (entity.offset + entity.length)
        if entity.type == "text_link" and 0 <= start < stop <= len(coded):
            shown = coded[start:stop].decode("utf-16-le", "replace")
            behind = _behind(shown, entity.url).encode("utf-16-le", "surrogatepass")
            coded = coded[:stop] + behind + coded[stop:]
    return coded.decode("utf-16-le", "replace")


def _behind(shown: str, url: str | None) -> str:
    """Return a link's URL in parentheses; empty if its text shows it, or if it names a person."""
    if not url or len(url) > _LONGEST_LINK or url.startswith("tg://user"):
        return ""
    bare = url.rstrip("/")
    said = shown.strip().rstrip("/")
    return "" if said in (bare, bare.partition("://")[2]) else f" ({url})"


def _closed_up(before: bytes, after: bytes) -> bytes:
    """Return the text after a removed mention, without punctuation and space left over."""
    if not before:
        after = after.removeprefix(_COMMA).removeprefix(_COLON)
    if not before or before.endswith(_SPACE):
        after = after.removeprefix(_SPACE)
    return after


def forward_header(message: Message) -> str | None:
    """Return the header above forwarded text; None if the message is the sender's own.

    The result of an inline bot is that bot's text: https://core.telegram.org/bots/inline.
    """
    match message.forward_origin:
        case MessageOriginUser(sender_user=user):
            return f"Forwarded from {quote_name(user.full_name, user.id)}:"
        case MessageOriginHiddenUser(sender_user_name=name):
            return f"Forwarded from {quote_name(name)}:"
        case MessageOriginChat(sender_chat=chat) | MessageOriginChannel(chat=chat):
            return f"Forwarded from {quote_name(chat_name(chat), chat.id)}:"
    if message.via_bot is not None:
        return f"Sent through @{message.via_bot.username or 'a_bot'}:"
    return None


def replied_message(message: Message) -> Message | None:
    """Return the message that this one replies to, except the one that opened the forum topic."""
    target = message.reply_to_message
    if target is None or target.forum_topic_created is not None:
        return None
    if message.is_topic_message and target.message_id == message.message_thread_id:
        return None
    return target


def reply_quote(message: Message, me: BotIdentity) -> str | None:
    """Return what a message replies to: the part that the sender selected, or the whole text."""
    part = message.quote
    marked = with_links(part.text, part.entities) if part is not None and part.is_manual else None
    target = replied_message(message)
    if target is None:
        external = message.external_reply
        shown = marked or (_named_file(external) if external is not None else "")
        return format_quote("In reply to another chat:", shown) if external and shown else None
    said = (
        marked
        or with_links(target.text or "", target.entities)
        or with_links(target.caption or "", target.caption_entities)
        or message_placeholder(target).full_text
        or _named_file(target)
    )
    if not said:
        return None
    if target.from_user is not None and target.from_user.id == me.id:
        return format_quote("In reply to your message:", said)
    return format_quote(f"In reply to {_author(target)}:", said)


def quoted_author(
    target: Message | ExternalReplyInfo, here: Chat, me: BotIdentity
) -> Sender | None:
    """Return who sent a replied message; None for the bot, and if the replier brought it from elsewhere."""
    if isinstance(target, ExternalReplyInfo):
        if target.chat is None or target.chat.id != here.id:
            return None
        user, chat = getattr(target.origin, "sender_user", None), None
    else:
        user, chat = target.from_user, target.sender_chat
    if chat is not None:
        return Sender(str(chat.id), chat_name(chat))
    if user is None:
        return Sender("0", "somebody")
    return None if user.id == me.id else user_sender(user)


def _named_file(message: Message | ExternalReplyInfo) -> str:
    kinds = ("photo", "voice", "audio", "video", "video_note", "animation", "document")
    found = next((kind for kind in kinds if getattr(message, kind)), None)
    return f"({found.replace('_', ' ')})" if found else ""


def _author(message: Message) -> str:
    if message.sender_chat is not None:
        return quote_name(chat_name(message.sender_chat), message.sender_chat.id)
    if message.from_user is not None:
        return quote_name(message.from_user.full_name, message.from_user.id)
    return "somebody"


def chat_name(chat: Chat) -> str:
    """Return a chat's title, or the person's name."""
    return chat.title or " ".join(filter(None, (chat.first_name, chat.last_name))) or "somebody"


@dataclass(frozen=True, slots=True)
class MessagePlaceholder:
    """A text that stands for a message which is neither text nor file.

    Attributes:
        text: The kind of message; empty for a service message.
        content: Text in it that somebody else may have written, on one line.
    """

    text: str = ""
    content: str = ""

    @property
    def full_text(self) -> str:
        """The text and the content."""
        return f"{self.text} {self.content}".strip()

    @property
    def quote(self) -> str:
        """The content as a quote below a line that names the kind."""
        kind = self.text.strip("()").partition(":")[0]
        return f"From the {kind}:\n{self.content}" if self.content else ""


def message_placeholder(message: Message) -> MessagePlaceholder:
    """Describe a message that is neither text nor file, such as a sticker or a poll."""
    told, content = next(_placeholders(message), ("", ()))
    return MessagePlaceholder(told, " ".join(", ".join(content).split()))


def _placeholders(  # noqa: C901 - one branch for each kind
    message: Message,
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what a message is, and its parts that somebody else may have written."""
    if sticker := message.sticker:
        yield f"(sticker {sticker.emoji or ''}".strip() + ")", ()
    if contact := message.contact:
        name = " ".join(filter(None, (contact.first_name, contact.last_name)))
        yield "(contact)", (name, contact.phone_number)
    if dice := message.dice:
        yield f"(dice {dice.emoji}: {dice.value})", ()
    if message.story:
        yield "(a story, which bots cannot see)", ()
    if message.paid_media:
        yield "(paid media, which bots cannot see)", ()
    if venue := message.venue:
        place = venue.location
        yield f"(place: {place.latitude}, {place.longitude})", (venue.title, venue.address)
    if location := message.location:
        yield f"(location: {location.latitude}, {location.longitude})", ()
    if poll := message.poll:
        options = "; ".join(option.text for option in poll.options)
        yield f"(poll: {poll.question} Options: {options})", ()
    if checklist := message.checklist:
        tasks = "; ".join(task.text for task in checklist.tasks)
        yield f"(checklist: {checklist.title}: {tasks})", ()
    if game := message.game:
        yield "(game)", (game.title,)


GROUP_TYPES = ("group", "supergroup")
"""The chat types where more than one person is present."""


_ANONYMOUS_ADMINISTRATOR = 1087968824
"""The bot in whose name Telegram shows who writes as their group."""


def message_sender(message: Message) -> Sender | None:
    """Return who wrote a message; None for bots, channel posts and automatic forwards."""
    if message.chat.type not in (*GROUP_TYPES, "private") or message.is_automatic_forward:
        return None
    if message.sender_chat is not None:
        # An anonymous administrator, or a user who writes on behalf of a channel.
        return Sender(str(message.sender_chat.id), chat_name(message.sender_chat))
    if message.from_user is None or message.from_user.is_bot:
        return None
    return user_sender(message.from_user)


def press_sender(query: CallbackQuery) -> Sender | None:
    """Return who pressed a button; None for bots."""
    user, message = query.from_user, query.message
    if user.id == _ANONYMOUS_ADMINISTRATOR and message is not None:
        return Sender(str(message.chat.id), chat_name(message.chat))
    return None if user.is_bot else user_sender(user)


def reaction_sender(user: User | None, chat: Chat | None) -> Sender | None:
    """Return who reacted; None for bots and if Telegram names nobody."""
    if user is not None:
        return None if user.is_bot else user_sender(user)
    return None if chat is None else Sender(str(chat.id), chat_name(chat))


def user_sender(user: User) -> Sender:
    """Return a user as a sender."""
    language = match_language([user.language_code or ""])
    return Sender(str(user.id), user.full_name, language or "")
