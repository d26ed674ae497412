"""Where something happened, as the bus and whoever asks for permission know it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import discord

from bot.bus import Address
from channels.base import Groups


@dataclass(frozen=True, slots=True)
class Place:
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
    def ids(self) -> tuple[str, ...]:
        """The ids by which it may be allowed: its own, its parent's, its server's."""
        ids = (self.channel_id, self.parent_id, self.guild_id)
        return tuple(str(each) for each in ids if each is not None)

    def always_answered(self, groups: Groups) -> bool:
        """Whether every message there is answered."""
        platform = self.address.channel.partition("-")[0]
        return any(f"{platform}:{each}" in groups.always for each in self.ids)


def place_of(name: str, channel: object) -> Place | None:
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
        return Place(address, channel.id, channel.guild.id, channel.parent_id)
    if isinstance(channel, discord.DMChannel):
        return Place(Address(name, str(channel.id)), channel.id)
    if isinstance(channel, discord.PartialMessageable):
        if channel.guild_id is not None:
            return None
        return Place(Address(name, str(channel.id)), channel.id)
    if isinstance(channel, discord.TextChannel | discord.VoiceChannel | discord.StageChannel):
        return Place(Address(name, str(channel.id)), channel.id, channel.guild.id)
    return None


def written_to(address: Address) -> int:
    """Return Discord's id of the channel or thread that an address means."""
    return int(address.topic or address.chat_id)
