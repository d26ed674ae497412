"""What people say, change and react with on Discord, on its way to the bus.

Rule 1: nothing of anybody is fetched, kept or answered before access was given.
Rule 2: a message is dealt with once it was published or it was decided to drop it; only then does
its channel's mark move.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

import discord

from bot.bus import Attachment, Inbound, Knock, Role, Sender
from channels.base import Platform
from channels.discord.files import file_of
from channels.discord.gate import Gate, Person
from channels.discord.marks import Marks
from channels.discord.patience import patiently
from channels.discord.places import Place, place_of
from channels.discord.uplink import Uplink
from channels.discord.words import (
    attachments,
    command_name,
    divided,
    edit_id,
    mentions,
    own_words,
    quoted,
    replied_to,
    said_by_person,
    spoken,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")

_REMEMBERED = 4096
# Discord reports an old edit again with each later change that is none (a pin, a thread, a preview).
_EDIT_IS_NEWS = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class _Heard:
    """A message and what is known of it.

    Attributes:
        message: The message.
        place: Where it was said.
        bot_id: The bot.
        answered: Whether it is recent enough to be answered.
        new: Whether it was said just now; else it is an edit, or too old.
    """

    message: discord.Message
    place: Place
    bot_id: int
    answered: bool = True
    new: bool = False

    @property
    def knock(self) -> Knock:
        """What asks for its sender."""
        text = self.message.content if self.place.private and self.new else None
        place = self.place
        return Knock(place.address, _sender(self.message), place.private, place.ids, text)


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

    async def message(
        self, message: discord.Message, bot_id: int, *, answered: bool = True
    ) -> None:
        """Deal with a message, live or from history; the second time is nothing.

        Args:
            message: The message.
            bot_id: The bot.
            answered: False where it is too old: then it is context at most, and no code.
        """
        if message.id in self._dealt:
            return
        if message.author.id == bot_id:
            _remember(self._answers, message.channel.id, message.id)
        elif said_by_person(message):
            place = await self._place(message.channel)
            if place is not None:
                await self._said(_Heard(message, place, bot_id, answered, new=answered))
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
        heard = _Heard(message, place, bot_id)
        role = await self._admitted(heard)
        if role is None:
            return
        person = self._person(heard)
        async with person.not_left_waiting():
            inbound = self._inbound(heard, role, ())
            edited = _edited(inbound, edit_id(message.id, at), message.id)
            await self._gate.publish(edited, person, heard.knock)

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
        knock = Knock(place.address, sender, place.private, place.ids)
        verdict = await self._gate.admit(knock)
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
        tell = partial(self._uplink.tell, place.channel_id)
        await self._gate.publish(inbound, Person(tell, asks=False), knock)

    async def _said(self, heard: _Heard) -> None:
        message, place = heard.message, heard.place
        role = await self._admitted(heard)
        if role is None:
            return
        self._marks.meet(place.channel_id, message.id - 1, place.guild_id)
        person = self._person(heard)
        async with person.not_left_waiting():
            files = [file_of(each) for each in attachments(message)]
            taken = [await self._gate.take(each, person) for each in files]
            inbound = self._inbound(heard, role, tuple(taken))
            if inbound.text or inbound.quote or inbound.attachments or inbound.asks:
                await self._gate.publish(inbound, person, heard.knock, waited=bool(files))

    def _person(self, heard: _Heard) -> Person:
        tell = partial(self._uplink.tell, heard.place.channel_id, reply_to=heard.message.id)
        return Person(tell, asks=self._asks(heard))

    async def _admitted(self, heard: _Heard) -> Role | None:
        """Return what the sender may do; None where the message is not for the bot to have.

        Only a new message may be a code, and only who sends one is told how to be let in.
        """
        asks, place = self._asks(heard), heard.place
        context = self._platform.groups.keep_context or (place.private and not heard.answered)
        if not asks and not context:
            return None
        verdict = await self._gate.admit(heard.knock)
        if verdict.role is None and verdict.reply is not None and asks and heard.new:
            await self._uplink.tell(place.channel_id, verdict.reply)
        return verdict.role

    def _asks(self, heard: _Heard) -> bool:
        message, place, bot_id = heard.message, heard.place, heard.bot_id
        if not heard.answered:
            return False
        if place.private or place.always_answered(self._platform.groups):
            return True
        if mentions(message, bot_id):
            return True
        if command_name(own_words(message, bot_id)) in self._commands:
            return True
        target = replied_to(message)
        return target is not None and target.author.id == bot_id

    def _inbound(self, heard: _Heard, role: Role, taken: tuple[Attachment, ...]) -> Inbound:
        message, bot_id = heard.message, heard.bot_id
        text = own_words(message, bot_id)
        if not text and message.flags.voice:
            text = spoken(divided(message, taken)[0])
        return Inbound(
            address=heard.place.address,
            id=str(message.id),
            sender=_sender(message),
            text=text,
            sent_at=message.created_at,
            private=heard.place.private,
            quote=quoted(message, bot_id, self._answers.get(message.channel.id), taken),
            role=role,
            asks=self._asks(heard),
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
