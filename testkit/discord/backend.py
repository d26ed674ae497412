"""Change the Discord test server's state, and dispatch events to the gateway and records."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from testkit.discord import gateway as intents
from testkit.discord.faults import DiscordFaults
from testkit.discord.gateway import Gateway
from testkit.discord.messages import MessagePayload, write
from testkit.discord.records import DiscordMessage
from testkit.discord.serialization import (
    bare_member,
    channel_json,
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
    faults: DiscordFaults
    base: str = ""
    nonce_window: float = 180.0
    interaction_deadline: float = 3.0
    interaction_life: float = 900.0

    def json(self, message: DiscordMessage) -> dict[str, Any]:
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
        bare = shape if readable(self.world, message) else without_content(shape)
        self.gateway.dispatch(event, shape, intent=_intent(channel), bare=bare)

    def delete(self, message: DiscordMessage) -> None:
        message.deleted = time.monotonic()
        self.world.records.touch()
        channel = self.world.channels[message.channel_id]
        if message.ephemeral or not self.world.visible(channel):
            return
        gone = {"id": str(message.id), "channel_id": str(channel.id)}
        if channel.guild_id is not None:
            gone["guild_id"] = str(channel.guild_id)
        self.gateway.dispatch("MESSAGE_DELETE", gone, intent=_intent(channel))

    def tell_channel(self, event: str, channel: ChannelState) -> None:
        """Send CHANNEL_CREATE or CHANNEL_UPDATE."""
        self.gateway.dispatch(event, channel_json(self.world, channel), intent=intents.GUILDS)

    def open_thread(self, parent: ChannelState, name: str, owner: int) -> ChannelState:
        """Open a public thread, with Discord's system message."""
        number = self.world.ids.next()
        thread = ChannelState(number, PUBLIC_THREAD, name, parent.guild_id, parent.id, owner)
        self.world.channels[thread.id] = thread
        if self.world.visible(thread):
            shape = channel_json(self.world, thread) | {"newly_created": True}
            self.gateway.dispatch("THREAD_CREATE", shape, intent=intents.GUILDS)
        added = write(self.world, parent, owner, MessagePayload({"content": name}), kind=18)
        pointer = {"channel_id": str(thread.id), "guild_id": str(thread.guild_id)}
        added.extra = {"message_reference": pointer}
        self.announce("MESSAGE_CREATE", added)
        return thread


def _intent(channel: ChannelState) -> int:
    return intents.DIRECT_MESSAGES if channel.guild_id is None else intents.GUILD_MESSAGES
