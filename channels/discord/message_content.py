"""Read a Discord message: its own text, quotes, attachments and chat location.

Rule 1: ``text`` holds only what the sender wrote; what others wrote is in ``quote``.
Rule 2: mentions of the bot are removed; other mentions become names.
Rule 3: a quote names its author in a form that no display name can imitate.
Rule 4: a name in ``text`` was chosen by others: none of its words is the sender's.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

import aiohttp
import anyio
import discord

from bot.bus import Address, FileUnavailable, Sender, others_name
from bot.core.reasons import Reason
from channels.intake import Event, FileKind, SentFile
from channels.text import MAX_QUOTE_LENGTH, quote_name

_LONGEST_NAME = 64

_MENTION = re.compile(r"<(@!?|@&|#)(\d{15,20})>")
_EMOJI = re.compile(r"<a?:(\w{2,32}):\d{15,20}>")
_COMMAND = re.compile(r"/([a-z][a-z0-9_-]{0,31})(?:\s|$)")
_SAID = {discord.MessageType.default, discord.MessageType.reply}


def is_from_person(message: discord.Message) -> bool:
    """Return whether a person sent it, rather than a bot, a webhook or Discord itself."""
    author = message.author
    if author.bot or author.system or message.webhook_id is not None:
        return False
    return message.type in _SAID


def message_text(message: discord.Message, bot_id: int) -> str:
    """Return the sender's text with ids replaced by names; stickers and polls in parentheses."""
    parts = [resolve_mentions(message, message.content, bot_id)]
    parts += [f"(sticker {others_name(':', each.name)})" for each in message.stickers]
    if message.poll is not None:
        parts.append(f"(poll: {message.poll.question})")
    return "\n".join(part for part in parts if part)


def resolve_mentions(message: discord.Message, content: str, bot_id: int) -> str:
    """Return a text with ids replaced by names, and without mentions of the bot."""
    guild = message.guild
    roles = {role.id: role.name for role in message.role_mentions}
    mine = {role.id for role in message.role_mentions if belongs_to(role, bot_id)}
    people = {person.id: person.display_name for person in message.mentions}

    def name(found: re.Match[str]) -> str:
        kind, number = found[1], int(found[2])
        if kind == "#":
            channel = None if guild is None else guild.get_channel_or_thread(number)
            return "#unknown" if channel is None else others_name("#", channel.name)
        if kind == "@&":
            return "" if number in mine else others_name("@", roles.get(number, "unknown"))
        if number == bot_id:
            return ""
        member = None if guild is None else guild.get_member(number)
        person = people.get(number) or (member.display_name if member else "unknown")
        return others_name("@", person)

    plain = _EMOJI.sub(lambda emoji: others_name(":", emoji[1]), content)
    return _MENTION.sub(name, plain).strip()


def belongs_to(role: discord.Role, bot_id: int) -> bool:
    """Return whether this is the bot's own managed role."""
    return role.is_bot_managed() and role.tags is not None and role.tags.bot_id == bot_id


def mentions_bot(message: discord.Message, bot_id: int) -> bool:
    """Return whether Discord lists the bot, or its role, among the mentions."""
    if any(person.id == bot_id for person in message.mentions):
        return True
    return any(belongs_to(role, bot_id) for role in message.role_mentions)


def command_name(text: str) -> str | None:
    """Return the name of the slash command at the start of a text; None if there is none."""
    found = _COMMAND.match(text)
    return None if found is None else found[1]


def replied_message(message: discord.Message) -> discord.Message | None:
    """Return the message that this one replies to, if Discord sent it along."""
    reference = message.reference
    if reference is None or reference.type is not discord.MessageReferenceType.reply:
        return None
    found = reference.resolved or reference.cached_message
    return found if isinstance(found, discord.Message) else None


def is_unresolved_reply(message: discord.Message) -> bool:
    """Return whether it replies to a message that Discord did not send along."""
    reference = message.reference
    if reference is None or reference.type is not discord.MessageReferenceType.reply:
        return False
    return not (reference.resolved or reference.cached_message) and bool(reference.message_id)


def clean_name(name: str, most: int = _LONGEST_NAME) -> str:
    """Return a name on one line, without unprintable characters, shortened if too long."""
    shown = " ".join("".join(each if each.isprintable() else " " for each in name).split())
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def message_quote(message: discord.Message, bot_id: int) -> str | None:
    """Return the messages that this one replies to or forwards, as a quote; None if there are none."""
    quotes: list[str] = []
    target = replied_message(message)
    if target is not None:
        mine = target.author.id == bot_id
        author = quote_name(target.author.display_name, target.author.id)
        text = resolve_mentions(target, target.content, 0 if mine else bot_id)
        if text or any(all_attachments(target)):
            whose = "your message" if mine else author
            quotes.append(f"In reply to {whose}:\n{text or '(a file)'}")
    for snapshot in message.message_snapshots:
        text = resolve_mentions(message, snapshot.content, bot_id)
        quotes.append(f"Forwarded from {_origin(message)}:\n{text}".strip())
    return "\n\n".join(quotes)[:MAX_QUOTE_LENGTH] or None


def all_attachments(message: discord.Message) -> Iterable[discord.Attachment]:
    """Yield the message's attachments, then those of the messages it forwards."""
    yield from message.attachments
    for snapshot in message.message_snapshots:
        yield from snapshot.attachments


def edit_id(message_id: int, at: datetime) -> str:
    """Return the id of an edit, which is the same whenever Discord sends it."""
    return f"{message_id}.e{round(at.timestamp() * 1000)}"


def _origin(message: discord.Message) -> str:
    """Return the channel of a forwarded message; Discord does not name its author."""
    reference, guild = message.reference, message.guild
    if reference is not None and guild is not None and reference.guild_id == guild.id:
        channel = guild.get_channel_or_thread(reference.channel_id)
        if channel is not None:
            return f"#{clean_name(channel.name)}"
    return "another conversation"


@dataclass(frozen=True, slots=True)
class ChatLocation:
    """A direct message channel, a server channel or a thread.

    Attributes:
        address: The chat's address.
        channel_id: Discord's id of the channel, or of the thread.
        guild_id: The server's id; None for direct messages.
        parent_id: The id of a thread's channel.
    """

    address: Address
    channel_id: int
    guild_id: int | None = None
    parent_id: int | None = None

    @property
    def private(self) -> bool:
        """Whether only one person and the bot are present."""
        return self.guild_id is None

    @property
    def access_ids(self) -> tuple[str, ...]:
        """The ids by which access may be granted: the channel's, its parent's, its server's."""
        ids = (self.channel_id, self.parent_id, self.guild_id)
        return tuple(str(each) for each in ids if each is not None)


def chat_location(name: str, channel: object) -> ChatLocation | None:
    """Return the location of a discord.py channel.

    Returns:
        None for channels that the bot does not use (group direct messages, categories), and for a
        server channel that discord.py does not know, which may be a thread.
    """
    if isinstance(channel, discord.Thread):
        parent = str(channel.parent_id)
        address = Address(name, parent, str(channel.id))
        return ChatLocation(address, channel.id, channel.guild.id, channel.parent_id)
    if isinstance(channel, discord.DMChannel):
        return ChatLocation(Address(name, str(channel.id)), channel.id)
    if isinstance(channel, discord.PartialMessageable):
        if channel.guild_id is not None:
            return None
        return ChatLocation(Address(name, str(channel.id)), channel.id)
    if isinstance(channel, discord.TextChannel | discord.VoiceChannel | discord.StageChannel):
        return ChatLocation(Address(name, str(channel.id)), channel.id, channel.guild.id)
    return None


def target_channel_id(address: Address) -> int:
    """Return Discord's id of the channel or thread of an address."""
    return int(address.topic or address.chat_id)


def read_message(
    message: discord.Message, location: ChatLocation, bot_id: int, commands: Container[str | None]
) -> Event:
    """Return a person's message as an event."""
    text, target = message_text(message, bot_id), replied_message(message)
    mine = target is not None and target.author.id == bot_id
    command = command_name(text) in commands
    return Event(
        kind="message",
        id=str(message.id),
        address=location.address,
        chat_ids=location.access_ids,
        sender=sender_of(message.author),
        private=location.private,
        message_id=str(message.id),
        text=text,
        sent_at=message.created_at,
        addressed=location.private or mine or command or mentions_bot(message, bot_id),
        quote=message_quote(message, bot_id),
        answered_message_id=str(target.id) if mine and target is not None else None,
        files=(*map(_file, all_attachments(message)), *_quoted_files(target, bot_id)),
        is_forwarded=bool(message.message_snapshots),
    )


def sender_of(person: discord.abc.User) -> Sender:
    """Return somebody as a sender."""
    return Sender(str(person.id), person.display_name)


def _quoted_files(target: discord.Message | None, bot_id: int) -> Iterable[SentFile]:
    if target is not None:
        author = None if target.author.id == bot_id else sender_of(target.author)
        for attachment in islice(all_attachments(target), MAX_QUOTED_FILES):
            yield replace(_file(attachment), quoted=True, author=author)


_UNKNOWN = "application/octet-stream"
_KINDS: dict[str, FileKind] = {"image": "image", "audio": "audio", "video": "video"}
_TRIES = 3
_SECONDS = 120.0
_CHUNK = 65_536

MAX_QUOTED_FILES = 10
"""The most files that a reply brings of the message that it replies to."""


def _file(attachment: discord.Attachment) -> SentFile:
    mime = (attachment.content_type or _UNKNOWN).partition(";")[0].strip() or _UNKNOWN
    voice = attachment.is_voice_message()
    kind = "voice" if voice else _KINDS.get(mime.partition("/")[0], "document")
    return SentFile(attachment.url, kind, attachment.filename, mime, attachment.size)


async def fetch_file(file: SentFile, most: int) -> bytes:
    """Return an attachment's bytes, with a few retries.

    Raises:
        FileUnavailable: It is larger than ``most``, gone, or could not be had.
    """
    tries = 0
    while True:
        try:
            return await _read(file.ref, most)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            tries += 1
            if tries == _TRIES:
                # Without the cause: its text may hold the URL, which gives access to the file.
                name = type(error).__name__
                raise FileUnavailable(
                    Reason("file_not_delivered", platform="Discord", error=name)
                ) from None
        await anyio.sleep(tries)


async def _read(url: str, most: int) -> bytes:
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as response:
        if response.status in {403, 404, 410}:
            raise FileUnavailable(Reason("file_gone", platform="Discord"))
        response.raise_for_status()
        content = bytearray()
        async for chunk in response.content.iter_chunked(_CHUNK):
            content += chunk
            if len(content) > most:
                raise FileUnavailable(Reason("file_over", limit=f"{most / 1_000_000:.3g}"))
        return bytes(content)
