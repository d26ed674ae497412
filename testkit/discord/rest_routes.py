"""REST routes of the Discord test server: users, channels, messages, threads, commands."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from testkit.discord.backend import DiscordBackend
from testkit.discord.messages import DiscordApiError, check_place, invalid, rewrite, write
from testkit.discord.records import EPHEMERAL, DiscordMessage
from testkit.discord.rest_router import NO_CONTENT, RestRequest, RestRouter
from testkit.discord.serialization import (
    application_json,
    channel_json,
    guild_json,
    member_json,
    readable,
    user_json,
    without_content,
)
from testkit.discord.validation import fault_in_command, fault_in_overwrite
from testkit.discord.world import READ_MESSAGE_HISTORY, ChannelState, Guild

_MESSAGES = "/channels/{channel}/messages"
_MESSAGE = _MESSAGES + "/{message}"
_MESSAGE_CONTENT = 1 << 15
_MAX_COMMANDS = 100


class RestRoutes:
    """Handlers of the REST API."""

    def __init__(self, hub: DiscordBackend, door: RestRouter) -> None:
        self.hub, self.world, self.door = hub, hub.world, door

    def register(self, router: web.UrlDispatcher) -> None:
        """Register all routes."""
        plain: list[tuple[str, str, Any]] = [
            ("GET", "/gateway", self._gateway),
            ("GET", "/gateway/bot", self._gateway),
            ("GET", "/users/@me", self._me),
            ("GET", "/users/{user}", self._user),
            ("POST", "/users/@me/channels", self._open_direct),
            ("GET", "/applications/@me", self._application),
            ("GET", "/oauth2/applications/@me", self._application),
            ("GET", "/guilds/{guild}", self._guild),
            ("GET", "/guilds/{guild}/channels", self._guild_channels),
            ("GET", "/guilds/{guild}/members/{user}", self._member),
            ("GET", "/guilds/{guild}/threads/active", self._active_threads),
            ("GET", "/channels/{channel}", self._channel),
            ("PATCH", "/channels/{channel}", self._change_channel),
            ("GET", _MESSAGES, self._history),
            ("GET", _MESSAGE, self._one),
            ("POST", "/channels/{channel}/threads", self._open_thread),
            ("POST", _MESSAGE + "/threads", self._open_thread),
            ("PUT", "/channels/{channel}/thread-members/@me", self._nothing),
            ("DELETE", "/channels/{channel}/thread-members/@me", self._nothing),
        ]
        for base in ("", "/guilds/{guild}"):
            path = "/applications/{application}" + base + "/commands"
            plain += [("GET", path, self._commands), ("PUT", path, self._set_commands)]
            plain += [("POST", path, self._add_command)]
            plain += [("DELETE", path + "/{command}", self._remove_command)]
        for method, path, do in plain:
            self.door.route(router, method, path, do)
        reaction = _MESSAGE + "/reactions/{emoji}/@me"
        for method, path, do, limit in (
            ("POST", _MESSAGES, self._create, "message.create"),
            ("PATCH", _MESSAGE, self._edit, "message.edit"),
            ("DELETE", _MESSAGE, self._delete, "message.delete"),
            ("POST", "/channels/{channel}/typing", self._typing, "typing"),
            ("PUT", reaction, self._react, "reaction"),
            ("DELETE", reaction, self._unreact, "reaction"),
        ):
            self.door.route(router, method, path, do, limit=limit, major="channel")

    def _place(self, call: RestRequest) -> ChannelState:
        channel = self.world.channels.get(call.number("channel"))
        if channel is None:
            raise DiscordApiError(404, 10003, "Unknown Channel")
        if not self.world.visible(channel):
            raise DiscordApiError(403, 50001, "Missing Access")
        return channel

    def _message(self, call: RestRequest) -> DiscordMessage:
        channel = self._place(call)
        message = self.world.records.messages.get(call.number("message"))
        gone = message is None or message.deleted is not None or message.ephemeral
        if message is None or gone or message.channel_id != channel.id:
            raise DiscordApiError(404, 10008, "Unknown Message")
        return message

    def _in_guild(self, call: RestRequest) -> Guild:
        guild = self.world.guilds.get(call.number("guild"))
        if guild is None:
            raise DiscordApiError(404, 10004, "Unknown Guild")
        if not self.world.has_bot(guild):
            raise DiscordApiError(403, 50001, "Missing Access")
        return guild

    def _shape(self, message: DiscordMessage) -> dict[str, Any]:
        shape = self.hub.json(message)
        allowed = self.world.portal_intents & _MESSAGE_CONTENT
        return shape if allowed or readable(self.world, message) else without_content(shape)

    async def _gateway(self, _call: RestRequest) -> Any:
        left, wait = self.hub.sessions_left, self.hub.sessions_after
        rule = self.hub.gateway.session_starts
        start = {"total": 1000, "remaining": left, "reset_after": wait}
        start["max_concurrency"] = rule.concurrency
        address, shards = self.hub.gateway.address, rule.recommended
        return {"url": address, "shards": shards, "session_start_limit": start}

    async def _me(self, _call: RestRequest) -> Any:
        return user_json(self.world.bot) | {"verified": True, "mfa_enabled": False, "locale": None}

    async def _user(self, call: RestRequest) -> Any:
        user = self.world.users.get(call.number("user"))
        if user is None:
            raise DiscordApiError(404, 10013, "Unknown User")
        return user_json(user)

    async def _open_direct(self, call: RestRequest) -> Any:
        user = self.world.users.get(int((call.body or {}).get("recipient_id", 0)))
        if user is None or user.bot:
            raise DiscordApiError(400, 50033, "Invalid Recipient(s)")
        return channel_json(self.world, self.hub.direct(user.id))

    async def _application(self, _call: RestRequest) -> Any:
        return application_json(self.world)

    async def _guild(self, call: RestRequest) -> Any:
        return guild_json(self.world, self._in_guild(call))

    async def _guild_channels(self, call: RestRequest) -> Any:
        return guild_json(self.world, self._in_guild(call))["channels"]

    async def _active_threads(self, call: RestRequest) -> Any:
        guild = self._in_guild(call)
        return {"threads": guild_json(self.world, guild)["threads"], "members": []}

    async def _member(self, call: RestRequest) -> Any:
        guild, number = self._in_guild(call), call.number("user")
        if number not in guild.members:
            raise DiscordApiError(404, 10007, "Unknown Member")
        user = self.world.users[number]
        return member_json(user)

    async def _channel(self, call: RestRequest) -> Any:
        return channel_json(self.world, self._place(call))

    async def _change_channel(self, call: RestRequest) -> Any:
        channel, wanted = self._place(call), call.body or {}
        channel.name = wanted.get("name", channel.name)
        channel.archived = wanted.get("archived", channel.archived)
        channel.locked = wanted.get("locked", channel.locked)
        event = "THREAD_UPDATE" if channel.is_thread else "CHANNEL_UPDATE"
        self.hub.tell_channel(event, channel)
        return channel_json(self.world, channel)

    async def _history(self, call: RestRequest) -> Any:
        channel, query = self._place(call), call.request.query
        limit = int(query.get("limit", "50"))
        if not 1 <= limit <= 100:
            raise invalid("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100.")
        found = self.world.visible_messages(channel.id)
        if self.world.parent(channel).denied & READ_MESSAGE_HISTORY:
            return []
        if "before" in query:
            found = [each for each in found if each.id < int(query["before"])][-limit:]
        elif "after" in query:
            found = [each for each in found if each.id > int(query["after"])][:limit]
        elif "around" in query:
            middle, half = int(query["around"]), limit // 2
            older = [each for each in found if each.id < middle][-half:]
            newer = [each for each in found if each.id >= middle][: limit - len(older)]
            found = older + newer
        return [self._shape(each) for each in reversed(found[-limit:])]

    async def _one(self, call: RestRequest) -> Any:
        return self._shape(self._message(call))

    async def _create(self, call: RestRequest) -> Any:
        channel, draft = self._place(call), call.draft
        check_place(self.world, channel)
        draft.check()
        standing = self._same_nonce(channel, call.body or {})
        if standing is not None:
            return self._shape(standing) | {"nonce": standing.nonce}
        slept = channel.archived
        message = write(self.world, channel, self.world.bot.id, draft)
        message.flags &= ~EPHEMERAL
        if slept:
            self.hub.tell_channel("THREAD_UPDATE", channel)
        self.hub.announce("MESSAGE_CREATE", message, nonce=True)
        return self._shape(message) | {"nonce": message.nonce}

    def _same_nonce(self, channel: ChannelState, body: dict[str, Any]) -> DiscordMessage | None:
        if not body.get("enforce_nonce") or body.get("nonce") is None:
            return None
        nonce, oldest = str(body["nonce"]), time.monotonic() - self.hub.nonce_window
        mine = self.world.records.messages_in(channel.id, author=self.world.bot.id)
        return next((m for m in mine if m.nonce == nonce and m.created >= oldest), None)

    async def _edit(self, call: RestRequest) -> Any:
        message = self._message(call)
        if message.author_id != self.world.bot.id:
            raise DiscordApiError(403, 50005, "Cannot edit a message authored by another user")
        check_place(self.world, self.world.channels[message.channel_id])
        call.draft.check(message)
        rewrite(self.world, message, call.draft)
        self.hub.announce("MESSAGE_UPDATE", message)
        return self._shape(message)

    async def _delete(self, call: RestRequest) -> Any:
        message = self._message(call)
        direct = self.world.channels[message.channel_id].guild_id is None
        if direct and message.author_id != self.world.bot.id:
            raise DiscordApiError(403, 50003, "Cannot execute action on a DM channel")
        self.hub.delete(message)
        return NO_CONTENT

    async def _typing(self, call: RestRequest) -> Any:
        channel = self._place(call)
        check_place(self.world, channel)
        self.world.records.note(self.world.records.typing, "typing", channel.id)
        return NO_CONTENT

    async def _react(self, call: RestRequest) -> Any:
        message, emoji = self._message(call), unquote(call.text("emoji"))
        if emoji.isascii() and ":" not in emoji:
            raise DiscordApiError(400, 10014, "Unknown Emoji")
        self.hub.react(message, self.world.bot.id, emoji)
        return NO_CONTENT

    async def _unreact(self, call: RestRequest) -> Any:
        message, emoji = self._message(call), unquote(call.text("emoji"))
        self.hub.react(message, self.world.bot.id, emoji, remove=True)
        return NO_CONTENT

    async def _open_thread(self, call: RestRequest) -> Any:
        parent, bot = self._place(call), self.world.bot.id
        source = self._message(call) if "message" in call.request.match_info else None
        if parent.guild_id is None or parent.is_thread:
            raise DiscordApiError(400, 50024, "Cannot execute action on this channel type")
        if source is not None and source.id in self.world.channels:
            raise DiscordApiError(400, 160004, "A thread has already been created for this message")
        name = (call.body or {}).get("name", "")
        if not 1 <= len(name) <= 100:
            raise invalid("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
        thread = self.hub.open_thread(parent, name, bot, source)
        return 201, self.hub.thread_shape(thread)

    async def _nothing(self, call: RestRequest) -> Any:
        self._place(call)
        return NO_CONTENT

    def _scope(self, call: RestRequest) -> int:
        return int(call.request.match_info.get("guild", 0))

    def _complete(self, call: RestRequest, command: dict[str, Any]) -> dict[str, Any]:
        if wrong := fault_in_command(command):
            raise invalid("name", "APPLICATION_COMMAND_INVALID", wrong)
        number = str(self.world.ids.next())
        scope = self._scope(call)
        whole = {"type": 1, "description": "", "options": [], "version": number, "nsfw": False}
        whole |= {"default_member_permissions": None, "contexts": None, "integration_types": [0]}
        whole |= command | {"id": number, "application_id": str(self.world.bot.id)}
        return whole | ({"guild_id": str(scope)} if scope else {})

    async def _commands(self, call: RestRequest) -> Any:
        return self.world.records.commands.get(self._scope(call), [])

    async def _set_commands(self, call: RestRequest) -> Any:
        wanted = call.body or []
        if len(wanted) > _MAX_COMMANDS:
            raise DiscordApiError(
                400, 30032, "Maximum number of application commands reached (100)."
            )
        standing = self.world.records.commands.get(self._scope(call), [])
        if wrong := fault_in_overwrite(standing, wanted):
            raise DiscordApiError(400, 50240, wrong)
        kept = [self._complete(call, command) for command in wanted]
        self.world.records.commands[self._scope(call)] = kept
        return kept

    async def _add_command(self, call: RestRequest) -> Any:
        command = self._complete(call, call.body or {})
        known = self.world.records.commands.setdefault(self._scope(call), [])
        known[:] = [each for each in known if each["name"] != command["name"]] + [command]
        return 201, command

    async def _remove_command(self, call: RestRequest) -> Any:
        known = self.world.records.commands.setdefault(self._scope(call), [])
        known[:] = [each for each in known if each["id"] != call.text("command")]
        return NO_CONTENT
