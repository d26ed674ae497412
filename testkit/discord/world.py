"""The state of the Discord test server: users, guilds, channels, threads, DMs, permissions."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from testkit.discord.records import DiscordMessage, DiscordRecords

TEXT, DM, PUBLIC_THREAD = 0, 1, 11
"""Channel types."""
VIEW_CHANNEL, SEND_MESSAGES, READ_MESSAGE_HISTORY = 1 << 10, 1 << 11, 1 << 16
"""Permissions."""

EPOCH_MS = 1_420_070_400_000


@dataclass(slots=True)
class Snowflakes:
    """Generator of ids that grow with time, like Discord's."""

    _last: int = 0

    def next(self) -> int:
        now = (int(time.time() * 1000) - EPOCH_MS) << 22
        self._last = max(self._last + 1, now)
        return self._last


@dataclass(slots=True)
class DiscordUser:
    """A user."""

    id: int
    name: str
    display_name: str | None = None
    bot: bool = False
    locale: str = field(default="en-US", kw_only=True)
    blocks: bool = False


@dataclass(slots=True)
class Guild:
    """A guild."""

    id: int
    name: str
    owner_id: int
    members: list[int] = field(default_factory=list)


@dataclass(slots=True)
class ChannelState:
    """A channel, thread or direct message channel."""

    id: int
    kind: int
    name: str = ""
    guild_id: int | None = None
    parent_id: int | None = None
    owner_id: int | None = None
    recipient_id: int | None = None
    denied: int = 0


@dataclass(slots=True)
class DiscordWorld:
    """All users, guilds and channels."""

    bot: DiscordUser
    records: DiscordRecords
    ids: Snowflakes
    users: dict[int, DiscordUser] = field(default_factory=dict)
    guilds: dict[int, Guild] = field(default_factory=dict)
    channels: dict[int, ChannelState] = field(default_factory=dict)
    portal_intents: int = 0

    @classmethod
    def create(cls, bot_name: str, portal_intents: int) -> DiscordWorld:
        ids = Snowflakes()
        bot = DiscordUser(ids.next(), bot_name, bot=True)
        return cls(bot, DiscordRecords(), ids, {bot.id: bot}, portal_intents=portal_intents)

    def has_bot(self, guild: Guild) -> bool:
        return self.bot.id in guild.members

    def visible(self, channel: ChannelState) -> bool:
        if channel.guild_id is None:
            return channel.recipient_id is not None
        place = self.parent(channel)
        return self.has_bot(self.guilds[channel.guild_id]) and not place.denied & VIEW_CHANNEL

    def parent(self, channel: ChannelState) -> ChannelState:
        """Return the channel whose permissions apply: a thread's parent, else itself."""
        return self.channels[channel.parent_id] if channel.parent_id else channel

    def direct(self, user_id: int) -> ChannelState:
        """Return the bot's DM channel with a user, opening it if needed."""
        for channel in self.channels.values():
            if channel.recipient_id == user_id:
                return channel
        channel = ChannelState(self.ids.next(), DM, recipient_id=user_id)
        self.channels[channel.id] = channel
        return channel

    def visible_messages(self, channel_id: int) -> list[DiscordMessage]:
        """Return the messages of a channel's history, oldest first."""
        return [each for each in self.records.messages_in(channel_id) if not each.ephemeral]

    def last_message(self, channel_id: int) -> int | None:
        standing = self.visible_messages(channel_id)
        return standing[-1].id if standing else None
