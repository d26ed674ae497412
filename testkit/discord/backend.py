"""Change the Discord test server's state, and dispatch events to the gateway and records."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from testkit.discord import gateway as intents
from testkit.discord.gateway import Gateway
from testkit.discord.messages import MessagePayload, write
from testkit.discord.rate_limits import RestFaults
from testkit.discord.records import DiscordMessage
from testkit.discord.serialization import (
    bare_member,
    channel_json,
    member_json,
    message_json,
    readable,
    without_content,
)
from testkit.discord.world import PUBLIC_THREAD, ChannelState, DiscordWorld


@dataclass(slots=True)
class DiscordBackend:
    """The state and parts of the server, and actions that dispatch gateway events."""

    world: DiscordWorld
    gateway: Gateway
    faults: RestFaults = field(default_factory=RestFaults)
    base: str = ""
    nonce_window: float = 180.0
    interaction_deadline: float = 3.0
    interaction_life: float = 900.0

    def json(self, message: DiscordMessage) -> dict[str, Any]:
        """Return a message object without its nonce, as in a channel's history."""
        return message_json(self.world, self.base, message)

    def announce(self, event: str, message: DiscordMessage, *, nonce: bool = False) -> None:
        """Send MESSAGE_CREATE or MESSAGE_UPDATE; ephemeral messages send none."""
        channel = self.world.channels[message.channel_id]
        if message.ephemeral or not self.world.visible(channel):
            return
        shape = self.json(message)
        if nonce and message.nonce is not None:
            shape["nonce"] = message.nonce
        if channel.guild_id is not None:
            shape["guild_id"] = str(channel.guild_id)
            shape["member"] = bare_member()
        self.gateway.dispatch(
            event,
            shape,
            intent=self._either(channel, intents.GUILD_MESSAGES, intents.DIRECT_MESSAGES),
            bare=without_content(shape),
            content=readable(self.world, message),
        )

    def delete(self, message: DiscordMessage) -> None:
        """Delete a message and send MESSAGE_DELETE."""
        message.deleted = time.monotonic()
        self.world.records.touch()
        channel = self.world.channels[message.channel_id]
        if message.ephemeral or not self.world.visible(channel):
            return
        gone = self._place(channel) | {"id": str(message.id)}
        intent = self._either(channel, intents.GUILD_MESSAGES, intents.DIRECT_MESSAGES)
        self.gateway.dispatch("MESSAGE_DELETE", gone, intent=intent)

    def react(self, message: DiscordMessage, user: int, emoji: str, *, remove: bool) -> None:
        """Tell of a reaction that a user adds or removes."""
        channel = self.world.channels[message.channel_id]
        told = self._place(channel) | {
            "user_id": str(user),
            "message_id": str(message.id),
            "emoji": {"id": None, "name": emoji},
            "burst": False,
            "type": 0,
        }
        if not remove:
            told["message_author_id"] = str(message.author_id)
            if channel.guild_id is not None:
                told["member"] = member_json(self.world.users[user])
        intent = self._either(channel, intents.GUILD_REACTIONS, intents.DIRECT_REACTIONS)
        event = "MESSAGE_REACTION_REMOVE" if remove else "MESSAGE_REACTION_ADD"
        self.gateway.dispatch(event, told, intent=intent)

    def direct(self, user_id: int) -> ChannelState:
        """Return the bot's DM channel with a user, opening it if needed."""
        return self.world.direct(user_id)

    def tell_channel(self, event: str, channel: ChannelState) -> None:
        """Send CHANNEL_CREATE, CHANNEL_UPDATE, THREAD_CREATE or THREAD_UPDATE."""
        if channel.guild_id is None:
            return
        shape = channel_json(self.world, channel)
        if event == "THREAD_CREATE":
            shape["newly_created"] = True
        if event.startswith("CHANNEL") or self.world.visible(channel):
            self.gateway.dispatch(event, shape, intent=intents.GUILDS)

    def open_thread(self, parent: ChannelState, name: str, owner: int) -> ChannelState:
        """Open a public thread, with Discord's system message."""
        number = self.world.ids.next()
        thread = ChannelState(number, PUBLIC_THREAD, name, parent.guild_id, parent.id, owner)
        self.world.channels[thread.id] = thread
        self.tell_channel("THREAD_CREATE", thread)
        added = write(self.world, parent, owner, MessagePayload({"content": name}), kind=18)
        pointer = {"channel_id": str(thread.id), "guild_id": str(thread.guild_id)}
        added.extra = {"message_reference": pointer}
        self.announce("MESSAGE_CREATE", added)
        return thread

    @staticmethod
    def _place(channel: ChannelState) -> dict[str, Any]:
        place = {"channel_id": str(channel.id)}
        return place if channel.guild_id is None else place | {"guild_id": str(channel.guild_id)}

    @staticmethod
    def _either(channel: ChannelState, guild: int, direct: int) -> int:
        return direct if channel.guild_id is None else guild
