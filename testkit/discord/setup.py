"""Set up users, guilds, channels and permissions on the Discord test server."""

from __future__ import annotations

from collections.abc import Iterable

from testkit.discord.backend import DiscordBackend
from testkit.discord.gateway import Shard, shard_receives_guild
from testkit.discord.records import DiscordRecords
from testkit.discord.world import (
    READ_MESSAGE_HISTORY,
    SEND_MESSAGES,
    TEXT,
    VIEW_CHANNEL,
    ChannelState,
    DiscordUser,
    DiscordWorld,
    Guild,
)


class DiscordSetup:
    """Creates users, guilds and channels; ids are integers."""

    def __init__(self, hub: DiscordBackend) -> None:
        self.hub = hub

    @property
    def world(self) -> DiscordWorld:
        """Users, guilds and channels."""
        return self.hub.world

    @property
    def records(self) -> DiscordRecords:
        """The server's records."""
        return self.hub.world.records

    @property
    def bot_id(self) -> int:
        """The bot's id, also the application's."""
        return self.world.bot.id

    def user(
        self, name: str, *, shown: str | None = None, bot: bool = False, locale: str = "en-US"
    ) -> int:
        """Add a user; return the id."""
        user = DiscordUser(self.world.ids.next(), name, shown, bot, locale=locale)
        self.world.users[user.id] = user
        return user.id

    def guild(
        self,
        name: str,
        members: Iterable[int] = (),
        *,
        joined: bool = True,
        shard: Shard | None = None,
    ) -> int:
        """Add a guild, by default with the bot; return its id."""
        people = list(members)
        number = self.world.ids.next()
        while shard is not None and not shard_receives_guild(number, shard):
            number = self.world.ids.next()
        self.world.guilds[number] = Guild(number, name, (people or [self.bot_id])[0], people)
        if joined:
            self.join(number)
        return number

    def join(self, guild: int) -> None:
        """Add the bot to a guild (GUILD_CREATE)."""
        place = self.world.guilds[guild]
        place.members.append(self.bot_id)
        self.hub.gateway.tell_joined(place)

    def channel(self, guild: int, name: str) -> int:
        """Add a text channel; return its id."""
        channel = ChannelState(self.world.ids.next(), TEXT, name, guild)
        self.world.channels[channel.id] = channel
        if self.world.visible(channel):
            self.hub.tell_channel("CHANNEL_CREATE", channel)
        return channel.id

    def direct(self, user: int) -> int:
        """Return the id of the bot's DM channel with a user."""
        return self.hub.direct(user).id

    def thread(self, channel: int, name: str, *, user: int | None = None) -> int:
        """Open a public thread, as a user or the guild's owner; return its id."""
        parent = self.world.channels[channel]
        owner = user or self.world.guilds[parent.guild_id or 0].owner_id
        return self.hub.open_thread(parent, name, owner).id

    def deny(
        self, channel: int, *, view: bool = False, send: bool = False, history: bool = False
    ) -> None:
        """Set which permissions the bot lacks in a channel; without arguments it has all."""
        place = self.world.channels[channel]
        place.denied = (VIEW_CHANNEL if view else 0) | (SEND_MESSAGES if send else 0)
        place.denied |= READ_MESSAGE_HISTORY if history else 0
        self.hub.tell_channel("CHANNEL_UPDATE", place)

    def block(self, user: int, *, blocked: bool = True) -> None:
        """Let a user block the bot's direct messages."""
        self.world.users[user].blocks = blocked
