"""What a message of Discord says: the person's own words, and what they quote. No network.

Rule 1: ``text`` holds only what the person wrote; what others wrote is in ``quote``.
Rule 2: of the bot's own mention nothing is left; of others' the name is.
Rule 3: whose words a quote holds is said in a form that nobody can forge by what they call themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import aiohttp
import anyio
import discord

from bot.bus import Address, Attachment, FileUnavailable, RemoteFile
from channels.base import GroupPolicy

MAX_QUOTE_LENGTH = 2000

_LONGEST_NAME = 64

_MENTION = re.compile(r"<(@!?|@&|#)(\d{15,20})>")
_EMOJI = re.compile(r"<a?(:\w{2,32}:)\d{15,20}>")
_COMMAND = re.compile(r"/([a-z][a-z0-9_-]{0,31})(?:\s|$)")
_QUOTATION = re.compile(r"[\"“”„‟«»‹›＂〝〞″]")
_SAID = {discord.MessageType.default, discord.MessageType.reply}


def is_from_person(message: discord.Message) -> bool:
    """Whether a person said it: no bot, no webhook, not Discord itself."""
    author = message.author
    if author.bot or author.system or message.webhook_id is not None:
        return False
    return message.type in _SAID


def message_text(message: discord.Message, bot_id: int) -> str:
    """Return what the person wrote, with names in the place of ids; stickers and polls in brackets."""
    parts = [resolve_mentions(message, message.content, bot_id)]
    parts += [f"(sticker {clean_name(each.name)})" for each in message.stickers]
    if message.poll is not None:
        parts.append(f"(poll: {message.poll.question})")
    return "\n".join(part for part in parts if part)


def resolve_mentions(message: discord.Message, content: str, bot_id: int) -> str:
    """Return a text with names in the place of ids, and without the bot's own mention."""
    guild = message.guild
    roles = {role.id: role.name for role in message.role_mentions}
    mine = {role.id for role in message.role_mentions if belongs_to(role, bot_id)}
    people = {person.id: person.display_name for person in message.mentions}

    def name(found: re.Match[str]) -> str:
        kind, number = found[1], int(found[2])
        if kind == "#":
            channel = None if guild is None else guild.get_channel_or_thread(number)
            return "#unknown" if channel is None else f"#{channel.name}"
        if kind == "@&":
            return "" if number in mine else f"@{roles.get(number, 'unknown')}"
        if number == bot_id:
            return ""
        member = None if guild is None else guild.get_member(number)
        return f"@{people.get(number) or (member.display_name if member else 'unknown')}"

    return _EMOJI.sub(r"\1", _MENTION.sub(name, content)).strip()


def belongs_to(role: discord.Role, bot_id: int) -> bool:
    """Whether a role is the one that Discord made for the bot itself."""
    return role.is_bot_managed() and role.tags is not None and role.tags.bot_id == bot_id


def mentions_bot(message: discord.Message, bot_id: int) -> bool:
    """Whether it mentions the bot, by Discord's word and not by how it looks."""
    if any(person.id == bot_id for person in message.mentions):
        return True
    return any(belongs_to(role, bot_id) for role in message.role_mentions)


def command_name(text: str) -> str | None:
    """Return the name of the command that a text is; None where it is none."""
    found = _COMMAND.match(text)
    return None if found is None else found[1]


def replied_message(message: discord.Message) -> discord.Message | None:
    """Return the message that it replies to, as far as Discord sent it along."""
    reference = message.reference
    if reference is None or reference.type is not discord.MessageReferenceType.reply:
        return None
    found = reference.resolved or reference.cached_message
    return found if isinstance(found, discord.Message) else None


def clean_name(name: str, most: int = _LONGEST_NAME) -> str:
    """Return a name that others chose, on one line, without signs that steer a terminal or a text.

    Args:
        name: The name.
        most: The most characters that are kept.
    """
    shown = " ".join("".join(each if each.isprintable() else " " for each in name).split())
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def voice_transcripts(taken: Iterable[Attachment]) -> str:
    """Return what was said in voice messages, as far as it was understood."""
    return "\n".join(each.text for each in taken if each.kind == "voice" and each.text)


def message_quote(
    message: discord.Message,
    bot_id: int,
    last_answer: int | None,
    taken: Sequence[Attachment] = (),
) -> str | None:
    """Return what it quotes of others: what it replies to, and what it forwards.

    Args:
        message: The message.
        bot_id: The bot.
        last_answer: The bot's last message there: who replies to that need not be reminded of it.
        taken: What became of its files, in the order of ``attachments``.
    """
    quotes: list[str] = []
    target = replied_message(message)
    if target is not None and target.id != last_answer:
        mine = target.author.id == bot_id
        whose = "your message" if mine else _person(target.author)
        text = resolve_mentions(target, target.content, 0 if mine else bot_id)
        if text:
            quotes.append(f"In reply to {whose}:\n{text}")
    rest = split_attachments(message, taken)[1]
    for snapshot in message.message_snapshots:
        theirs, rest = rest[: len(snapshot.attachments)], rest[len(snapshot.attachments) :]
        words = (resolve_mentions(message, snapshot.content, bot_id), voice_transcripts(theirs))
        text = "\n".join(each for each in words if each)
        if text:
            quotes.append(f"Forwarded from {_origin(message)}:\n{text}")
    return "\n\n".join(quotes)[:MAX_QUOTE_LENGTH] or None


def all_attachments(message: discord.Message) -> Iterable[discord.Attachment]:
    """Return its files, and those of what it forwards."""
    yield from message.attachments
    for snapshot in message.message_snapshots:
        yield from snapshot.attachments


def split_attachments(
    message: discord.Message, taken: Sequence[Attachment]
) -> tuple[Sequence[Attachment], Sequence[Attachment]]:
    """Return what became of its own files, and of those of what it forwards.

    An edit may have taken files away meanwhile, though never those of what it forwards.
    """
    forwarded = sum(len(each.attachments) for each in message.message_snapshots)
    own = max(0, len(taken) - forwarded)
    return taken[:own], taken[own:]


def edit_id(message_id: int, at: datetime) -> str:
    """Return the id of an edit: the same for the same edit."""
    return f"{message_id}.e{round(at.timestamp() * 1000)}"


def _origin(message: discord.Message) -> str:
    """Return where a forwarded message stood; Discord does not say whose it is."""
    reference, guild = message.reference, message.guild
    if reference is not None and guild is not None and reference.guild_id == guild.id:
        channel = guild.get_channel_or_thread(reference.channel_id)
        if channel is not None:
            return f"#{clean_name(channel.name)}"
    return "another conversation"


def _person(person: discord.abc.User) -> str:
    """Return who somebody is; the bot's own words never come in quotation marks and with an id."""
    name = _QUOTATION.sub("", clean_name(person.display_name))
    return f'"{name}" ({person.id})'


@dataclass(frozen=True, slots=True)
class ChatLocation:
    """A direct conversation, a channel of a server, or a thread.

    Attributes:
        address: The conversation.
        channel_id: Discord's id of what is written to: the thread's where it is one.
        guild_id: The server's; None in direct conversations.
        parent_id: The channel of a thread.
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
        """The ids by which it may be allowed: its own, its parent's, its server's."""
        ids = (self.channel_id, self.parent_id, self.guild_id)
        return tuple(str(each) for each in ids if each is not None)

    def always_answered(self, groups: GroupPolicy) -> bool:
        """Whether every message there is answered."""
        platform = self.address.channel.partition("-")[0]
        return any(f"{platform}:{each}" in groups.always_answer for each in self.access_ids)


def chat_location(name: str, channel: object) -> ChatLocation | None:
    """Return the place that a channel of discord.py is.

    Args:
        name: The name of our channel.
        channel: Any of discord.py's channels.

    Returns:
        None for what the bot has no part in (group conversations, categories), and for a channel of
        a server that discord.py does not know, which may be a thread.
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
    """Return Discord's id of the channel or thread that an address means."""
    return int(address.topic or address.chat_id)


_UNKNOWN = "application/octet-stream"
_TRIES = 3
_SECONDS = 120.0
_CHUNK = 65_536

Kind = Literal["image", "voice", "audio", "video", "document"]


def remote_file(attachment: discord.Attachment) -> RemoteFile:
    """Return an attachment as a file that is not fetched yet."""
    mime = (attachment.content_type or _UNKNOWN).partition(";")[0].strip() or _UNKNOWN

    async def fetch(most: int) -> bytes:
        return await _fetch(attachment.url, most)

    return RemoteFile(_kind(attachment, mime), attachment.filename, mime, attachment.size, fetch)


def _kind(attachment: discord.Attachment, mime: str) -> Kind:
    if attachment.is_voice_message():
        return "voice"
    match mime.partition("/")[0]:
        case "image":
            return "image"
        case "audio":
            return "audio"
        case "video":
            return "video"
    return "document"


async def _fetch(url: str, most: int) -> bytes:
    tries = 0
    while True:
        try:
            return await _read(url, most)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            tries += 1
            if tries == _TRIES:
                # The error may hold the address, and whoever has that may read the file.
                name = type(error).__name__
                raise FileUnavailable(f"Discord did not hand it over ({name})") from None
        await anyio.sleep(tries)


async def _read(url: str, most: int) -> bytes:
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as response:
        if response.status in {403, 404, 410}:
            raise FileUnavailable("it is not on Discord any more")
        response.raise_for_status()
        content = bytearray()
        async for chunk in response.content.iter_chunked(_CHUNK):
            content += chunk
            if len(content) > most:
                raise FileUnavailable(f"it is larger than the {most} bytes that are allowed")
        return bytes(content)
