"""What people say, change and react with on Discord, on its way to the bus.

Rule 1: nothing of anybody is fetched, kept or answered before access was given.
Rule 2: a message is dealt with once it was published or it was decided to drop it; only then does
its channel's mark move.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

import discord

from bot.bus import Attachment, Inbound, Knock, Role, Sender
from channels.base import Platform
from channels.discord.files import file_of
from channels.discord.gate import Gate
from channels.discord.marks import Marks
from channels.discord.patience import patiently
from channels.discord.places import Place, place_of
from channels.discord.uplink import Uplink
from channels.discord.words import (
    attachments,
    command_name,
    edit_id,
    mentions,
    own_words,
    quoted,
    replied_to,
    said_by_person,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")

_REMEMBERED = 4096
# Discord reports an old edit again with each later change that is none (a pin, a thread, a preview).
_EDIT_IS_NEWS = timedelta(hours=1)


class Intake:
    """Turns events into inbounds, one at a time for each chat.

    Args:
        name: The name of our channel.
        platform: What the program gives.
        gate: Admits and publishes.
        uplink: Tells people things.
        marks: Remember how far each channel was dealt with.
    """

    def __init__(
        self, name: str, platform: Platform, gate: Gate, uplink: Uplink, marks: Marks
    ) -> None:
        self._name = name
        self._platform = platform
        self._gate = gate
        self._uplink = uplink
        self._marks = marks
        self._commands = {command.name for command in platform.commands}
        self._dealt: OrderedDict[int, None] = OrderedDict()
        self._answers: OrderedDict[int, int] = OrderedDict()

    async def message(self, message: discord.Message, bot_id: int) -> None:
        """Deal with a message, live or from history; the second time is nothing."""
        if message.id in self._dealt:
            return
        if message.author.id == bot_id:
            _remember(self._answers, message.channel.id, message.id)
        elif said_by_person(message):
            place = await self._place(message.channel)
            if place is not None:
                await self._said(message, place, bot_id)
        _remember(self._dealt, message.id, None)
        self._marks.move(message.channel.id, message.id)

    async def edit(self, message: discord.Message, before: str | None, bot_id: int) -> None:
        """Deal with a changed message.

        Args:
            message: As it is now.
            before: What it said, where that is known.
            bot_id: The bot.
        """
        at = message.edited_at
        if at is None or message.content == before or not said_by_person(message):
            return
        place = await self._place(message.channel)
        if place is None or datetime.now(UTC) - at > _EDIT_IS_NEWS:
            return
        role = await self._admitted(message, place, bot_id)
        if role is None:
            return
        inbound = self._inbound(message, place, role, bot_id, ())
        await self._gate.publish(
            _edited(inbound, edit_id(message.id, at), message.id),
            partial(self._uplink.tell, place.channel_id),
        )

    async def reaction(
        self,
        event: discord.RawReactionActionEvent,
        who: discord.abc.User | None,
        channel: object,
    ) -> None:
        """Deal with a person's reaction: context, and never a question.

        Args:
            event: The reaction.
            who: The person, where they are known.
            channel: Where.
        """
        private = event.guild_id is None
        place = await self._place(channel)
        if place is None or not (private or self._platform.groups.keep_context):
            return
        name = str(event.user_id) if who is None else who.display_name
        sender = Sender(str(event.user_id), name)
        verdict = await self._gate.admit(Knock(place.address, sender, place.private, place.ids))
        if verdict.role is None:
            return
        emoji = event.emoji.name or "an emoji"
        inbound = Inbound(
            address=place.address,
            id=f"r{event.message_id}.{event.user_id}.{event.emoji.id or emoji}",
            sender=sender,
            text=f"(reacted with {emoji} to an earlier message)",
            sent_at=datetime.now(UTC),
            private=place.private,
            role=verdict.role,
            asks=False,
        )
        await self._gate.publish(inbound, partial(self._uplink.tell, place.channel_id))

    async def _said(self, message: discord.Message, place: Place, bot_id: int) -> None:
        role = await self._admitted(message, place, bot_id)
        if role is None:
            return
        self._marks.meet(place.channel_id, message.id - 1, place.guild_id)
        taken = [await self._platform.media.take(file_of(each)) for each in attachments(message)]
        inbound = self._inbound(message, place, role, bot_id, tuple(taken))
        if inbound.text or inbound.quote or inbound.attachments or inbound.asks:
            tell = partial(self._uplink.tell, place.channel_id)
            await self._gate.publish(inbound, tell)

    async def _admitted(self, message: discord.Message, place: Place, bot_id: int) -> Role | None:
        """Return what the sender may do; None where the message is not for the bot to have."""
        asks = self._asks(message, place, bot_id)
        if not asks and not self._platform.groups.keep_context:
            return None
        knock = Knock(
            place.address,
            _sender(message),
            place.private,
            place.ids,
            message.content if place.private else None,
        )
        verdict = await self._gate.admit(knock)
        if verdict.role is None and verdict.reply is not None and asks:
            await self._uplink.tell(place.channel_id, verdict.reply)
        return verdict.role

    def _asks(self, message: discord.Message, place: Place, bot_id: int) -> bool:
        if place.private or place.always_answered(self._platform.groups):
            return True
        if mentions(message, bot_id):
            return True
        if command_name(own_words(message, bot_id)) in self._commands:
            return True
        target = replied_to(message)
        return target is not None and target.author.id == bot_id

    def _inbound(
        self,
        message: discord.Message,
        place: Place,
        role: Role,
        bot_id: int,
        taken: tuple[Attachment, ...],
    ) -> Inbound:
        text = own_words(message, bot_id)
        if not text and message.flags.voice:
            text = "\n".join(each.text for each in taken if each.kind == "voice" and each.text)
        return Inbound(
            address=place.address,
            id=str(message.id),
            sender=_sender(message),
            text=text,
            sent_at=message.created_at,
            private=place.private,
            quote=quoted(message, bot_id, self._answers.get(message.channel.id)),
            role=role,
            asks=self._asks(message, place, bot_id),
            attachments=taken,
        )

    async def _place(self, channel: object) -> Place | None:
        place = place_of(self._name, channel)
        if place is None and isinstance(channel, discord.PartialMessageable):
            # It may be a thread that Discord did not list.
            channel_id = channel.id
            channel = await patiently(
                "a channel's name", lambda: self._uplink.client.fetch_channel(channel_id)
            )
            place = place_of(self._name, channel)
        return place


def _sender(message: discord.Message) -> Sender:
    return Sender(str(message.author.id), message.author.display_name)


def _edited(inbound: Inbound, number: str, message_id: int) -> Inbound:
    return Inbound(
        address=inbound.address,
        id=number,
        sender=inbound.sender,
        text=inbound.text,
        sent_at=inbound.sent_at,
        private=inbound.private,
        quote=inbound.quote,
        role=inbound.role,
        asks=inbound.asks,
        edits=str(message_id),
    )


def _remember(known: OrderedDict[int, T], key: int, value: T) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > _REMEMBERED:
        known.popitem(last=False)
