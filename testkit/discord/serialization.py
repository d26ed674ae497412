"""Build the JSON objects of Discord's API v10, with the fields that clients read. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from testkit.discord.records import DiscordMessage, DiscordUpload
from testkit.discord.world import (
    DM,
    EPOCH_MS,
    PUBLIC_THREAD,
    ChannelState,
    DiscordUser,
    DiscordWorld,
    Guild,
)

ALL_PERMISSIONS = (1 << 50) - 1
SLASH_ANSWER = 20
_JOINED = "2024-01-01T00:00:00.000000+00:00"
_NULL_IN_GUILDS = (
    "icon splash banner description afk_channel_id system_channel_id rules_channel_id "
    "vanity_url_code public_updates_channel_id".split()
)
_EMPTY_IN_GUILDS = (
    "features emojis stickers presences voice_states stage_instances guild_scheduled_events "
    "soundboard_sounds".split()
)
_ZERO_IN_GUILDS = (
    "verification_level default_message_notifications explicit_content_filter nsfw_level "
    "system_channel_flags".split()
)
_LIMITED_FLAGS = {1 << 8: 1 << 13, 1 << 1: 1 << 15, 1 << 15: 1 << 19}


def moment(snowflake: int, later: float = 0.0) -> str:
    """Return the ISO 8601 time of an id, plus ``later`` seconds."""
    return datetime.fromtimestamp(((snowflake >> 22) + EPOCH_MS) / 1000 + later, UTC).isoformat()


def user_json(user: DiscordUser) -> dict[str, Any]:
    return {
        "id": str(user.id),
        "username": user.name,
        "discriminator": "0",
        "global_name": user.display_name,
        "avatar": None,
        "bot": user.bot,
        "public_flags": 0,
    }


def member_json(user: DiscordUser) -> dict[str, Any]:
    return bare_member() | {"user": user_json(user)}


def bare_member() -> dict[str, Any]:
    """Return a guild member object without its user, as in messages."""
    member: dict[str, Any] = {"nick": None, "roles": [], "joined_at": _JOINED, "flags": 0}
    member |= {"deaf": False, "mute": False, "pending": False}
    return member | {"communication_disabled_until": None}


def application_flags(portal_intents: int) -> int:
    """Return an application's flags for its portal's intents, below one hundred guilds."""
    return sum(flag for intent, flag in _LIMITED_FLAGS.items() if portal_intents & intent)


def application_json(world: DiscordWorld) -> dict[str, Any]:
    owner = next((user for user in world.users.values() if not user.bot), world.bot)
    return {
        "id": str(world.bot.id),
        "name": world.bot.name,
        "icon": None,
        "description": "",
        "bot_public": False,
        "bot_require_code_grant": False,
        "verify_key": "0" * 64,
        "owner": user_json(owner),
        "flags": application_flags(world.portal_intents),
        "bot": user_json(world.bot),
    }


def channel_json(world: DiscordWorld, channel: ChannelState) -> dict[str, Any]:
    """Return a channel object of any kind; a thread's has the bot's membership."""
    last = world.last_message(channel.id)
    shape: dict[str, Any] = {
        "id": str(channel.id),
        "type": channel.kind,
        "last_message_id": None if last is None else str(last),
        "flags": 0,
    }
    if channel.kind == DM:
        return shape | {"recipients": [user_json(world.users[channel.recipient_id or 0])]}
    shape |= {"name": channel.name, "guild_id": str(channel.guild_id), "rate_limit_per_user": 0}
    if channel.kind == PUBLIC_THREAD:
        return shape | _thread(world, channel)
    denied = {"id": str(world.bot.id), "type": 1, "allow": "0", "deny": str(channel.denied)}
    return shape | {
        "position": 0,
        "permission_overwrites": [denied] if channel.denied else [],
        "nsfw": False,
        "parent_id": None,
        "topic": None,
        "default_auto_archive_duration": 1440,
    }


def _thread(world: DiscordWorld, thread: ChannelState) -> dict[str, Any]:
    count = len(world.visible_messages(thread.id))
    return {
        "parent_id": str(thread.parent_id),
        "owner_id": str(thread.owner_id),
        "message_count": count,
        "total_message_sent": count,
        "member_count": 2,
        "thread_metadata": {
            "archived": False,
            "auto_archive_duration": 1440,
            "archive_timestamp": moment(thread.id),
            "locked": False,
            "create_timestamp": moment(thread.id),
        },
    }


def guild_json(world: DiscordWorld, guild: Guild, *, everybody: bool = True) -> dict[str, Any]:
    """Return a guild object as in GUILD_CREATE: channels, threads, members, default role."""
    inside = [c for c in world.channels.values() if c.guild_id == guild.id and world.visible(c)]
    role = {"id": str(guild.id), "name": "@everyone", "color": 0, "hoist": False, "position": 0}
    role |= {"permissions": str(ALL_PERMISSIONS), "managed": False, "mentionable": False}
    role |= {"flags": 0, "colors": {"primary_color": 0}}
    users = [world.users[m] for m in guild.members if everybody or m == world.bot.id]
    shape: dict[str, Any] = dict.fromkeys(_NULL_IN_GUILDS)
    shape |= {name: [] for name in _EMPTY_IN_GUILDS} | dict.fromkeys(_ZERO_IN_GUILDS, 0)
    return shape | {
        "id": str(guild.id),
        "name": guild.name,
        "owner_id": str(guild.owner_id),
        "afk_timeout": 300,
        "preferred_locale": "en-US",
        "roles": [role],
        "joined_at": _JOINED,
        "large": False,
        "unavailable": False,
        "member_count": len(guild.members),
        "members": [member_json(user) for user in users],
        "channels": [channel_json(world, c) for c in inside if c.kind != PUBLIC_THREAD],
        "threads": [channel_json(world, c) for c in inside if c.kind == PUBLIC_THREAD],
    }


def attachment_json(base: str, channel_id: int, upload: DiscordUpload) -> dict[str, Any]:
    """Return an attachment object with a URL on this server."""
    address = f"{base}/attachments/{channel_id}/{upload.id}/{upload.name}"
    shape = {
        "id": str(upload.id),
        "filename": upload.name,
        "size": len(upload.data),
        "url": address,
        "proxy_url": address,
        "content_type": upload.mime,
    }
    if upload.seconds is not None:
        shape |= {"duration_secs": upload.seconds, "waveform": "AAAA"}
    return shape


def message_json(
    world: DiscordWorld, base: str, message: DiscordMessage, *, deep: bool = True
) -> dict[str, Any]:
    channel = world.channels[message.channel_id]
    edited = None if message.edited is None else message.edited - message.created
    mentioned = [world.users[user] for user in message.mentions if user in world.users]
    shape: dict[str, Any] = {
        "id": str(message.id),
        "channel_id": str(message.channel_id),
        "author": user_json(world.users[message.author_id]),
        "content": message.content,
        "timestamp": moment(message.id),
        "edited_timestamp": None if edited is None else moment(message.id, edited),
        "tts": False,
        "mention_everyone": message.mention_everyone,
        "mentions": [user_json(user) for user in mentioned],
        "mention_roles": [str(role) for role in message.mention_roles],
        "attachments": [attachment_json(base, channel.id, each) for each in message.uploads],
        "embeds": list(message.embeds),
        "components": list(message.components),
        "pinned": False,
        "type": message.kind,
        "flags": message.flags,
    }
    if message.interaction_id is not None:
        shape |= _origin(world, message)
    if message.reference is not None:
        shape |= _reference(world, base, message, deep)
    return shape | message.extra


def without_content(shape: dict[str, Any]) -> dict[str, Any]:
    """Return a message as sent to bots without the message content intent."""
    bare = shape | {"content": "", "attachments": [], "embeds": [], "components": []}
    if isinstance(bare.get("referenced_message"), dict):
        bare["referenced_message"] = without_content(bare["referenced_message"])
    return bare


def readable(world: DiscordWorld, message: DiscordMessage) -> bool:
    """Return whether content needs no intent: in DMs, by the bot, or mentioning it."""
    direct = world.channels[message.channel_id].guild_id is None
    return direct or message.author_id == world.bot.id or world.bot.id in message.mentions


def _origin(world: DiscordWorld, message: DiscordMessage) -> dict[str, Any]:
    interaction = world.records.interactions[message.interaction_id or 0]
    user = user_json(world.users[interaction.user_id])
    meta: dict[str, Any] = {"id": str(interaction.id), "type": interaction.kind, "user": user}
    meta["authorizing_integration_owners"] = {}
    bot = str(world.bot.id)
    return {"webhook_id": bot, "application_id": bot, "interaction_metadata": meta}


def _reference(
    world: DiscordWorld, base: str, message: DiscordMessage, deep: bool
) -> dict[str, Any]:
    target = world.records.messages.get(message.reference or 0)
    place = world.channels[target.channel_id if target else message.channel_id]
    pointer = {"type": 0, "message_id": str(message.reference), "channel_id": str(place.id)}
    if place.guild_id is not None:
        pointer["guild_id"] = str(place.guild_id)
    shape: dict[str, Any] = {"message_reference": pointer}
    if deep and target is not None:
        standing = target.deleted is None
        whole = message_json(world, base, target, deep=False) if standing else None
        shape["referenced_message"] = whole
    return shape
