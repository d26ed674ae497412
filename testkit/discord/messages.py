"""Validate message payloads like Discord's API, with its codes, and apply them to messages."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from testkit.discord.records import LOADING, DiscordMessage, DiscordUpload
from testkit.discord.validation import fault_in_components
from testkit.discord.world import READ_MESSAGE_HISTORY, SEND_MESSAGES, ChannelState, DiscordWorld

MAX_CONTENT = 2000
MAX_FILE = 10 * 1024 * 1024
MAX_NONCE = 25
_REPLY = 19
_V2 = 1 << 15
_USER, _ROLE = re.compile(r"<@!?(\d+)>"), re.compile(r"<@&(\d+)>")
_KEPT_FLAGS = 1 << 2 | 1 << 6 | 1 << 12 | 1 << 13 | _V2


class DiscordApiError(Exception):
    """An error response of Discord's API."""

    def __init__(self, status: int, code: int, message: str, errors: Any = None) -> None:
        super().__init__(message)
        self.status, self.code, self.errors = status, code, errors

    def to_json(self) -> dict[str, Any]:
        shape = {"message": str(self), "code": self.code}
        return shape if self.errors is None else shape | {"errors": self.errors}


def invalid(field: str, code: str, text: str) -> DiscordApiError:
    """Return the error 50035 about one field."""
    return DiscordApiError(
        400, 50035, "Invalid Form Body", {field: {"_errors": [{"code": code, "message": text}]}}
    )


@dataclass(frozen=True, slots=True)
class MessagePayload:
    """A message as a bot sends it."""

    body: Mapping[str, Any]
    uploads: tuple[DiscordUpload, ...] = ()

    def check(self, standing: DiscordMessage | None = None) -> None:
        content = self.body.get("content")
        if content is not None and not isinstance(content, str):
            raise invalid("content", "STRING_TYPE_CONVERT", f'Could not convert "{content}"')
        if len(content or "") > MAX_CONTENT:
            raise invalid("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length.")
        if len(str(self.body.get("nonce") or "")) > MAX_NONCE:
            raise invalid("nonce", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
        if any(len(each.data) > MAX_FILE for each in self.uploads):
            raise DiscordApiError(413, 40005, "Request entity too large")
        v2 = bool(int(self.body.get("flags") or 0) & _V2)
        if wrong := fault_in_components(list(self.body.get("components") or ()), v2=v2):
            raise invalid("components", "BASE_TYPE_BAD_LENGTH", wrong)
        self._check_mentions()
        if not self._shows_something(standing):
            raise DiscordApiError(400, 50006, "Cannot send an empty message")

    def _check_mentions(self) -> None:
        allowed = self.body.get("allowed_mentions") or {}
        for kind in ("users", "roles"):
            if allowed.get(kind) and kind in allowed.get("parse", ()):
                text = f'parse:["{kind}"] and {kind}: [ids...] are mutually exclusive.'
                raise invalid("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", text)

    def _shows_something(self, standing: DiscordMessage | None) -> bool:
        body = self.body
        content = body.get("content", standing.content if standing else "")
        embeds = body.get("embeds", standing.embeds if standing else ())
        components = body.get("components", standing.components if standing else ())
        files = self.uploads or body.get("attachments", standing.uploads if standing else ())
        visible = isinstance(content, str) and bool(content.strip())
        return visible or bool(embeds or components or files or self.body.get("sticker_ids"))


def check_place(world: DiscordWorld, channel: ChannelState) -> None:
    """Check that the bot may write in a channel."""
    if channel.recipient_id is not None and world.users[channel.recipient_id].blocks:
        raise DiscordApiError(403, 50007, "Cannot send messages to this user")
    if not world.visible(channel):
        raise DiscordApiError(403, 50001, "Missing Access")
    if world.parent(channel).denied & SEND_MESSAGES:
        raise DiscordApiError(403, 50013, "Missing Permissions")


def write(
    world: DiscordWorld, channel: ChannelState, author: int, draft: MessagePayload, **more: Any
) -> DiscordMessage:
    """Add a message to a channel."""
    body = draft.body
    unreadable = author == world.bot.id and world.parent(channel).denied & READ_MESSAGE_HISTORY
    if unreadable and body.get("message_reference"):
        text = "Cannot reply without permission to read message history"
        raise DiscordApiError(403, 160002, text)
    target = _target(world, channel, body.get("message_reference"))
    allowed = body.get("allowed_mentions")
    message = DiscordMessage(
        id=world.ids.next(),
        channel_id=channel.id,
        author_id=author,
        content=(body.get("content") or "").strip(),
        uploads=tuple(replace(each, id=world.ids.next()) for each in draft.uploads),
        embeds=tuple(body.get("embeds") or ()),
        components=tuple(body.get("components") or ()),
        allowed_mentions=allowed,
        nonce=None if body.get("nonce") is None else str(body["nonce"]),
        flags=int(body.get("flags") or 0) & _KEPT_FLAGS,
        kind=_REPLY if target else 0,
        reference=target.id if target else None,
    )
    for name, value in more.items():
        setattr(message, name, value)
    _ping(world, message, target)
    world.records.messages[message.id] = message
    world.records.touch()
    return message


def rewrite(world: DiscordWorld, message: DiscordMessage, draft: MessagePayload) -> None:
    """Edit a message; fields that the payload omits stay."""
    body = draft.body
    if "content" in body:
        message.content = (body["content"] or "").strip()
    for name in {"embeds", "components"} & body.keys():
        setattr(message, name, tuple(body[name] or ()))
    if "allowed_mentions" in body:
        message.allowed_mentions = body["allowed_mentions"]
    kept = {str(each.get("id")) for each in body.get("attachments") or ()}
    if "attachments" in body:
        message.uploads = tuple(each for each in message.uploads if str(each.id) in kept)
    message.uploads += tuple(replace(each, id=world.ids.next()) for each in draft.uploads)
    message.flags &= ~LOADING
    message.edited = time.monotonic()
    _ping(world, message, world.records.messages.get(message.reference or 0))
    message.edits.append(message.content)
    world.records.touch()


def _target(world: DiscordWorld, channel: ChannelState, reference: Any) -> DiscordMessage | None:
    if not reference or not reference.get("message_id"):
        return None
    target = world.records.messages.get(int(reference["message_id"]))
    if target is not None and target.deleted is None and target.channel_id == channel.id:
        return target
    if reference.get("fail_if_not_exists", True):
        raise invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
    return None


def _ping(world: DiscordWorld, message: DiscordMessage, target: DiscordMessage | None) -> None:
    """Determine who is pinged; without ``allowed_mentions`` every mention pings."""
    allowed = message.allowed_mentions
    parse = {"users", "roles", "everyone"} if allowed is None else set(allowed.get("parse") or ())
    users = [int(each) for each in _USER.findall(message.content)]
    roles = [int(each) for each in _ROLE.findall(message.content)]
    if allowed is not None:
        users = [u for u in users if "users" in parse or str(u) in _texts(allowed.get("users"))]
        roles = [r for r in roles if "roles" in parse or str(r) in _texts(allowed.get("roles"))]
    if target is not None and (allowed is None or allowed.get("replied_user")):
        users.append(target.author_id)
    everyone = re.search(r"@(everyone|here)\b", message.content) is not None
    message.mentions = tuple(dict.fromkeys(user for user in users if user in world.users))
    message.mention_roles = tuple(dict.fromkeys(roles))
    message.mention_everyone = everyone and "everyone" in parse


def _texts(values: Any) -> set[str]:
    return {str(value) for value in values or ()}
