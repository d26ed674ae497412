"""REST routes of the Discord test server: users, channels, messages, threads, commands."""

from __future__ import annotations

import time
from typing import Any

from aiohttp import web

from testkit.discord.backend import DiscordBackend
from testkit.discord.messages import DiscordApiError, check_place, invalid, rewrite, write
from testkit.discord.records import EPHEMERAL, DiscordMessage
from testkit.discord.rest_router import NO_CONTENT, RestRequest, RestRouter
from testkit.discord.serialization import (
    application_json,
    channel_json,
    readable,
    user_json,
    without_content,
)
from testkit.discord.validation import fault_in_command, fault_in_overwrite
from testkit.discord.world import READ_MESSAGE_HISTORY, ChannelState

_MESSAGES = "/channels/{channel}/messages"
_MESSAGE = _MESSAGES + "/{message}"
_MESSAGE_CONTENT = 1 << 15
_MAX_COMMANDS = 100


class RestRoutes:
    """Handlers of the REST API."""

    def __init__(self, hub: DiscordBackend, door: RestRouter) -> None:
        self.hub, self.world, self.door = hub, hub.world, door

    def register(self, router: web.UrlDispatcher) -> None:
        commands = "/applications/{application}/commands"
        routes = (
            ("GET", "/gateway", self._gateway),
            ("GET", "/gateway/bot", self._gateway),
            ("GET", "/users/@me", self._me),
            ("GET", "/users/{user}", self._user),
            ("POST", "/users/@me/channels", self._open_direct),
            ("GET", "/applications/@me", self._application),
            ("GET", "/oauth2/applications/@me", self._application),
            ("GET", "/channels/{channel}", self._channel),
            ("GET", _MESSAGES, self._history),
            ("GET", _MESSAGE, self._one),
            ("GET", commands, self._commands),
            ("PUT", commands, self._set_commands),
            ("POST", _MESSAGES, self._create),
            ("PATCH", _MESSAGE, self._edit),
            ("DELETE", _MESSAGE, self._delete),
            ("POST", "/channels/{channel}/typing", self._typing),
        )
        self.door.serve(router, routes)

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

    def _shape(self, message: DiscordMessage) -> dict[str, Any]:
        shape = self.hub.json(message)
        allowed = self.world.portal_intents & _MESSAGE_CONTENT
        return shape if allowed or readable(self.world, message) else without_content(shape)

    async def _gateway(self, _call: RestRequest) -> Any:
        start = {"total": 1000, "remaining": 999, "reset_after": 0}
        start["max_concurrency"] = self.hub.gateway.concurrency
        return {"url": self.hub.gateway.address, "shards": 1, "session_start_limit": start}

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
        return channel_json(self.world, self.world.direct(user.id))

    async def _application(self, _call: RestRequest) -> Any:
        return application_json(self.world)

    async def _channel(self, call: RestRequest) -> Any:
        return channel_json(self.world, self._place(call))

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
        message = write(self.world, channel, self.world.bot.id, draft)
        message.flags &= ~EPHEMERAL
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
        self.hub.delete(self._message(call))
        return NO_CONTENT

    async def _typing(self, call: RestRequest) -> Any:
        channel = self._place(call)
        check_place(self.world, channel)
        self.world.records.note(self.world.records.typing, "typing", channel.id)
        return NO_CONTENT

    def _complete(self, command: dict[str, Any]) -> dict[str, Any]:
        if wrong := fault_in_command(command):
            raise invalid("name", "APPLICATION_COMMAND_INVALID", wrong)
        number = str(self.world.ids.next())
        whole = {"type": 1, "description": "", "options": [], "version": number, "nsfw": False}
        whole |= {"default_member_permissions": None, "contexts": None, "integration_types": [0]}
        return whole | command | {"id": number, "application_id": str(self.world.bot.id)}

    async def _commands(self, _call: RestRequest) -> Any:
        return self.world.records.commands.get(0, [])

    async def _set_commands(self, call: RestRequest) -> Any:
        wanted = call.body or []
        if len(wanted) > _MAX_COMMANDS:
            raise DiscordApiError(
                400, 30032, "Maximum number of application commands reached (100)."
            )
        standing = self.world.records.commands.get(0, [])
        if wrong := fault_in_overwrite(standing, wanted):
            raise DiscordApiError(400, 50240, wrong)
        kept = [self._complete(command) for command in wanted]
        self.world.records.commands[0] = kept
        return kept
