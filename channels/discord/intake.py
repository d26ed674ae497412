"""Authorize and publish messages, edits and reactions, retrying until the bus accepts them.

Rule 1: nothing of anybody is fetched, stored or answered before access is granted.
Rule 2: a message is handled once it is published or deliberately dropped; only then does its
channel's read position advance.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

import anyio
import discord

from bot.bus import (
    AccessDecision,
    AccessRequest,
    Attachment,
    AttachmentReceiver,
    Authorizer,
    BusClosed,
    BusError,
    ChannelPort,
    Inbound,
    InvalidInbound,
    RemoteFile,
    Role,
    Sender,
    SessionFull,
)
from channels.base import ChannelContext
from channels.discord.current_client import CurrentClient
from channels.discord.errors import MAX_BACKOFF_SECONDS, MIN_BACKOFF_SECONDS, call_with_retries
from channels.discord.message_content import (
    ChatLocation,
    all_attachments,
    chat_location,
    command_name,
    edit_id,
    is_from_person,
    mentions_bot,
    message_quote,
    message_text,
    remote_file,
    replied_message,
    split_attachments,
    voice_transcripts,
)
from channels.discord.read_positions import ReadPositions

SendText = Callable[[str], Awaitable[None]]
"""Sends the person a text, best effort."""

NOT_TAKEN_TEXT = (
    "Something went wrong with your message, and I could not take it. Please send it again; "
    "whoever runs me finds the reason in the log."
)


class SenderNotifier:
    """Notify the sender of a message about problems with it.

    Args:
        tell: Sends the text.
        asks: Whether the message was addressed to the bot; if not, nothing is sent.
    """

    def __init__(self, tell: SendText, *, asks: bool = True) -> None:
        self._tell = tell
        self._asks = asks
        self._warned = False

    async def notify(self, text: str) -> None:
        """Send a text to the sender."""
        if self._asks:
            await self._tell(text)

    async def warn_once(self, error: BusError) -> None:
        """Notify the sender of the error that delays the message, the first time only."""
        if not self._warned:
            self._warned = True
            text = str(error)
            await self.notify(f"{text[:1].upper()}{text[1:]} I will try again.")

    @asynccontextmanager
    async def report_failures(self) -> AsyncIterator[None]:
        """Notify the sender of an unexpected error inside the block, and raise it again."""
        try:
            yield
        except Exception:
            await self.notify(NOT_TAKEN_TEXT)
            raise


class RetryingBusClient:
    """Authorize, store files and publish, retrying until the bus accepts.

    Args:
        access: Decides who may use the bot.
        media: Stores attachments.
        port: The channel's access to the bus.
    """

    def __init__(self, access: Authorizer, media: AttachmentReceiver, port: ChannelPort) -> None:
        self._access = access
        self._media = media
        self._port = port

    async def authorize(self, access_request: AccessRequest) -> AccessDecision:
        """Return the decision about a request, retrying while the bus fails."""
        return await _until_done("who knocked", partial(self._access.authorize, access_request))

    async def receive_file(self, file: RemoteFile, person: SenderNotifier) -> Attachment:
        """Return the stored attachment, retrying while the bus fails.

        Args:
            file: The file of an authorized sender.
            person: Notified about the delay.
        """
        return await _until_done("a file", partial(self._media.receive, file), person)

    async def publish(
        self,
        inbound: Inbound,
        person: SenderNotifier,
        access_request: AccessRequest,
        *,
        waited: bool = False,
    ) -> None:
        """Return once a message is durable, rejected with a notice to its sender, or dropped.

        Args:
            inbound: The message, with the sender's role.
            person: Notified about a delay or a rejection.
            access_request: The access request, which is repeated after any delay; the message is dropped if
                access was revoked.
            waited: Whether there was a delay since ``inbound``'s role was determined.
        """
        fresh = not waited

        async def settle() -> None:
            nonlocal fresh
            now = inbound if fresh else await self._still_admitted(inbound, access_request)
            fresh = False
            if now is not None:
                await self._port.publish(now)

        try:
            await _until_done(f"a message for {inbound.session}", settle, person)
        except (SessionFull, InvalidInbound) as refusal:
            logger.info("a message for %s was refused: %s", inbound.session, refusal)
            await person.notify(str(refusal))

    async def _still_admitted(
        self, inbound: Inbound, access_request: AccessRequest
    ) -> Inbound | None:
        verdict = await self._access.authorize(replace(access_request, text=None))
        if verdict.role is None:
            logger.info("somebody who was let in is not any more: what they sent is dropped")
            return None
        return replace(inbound, role=verdict.role)


async def _until_done(
    what: str, call: Callable[[], Awaitable[T]], person: SenderNotifier | None = None
) -> T:
    """Repeat a call with backoff until the bus accepts it.

    Raises:
        SessionFull: The session accepts no more messages.
        InvalidInbound: The bus will never accept the message.
    """
    pause = MIN_BACKOFF_SECONDS
    while True:
        try:
            return await call()
        except BusClosed:
            await anyio.sleep_forever()  # the program is stopping and cancels this task
        except (SessionFull, InvalidInbound):
            raise
        except BusError as error:
            logger.warning("%s could not be taken: %s", what, error)
            if person is not None:
                await person.warn_once(error)
        await anyio.sleep(pause)
        pause = min(pause * 2, MAX_BACKOFF_SECONDS)


logger = logging.getLogger(__name__)

T = TypeVar("T")

_REMEMBERED = 4096
# For an unrelated change (a pin, a thread, a preview) Discord sends the old edit again.
_EDIT_IS_NEWS = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class _ReceivedMessage:
    """A message with its location and how it is to be handled.

    Attributes:
        message: The message.
        place: The chat of the message.
        bot_id: The bot's user id.
        answered: Whether it is recent enough to be answered.
        new: Whether it was just sent; False for an edit or an old message.
    """

    message: discord.Message
    place: ChatLocation
    bot_id: int
    answered: bool = True
    new: bool = False

    @property
    def access_request(self) -> AccessRequest:
        """The access request for the sender; with the text if it may be a pairing code."""
        text = self.message.content if self.place.private and self.new else None
        place = self.place
        return AccessRequest(
            place.address, _sender(self.message), place.private, place.access_ids, text
        )


class DiscordIntake:
    """Convert Discord events to ``Inbound`` and publish them; called one at a time per channel.

    Args:
        name: The channel's name.
        platform: The channel's context.
        gate: Authorizes, stores files and publishes.
        uplink: Holds the current client, for notices.
        marks: The read positions.
    """

    def __init__(
        self,
        name: str,
        platform: ChannelContext,
        gate: RetryingBusClient,
        uplink: CurrentClient,
        marks: ReadPositions,
    ) -> None:
        self._name = name
        self._platform = platform
        self._gate = gate
        self._uplink = uplink
        self._marks = marks
        self._commands = {command.name for command in platform.commands}
        self._dealt: OrderedDict[int, None] = OrderedDict()
        self._answers: OrderedDict[int, int] = OrderedDict()

    async def handle_message(
        self, message: discord.Message, bot_id: int, *, answered: bool = True
    ) -> None:
        """Handle a live or missed message; do nothing if it was handled before.

        Args:
            message: The message.
            bot_id: The bot's user id.
            answered: False if it is too old: then it is context only, and not taken for a code.
        """
        if message.id in self._dealt:
            return
        if message.author.id == bot_id:
            _remember(self._answers, message.channel.id, message.id)
        elif is_from_person(message):
            place = await self._place(message.channel)
            if place is not None:
                await self._said(_ReceivedMessage(message, place, bot_id, answered, new=answered))
        _remember(self._dealt, message.id, None)
        self._marks.advance(message.channel.id, message.id)

    async def handle_edit(self, message: discord.Message, before: str | None, bot_id: int) -> None:
        """Handle an edited message.

        Args:
            message: The message after the edit.
            before: Its former content, if known.
            bot_id: The bot's user id.
        """
        at = message.edited_at
        if at is None or message.content == before or not is_from_person(message):
            return
        place = await self._place(message.channel)
        if place is None or datetime.now(UTC) - at > _EDIT_IS_NEWS:
            return
        heard = _ReceivedMessage(message, place, bot_id)
        role = await self._admitted(heard)
        if role is None:
            return
        person = self._person(heard)
        async with person.report_failures():
            inbound = self._inbound(heard, role, ())
            edited = _edited(inbound, edit_id(message.id, at), message.id)
            await self._gate.publish(edited, person, heard.access_request)

    async def handle_reaction(
        self,
        event: discord.RawReactionActionEvent,
        who: discord.abc.User | None,
        channel: object,
    ) -> None:
        """Publish a person's reaction as context that expects no answer.

        Args:
            event: The reaction.
            who: The user, if known.
            channel: The channel object of discord.py.
        """
        private = event.guild_id is None
        place = await self._place(channel)
        if place is None or not (private or self._platform.group_policy.keep_context):
            return
        name = str(event.user_id) if who is None else who.display_name
        sender = Sender(str(event.user_id), name)
        access_request = AccessRequest(place.address, sender, place.private, place.access_ids)
        verdict = await self._gate.authorize(access_request)
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
            expects_answer=False,
        )
        tell = partial(self._uplink.send_text, place.channel_id)
        await self._gate.publish(inbound, SenderNotifier(tell, asks=False), access_request)

    async def _said(self, heard: _ReceivedMessage) -> None:
        message, place = heard.message, heard.place
        role = await self._admitted(heard)
        if role is None:
            return
        self._marks.follow(place.channel_id, message.id - 1, place.guild_id)
        person = self._person(heard)
        async with person.report_failures():
            files = [remote_file(each) for each in all_attachments(message)]
            taken = [await self._gate.receive_file(each, person) for each in files]
            inbound = self._inbound(heard, role, tuple(taken))
            if inbound.text or inbound.quote or inbound.attachments or inbound.expects_answer:
                await self._gate.publish(inbound, person, heard.access_request, waited=bool(files))

    def _person(self, heard: _ReceivedMessage) -> SenderNotifier:
        tell = partial(self._uplink.send_text, heard.place.channel_id, reply_to=heard.message.id)
        return SenderNotifier(tell, asks=self._asks(heard))

    async def _admitted(self, heard: _ReceivedMessage) -> Role | None:
        """Return the sender's role; None if the message is not to be published.

        Only a new message may be a pairing code, and only its sender is told how to get access.
        """
        asks, place = self._asks(heard), heard.place
        context = self._platform.group_policy.keep_context or (place.private and not heard.answered)
        if not asks and not context:
            return None
        verdict = await self._gate.authorize(heard.access_request)
        if verdict.role is None and verdict.reply is not None and asks and heard.new:
            await self._uplink.send_text(place.channel_id, verdict.reply)
        return verdict.role

    def _asks(self, heard: _ReceivedMessage) -> bool:
        message, place, bot_id = heard.message, heard.place, heard.bot_id
        if not heard.answered:
            return False
        if place.private or place.always_answered(self._platform.group_policy):
            return True
        if mentions_bot(message, bot_id):
            return True
        if command_name(message_text(message, bot_id)) in self._commands:
            return True
        target = replied_message(message)
        return target is not None and target.author.id == bot_id

    def _inbound(
        self, heard: _ReceivedMessage, role: Role, taken: tuple[Attachment, ...]
    ) -> Inbound:
        message, bot_id = heard.message, heard.bot_id
        text = message_text(message, bot_id)
        if not text and message.flags.voice:
            text = voice_transcripts(split_attachments(message, taken)[0])
        return Inbound(
            address=heard.place.address,
            id=str(message.id),
            sender=_sender(message),
            text=text,
            sent_at=message.created_at,
            private=heard.place.private,
            quote=message_quote(message, bot_id, self._answers.get(message.channel.id), taken),
            role=role,
            expects_answer=self._asks(heard),
            attachments=taken,
        )

    async def _place(self, channel: object) -> ChatLocation | None:
        place = chat_location(self._name, channel)
        if place is None and isinstance(channel, discord.PartialMessageable):
            # It may be a thread that Discord did not list.
            channel_id = channel.id
            channel = await call_with_retries(
                "a channel's name", lambda: self._uplink.client.fetch_channel(channel_id)
            )
            place = chat_location(self._name, channel)
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
        expects_answer=inbound.expects_answer,
        edits=str(message_id),
    )


def _remember(known: OrderedDict[int, T], key: int, value: T) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > _REMEMBERED:
        known.popitem(last=False)
