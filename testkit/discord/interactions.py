"""Interactions of the Discord test server: send them to the bot, and serve its responses."""

from __future__ import annotations

import secrets
import time
from typing import Any

from aiohttp import web

from testkit.discord.backend import DiscordBackend
from testkit.discord.messages import DiscordApiError, MessagePayload, invalid, rewrite, write
from testkit.discord.records import LOADING, DiscordMessage, InteractionRecord
from testkit.discord.rest_router import NO_CONTENT, RestRequest, RestRouter
from testkit.discord.serialization import (
    ALL_PERMISSIONS,
    SLASH_ANSWER,
    channel_json,
    member_json,
    user_json,
)
from testkit.discord.validation import fault_in_choices
from testkit.discord.world import ChannelState

COMMAND, COMPONENT, AUTOCOMPLETE = 2, 3, 4
"""Interaction types."""
_WEBHOOK = "/webhooks/{application}/{token}"


class InteractionServer:
    """Sends interactions and serves the bot's responses."""

    def __init__(self, hub: DiscordBackend, door: RestRouter) -> None:
        self.hub, self.world, self.door = hub, hub.world, door

    def register(self, router: web.UrlDispatcher) -> None:
        """Register the routes; they are authorised by the interaction's token."""
        one = _WEBHOOK + "/messages/{message}"
        routes = (
            ("POST", "/interactions/{interaction}/{token}/callback", self._callback),
            ("POST", _WEBHOOK, self._follow_up),
            ("PATCH", one, self._patch),
            ("DELETE", one, self._delete),
        )
        self.door.serve(router, routes, public=True)

    def send(
        self,
        kind: int,
        channel: ChannelState,
        user: int,
        name: str,
        data: dict[str, Any],
        *,
        message: DiscordMessage | None = None,
    ) -> InteractionRecord:
        number = self.world.ids.next()
        made = InteractionRecord(number, secrets.token_urlsafe(48), kind, channel.id, user, name)
        made.message_id = message.id if message else None
        self.world.records.interactions[number] = made
        who = self.world.users[user]
        shape: dict[str, Any] = {
            "id": str(number),
            "application_id": str(self.world.bot.id),
            "type": kind,
            "token": made.token,
            "version": 1,
            "data": data,
            "channel_id": str(channel.id),
            "channel": channel_json(self.world, channel) | {"permissions": str(ALL_PERMISSIONS)},
            "locale": who.locale,
            "app_permissions": str(ALL_PERMISSIONS),
            "entitlements": [],
            "authorizing_integration_owners": {"0": str(channel.guild_id or 0)},
            "context": 1 if channel.guild_id is None else 0,
            "attachment_size_limit": 10 * 1024 * 1024,
        }
        if channel.guild_id is None:
            shape["user"] = user_json(who)
        else:
            shape["member"] = member_json(who) | {"permissions": str(ALL_PERMISSIONS)}
            guild = str(channel.guild_id)
            shape |= {"guild_id": guild, "guild_locale": "en-US"}
            shape["guild"] = {"id": guild, "locale": "en-US", "features": []}
        if message is not None:
            shape["message"] = self.hub.json(message)
        self.hub.gateway.dispatch("INTERACTION_CREATE", shape)
        self.world.records.touch()
        return made

    def _alive(self, call: RestRequest) -> InteractionRecord:
        every = self.world.records.interactions.values()
        known = next((each for each in every if each.token == call.text("token")), None)
        if known is None:
            raise DiscordApiError(404, 10015, "Unknown Webhook")
        if time.monotonic() - known.created > self.hub.interaction_life:
            known.refused.append(50027)
            raise DiscordApiError(401, 50027, "Invalid Webhook Token")
        if known.acknowledged is None:
            raise DiscordApiError(404, 10015, "Unknown Webhook")
        return known

    async def _callback(self, call: RestRequest) -> Any:
        known = self.world.records.interactions.get(call.number("interaction"))
        if known is None or known.token != call.text("token"):
            raise DiscordApiError(404, 10062, "Unknown interaction")
        if known.acknowledged is not None:
            known.refused.append(40060)
            raise DiscordApiError(400, 40060, "Interaction has already been acknowledged.")
        if time.monotonic() - known.created > self.hub.interaction_deadline:
            known.refused.append(10062)
            raise DiscordApiError(404, 10062, "Unknown interaction")
        kind = int((call.body or {}).get("type", 0))
        data = (call.body or {}).get("data") or {}
        shown = self._apply(known, kind, MessagePayload(data, call.uploads))
        known.acknowledged, known.answer = time.monotonic(), kind
        self.world.records.touch()
        if call.request.query.get("with_response") not in {"1", "true", "True"}:
            return NO_CONTENT
        return self._resource(known, kind, shown)

    def _apply(
        self, known: InteractionRecord, kind: int, draft: MessagePayload
    ) -> DiscordMessage | None:
        on_message = self.world.records.messages.get(known.message_id or 0)
        match kind:
            case 4 | 5:
                if kind == 4:
                    draft.check()
                message = self._write(known, draft, LOADING if kind == 5 else 0)
                known.response_id = message.id
                return message
            case 6 if on_message is not None:
                known.response_id = on_message.id
                return on_message
            case 7 if on_message is not None:
                draft.check(on_message)
                known.response_id = on_message.id
                rewrite(self.world, on_message, draft)
                self.hub.announce("MESSAGE_UPDATE", on_message)
                return on_message
            case 8 if known.kind == AUTOCOMPLETE:
                choices = list(draft.body.get("choices") or ())
                if wrong := fault_in_choices(choices):
                    raise invalid("choices", "BASE_TYPE_BAD_LENGTH", wrong)
                known.choices = choices
                return None
            case 9:
                return None
            case _:
                raise DiscordApiError(400, 50035, "Invalid Form Body", {"type": {"_errors": []}})

    def _write(self, known: InteractionRecord, draft: MessagePayload, flags: int) -> DiscordMessage:
        channel = self.world.channels[known.channel_id]
        more: dict[str, Any] = {"interaction_id": known.id}
        if known.kind == COMMAND and known.response_id is None:
            more["kind"] = SLASH_ANSWER
        message = write(self.world, channel, self.world.bot.id, draft, **more)
        message.flags |= flags
        self.hub.announce("MESSAGE_CREATE", message)
        return message

    def _resource(self, known: InteractionRecord, kind: int, shown: DiscordMessage | None) -> Any:
        told: dict[str, Any] = {"id": str(known.id), "type": known.kind}
        answer: dict[str, Any] = {"interaction": told}
        if shown is not None:
            told["response_message_id"] = str(shown.id)
            told["response_message_loading"] = shown.loading
            told["response_message_ephemeral"] = shown.ephemeral
            answer["resource"] = {"type": kind, "message": self.hub.json(shown)}
        return answer

    def _message(self, call: RestRequest) -> tuple[InteractionRecord, DiscordMessage]:
        known = self._alive(call)
        wanted = call.text("message")
        number = known.response_id if wanted == "@original" else int(wanted)
        message = self.world.records.messages.get(number or 0)
        mine = message is not None and message.id in {known.response_id, *known.followups}
        if message is None or not mine or message.deleted is not None:
            raise DiscordApiError(404, 10008, "Unknown Message")
        return known, message

    async def _patch(self, call: RestRequest) -> Any:
        _, message = self._message(call)
        call.draft.check(message)
        rewrite(self.world, message, call.draft)
        self.hub.announce("MESSAGE_UPDATE", message)
        return self.hub.json(message)

    async def _delete(self, call: RestRequest) -> Any:
        _, message = self._message(call)
        self.hub.delete(message)
        return NO_CONTENT

    async def _follow_up(self, call: RestRequest) -> Any:
        known, draft = self._alive(call), call.draft
        draft.check()
        response = self.world.records.messages.get(known.response_id or 0)
        if response is not None and response.loading and response.deleted is None:
            # Discord lets the first follow-up after a deferral replace the deferred response.
            rewrite(self.world, response, draft)
            self.hub.announce("MESSAGE_UPDATE", response)
            return self.hub.json(response)
        message = self._write(known, draft, 0)
        known.followups.append(message.id)
        return self.hub.json(message)
