"""Read a Discord message: its own text, quotes, attachments and chat location.

Rule 1: ``text`` holds only what the sender wrote; what others wrote is in ``quote``.
Rule 2: mentions of the bot are removed; other mentions become names.
Rule 3: a quote names its author in a form that no display name can imitate.
Rule 4: a name in ``text`` is one word, since others chose it: none of its words is the sender's.
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
from bot.core.reasons import Reason
from channels.base import GroupPolicy
from channels.text import as_one_word

MAX_QUOTE_LENGTH = 2000

_LONGEST_NAME = 64

_MENTION = re.compile(r"<(@!?|@&|#)(\d{15,20})>")
_EMOJI = re.compile(r"<a?(:\w{2,32}:)\d{15,20}>")
_COMMAND = re.compile(r"/([a-z][a-z0-9_-]{0,31})(?:\s|$)")
_QUOTATION = re.compile(r"[\"“”„‟«»‹›＂〝〞″]")
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
    parts += [f"(sticker_{as_one_word(each.name)})" for each in message.stickers]
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
            return "#unknown" if channel is None else f"#{as_one_word(channel.name)}"
        if kind == "@&":
            return "" if number in mine else f"@{as_one_word(roles.get(number, 'unknown'))}"
        if number == bot_id:
            return ""
        member = None if guild is None else guild.get_member(number)
        person = people.get(number) or (member.display_name if member else "unknown")
        return f"@{as_one_word(person)}"

    return _EMOJI.sub(r"\1", _MENTION.sub(name, content)).strip()


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


def voice_transcripts(taken: Iterable[Attachment]) -> str:
    """Return the transcripts of voice messages."""
    return "\n".join(each.text for each in taken if each.kind == "voice" and each.text)


def message_quote(
    message: discord.Message,
    bot_id: int,
    last_answer: int | None,
    taken: Sequence[Attachment] = (),
) -> str | None:
    """Return the messages that this one replies to or forwards, as a quote; None if there are none."""
    quotes: list[str] = []
    target = replied_message(message)
    if target is not None and target.id != last_answer:
        mine = target.author.id == bot_id
        whose = "your message" if mine else _person(target.author)
        text = resolve_mentions(target, target.content, 0 if mine else bot_id)
        if text or any(all_attachments(target)):
            quotes.append(f"In reply to {whose}:\n{text or '(a file)'}")
    rest = split_attachments(message, taken)[1]
    for snapshot in message.message_snapshots:
        theirs, rest = rest[: len(snapshot.attachments)], rest[len(snapshot.attachments) :]
        words = (resolve_mentions(message, snapshot.content, bot_id), voice_transcripts(theirs))
        text = "\n".join(each for each in words if each)
        if text:
            quotes.append(f"Forwarded from {_origin(message)}:\n{text}")
    return "\n\n".join(quotes)[:MAX_QUOTE_LENGTH] or None


def all_attachments(message: discord.Message) -> Iterable[discord.Attachment]:
    """Yield the message's attachments, then those of the messages it forwards."""
    yield from message.attachments
    for snapshot in message.message_snapshots:
        yield from snapshot.attachments


def split_attachments(
    message: discord.Message, taken: Sequence[Attachment]
) -> tuple[Sequence[Attachment], Sequence[Attachment]]:
    """Split stored attachments into the message's own and those of the messages it forwards.

    An edit may have removed own attachments meanwhile, but never forwarded ones.
    """
    forwarded = sum(len(each.attachments) for each in message.message_snapshots)
    own = max(0, len(taken) - forwarded)
    return taken[:own], taken[own:]


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


def _person(person: discord.abc.User) -> str:
    """Return a display name in quotation marks and the id; the bot never writes in this form."""
    name = _QUOTATION.sub("", clean_name(person.display_name))
    return f'"{name}" ({person.id})'


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

    def always_answered(self, groups: GroupPolicy) -> bool:
        """Return whether every message there is answered."""
        platform = self.address.channel.partition("-")[0]
        return any(f"{platform}:{each}" in groups.always_answer for each in self.access_ids)


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


_UNKNOWN = "application/octet-stream"
_TRIES = 3
_SECONDS = 120.0
_CHUNK = 65_536

Kind = Literal["image", "voice", "audio", "video", "document"]


def remote_file(attachment: discord.Attachment, session: str, sender: str) -> RemoteFile:
    """Return an attachment as a file that is not fetched yet."""
    mime = (attachment.content_type or _UNKNOWN).partition(";")[0].strip() or _UNKNOWN

    async def fetch(most: int) -> bytes:
        return await _fetch(attachment.url, most)

    return RemoteFile(
        _kind(attachment, mime),
        attachment.filename,
        mime,
        attachment.size,
        fetch,
        session=session,
        sender=sender,
    )


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
