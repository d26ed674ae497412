"""Read messages, edits and reactions as events, and publish them.

A message is handled once it is published or deliberately dropped; only then does its channel's read
position advance.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal

import discord

from bot.bus import Sender
from bot.core.i18n import _
from channels.base import NOT_TAKEN_TEXT, ChannelContext
from channels.delivery.messenger import MessengerError
from channels.discord.current_client import CurrentClient
from channels.discord.errors import call_with_retries
from channels.discord.message_content import (
    ChatLocation,
    chat_location,
    edit_id,
    is_from_person,
    is_unresolved_reply,
    read_message,
)
from channels.discord.read_positions import ReadPositions
from channels.intake import Event, Intake

logger = logging.getLogger(__name__)

_REMEMBERED = 4096
# For an unrelated change (a pin, a thread, a preview) Discord sends the old edit again.
_EDIT_IS_NEWS = timedelta(hours=1)


class DiscordIntake:
    """Handle messages, edits and reactions; called one at a time per channel."""

    def __init__(
        self,
        name: str,
        context: ChannelContext,
        intake: Intake,
        client: CurrentClient,
        positions: ReadPositions,
    ) -> None:
        self._name = name
        self._intake = intake
        self._client = client
        self._positions = positions
        self._commands = {command.name for command in context.commands}
        self._handled: OrderedDict[int, None] = OrderedDict()

    async def handle_message(self, message: discord.Message, is_old: bool = False) -> None:
        """Handle a live or missed message; do nothing if it was handled before."""
        if message.id in self._handled:
            return
        location = await self._locate(message.channel) if is_from_person(message) else None
        if location is not None:
            await self._publish(message, location, is_old=is_old)
        self._handled[message.id] = None
        if len(self._handled) > _REMEMBERED:
            self._handled.popitem(last=False)
        self._positions.advance(message.channel.id, message.id)

    async def _publish(
        self, message: discord.Message, location: ChatLocation, *, is_old: bool
    ) -> None:
        def read() -> Event:
            return replace(self._read(message, location), is_old=is_old)

        event, until_done = read(), self._intake.until_done
        # Only the message that is replied to shows whether one without a mention is for the bot.
        unresolved = is_unresolved_reply(message)
        if not (self._intake.is_relevant(event) or (unresolved and not is_old)):
            return
        async with self._intake.speaking_to(event):
            role = await self._intake.admit(event, until_done)
            if role is None:
                return
            if unresolved:
                await self._resolve_reply(message)
                event = read()
                if not self._intake.is_relevant(event):
                    return
            self._positions.follow(location.channel_id, message.id - 1, location.guild_id)
            await self._intake.publish([event], role, until_done)
            self._intake.remember_text(event)

    async def handle_edit(self, message: discord.Message) -> None:
        """Handle an edited message."""
        at = message.edited_at
        if at is None or not is_from_person(message) or datetime.now(UTC) - at > _EDIT_IS_NEWS:
            return
        location = await self._locate(message.channel)
        if location is None:
            return
        event = replace(
            self._read(message, location), kind="edit", id=edit_id(message.id, at), files=()
        )
        if self._intake.is_repeated(event) or not self._intake.is_relevant(event):
            return
        async with self._intake.speaking_to(event):
            role = await self._intake.admit(event, self._intake.until_done)
            if role is not None:
                await self._intake.publish([event], role, self._intake.until_done)
                self._intake.remember_text(event)

    async def handle_unreadable(self, data: Any) -> None:
        """Tell the sender of a message to the bot that discord.py cannot read, if they have access."""
        try:
            channel_id, number, author = int(data["channel_id"]), int(data["id"]), data["author"]
            sender = Sender(str(int(author["id"])), str(author.get("username")))
            ids = [str(one["id"]) for one in data.get("mentions") or ()]
            guild_id = None if data.get("guild_id") is None else int(data["guild_id"])
        except (KeyError, TypeError, ValueError, AttributeError):
            return
        location = await self._locate(self._client.find_channel(channel_id, guild_id))
        if location is None or author.get("bot"):
            return
        event = _bare_event("unreadable", str(number), location, sender, str(number))
        event = replace(event, addressed=location.private or str(self._client.bot_id) in ids)
        async with self._intake.speaking_to(event):
            refuse = partial(self._intake.refuse, event, _(NOT_TAKEN_TEXT))
            await self._intake.until_done(None, refuse)

    async def handle_reaction(
        self,
        reaction: discord.RawReactionActionEvent,
        who: discord.abc.User | None,
        channel: object,
    ) -> None:
        """Publish a person's reaction as context that expects no answer."""
        location = await self._locate(channel)
        if location is None:
            return
        name = str(reaction.user_id) if who is None else who.display_name
        emoji = reaction.emoji.name or "an emoji"  # for the model
        number = f"r{reaction.message_id}.{reaction.user_id}.{reaction.emoji.id or emoji}"
        sender = Sender(str(reaction.user_id), name)
        event = _bare_event("reaction", number, location, sender, str(reaction.message_id))
        text = f"(reacted with {emoji} to an earlier message)"  # for the model
        event = replace(event, text=text)
        if self._intake.is_relevant(event):
            role = await self._intake.admit(event, self._intake.until_done)
            if role is not None:
                await self._intake.publish([event], role, self._intake.until_done)

    def _read(self, message: discord.Message, location: ChatLocation) -> Event:
        return read_message(message, location, self._client.bot_id, self._commands)

    async def _resolve_reply(self, message: discord.Message) -> None:
        """Fetch the message that this one replies to, which Discord did not send along."""
        reference = message.reference
        assert reference is not None
        assert reference.message_id is not None
        number = reference.message_id
        try:
            reference.resolved = await call_with_retries(
                "a message that is replied to",  # for the log
                lambda: self._client.channel(reference.channel_id).fetch_message(number),
            )
        except MessengerError as error:
            logger.info("a message that is replied to cannot be read: %s", error)

    async def _locate(self, channel: object) -> ChatLocation | None:
        location = chat_location(self._name, channel)
        if location is None and isinstance(channel, discord.PartialMessageable):
            # It may be a thread that Discord did not list.
            channel_id = channel.id
            channel = await call_with_retries(
                "a channel's name", lambda: self._client.client.fetch_channel(channel_id)
            )
            location = chat_location(self._name, channel)
        return location


def _bare_event(
    kind: Literal["reaction", "unreadable"],
    number: str,
    location: ChatLocation,
    sender: Sender,
    message_id: str,
) -> Event:
    return Event(
        kind=kind,
        id=number,
        address=location.address,
        chat_ids=location.access_ids,
        sender=sender,
        private=location.private,
        message_id=message_id,
        text="",
        sent_at=datetime.now(UTC),
        addressed=False,
    )
