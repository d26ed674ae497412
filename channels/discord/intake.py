"""Authorize and publish messages, edits and reactions, retrying until the bus accepts them.

Rule 1: nothing of anybody is fetched, stored or answered before access is granted.
Rule 2: a message is handled once it is published or deliberately dropped; only then does its
channel's read position advance.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, TypeVar

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
from bot.core.i18n import _, use_language
from channels.base import NOT_TAKEN_TEXT, ChannelContext, fetch_if_allowed, tell_if_not_taken
from channels.delivery.messenger import MessengerError
from channels.discord.current_client import CurrentClient
from channels.discord.errors import MAX_BACKOFF_SECONDS, MIN_BACKOFF_SECONDS, call_with_retries
from channels.discord.message_content import (
    ChatLocation,
    all_attachments,
    chat_location,
    command_name,
    edit_id,
    is_from_person,
    is_unresolved_reply,
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


class SenderNotifier:
    """Notify the sender of a message about problems with it."""

    def __init__(self, send_text: SendText, *, asks: bool = True) -> None:
        self._send_text = send_text
        self._asks = asks
        self._warned = False

    async def notify(self, text: str) -> None:
        """Send a text to the sender."""
        if self._asks:
            await self._send_text(text)

    async def warn_once(self, error: BusError) -> None:
        """Notify the sender of the error that delays the message, the first time only."""
        if not self._warned:
            self._warned = True
            text = str(error)
            await self.notify(_("{problem} I will retry.", problem=f"{text[:1].upper()}{text[1:]}"))


class RetryingBusClient:
    """Authorize, store files and publish, retrying until the bus accepts."""

    def __init__(self, access: Authorizer, media: AttachmentReceiver, port: ChannelPort) -> None:
        self._access = access
        self._media = media
        self._port = port

    async def authorize(self, access_request: AccessRequest) -> AccessDecision:
        """Return the decision about a request, retrying while the bus fails."""
        return await _retry_until_accepted(
            "the access check",
            partial(self._access.authorize, access_request),  # for the log
        )

    async def receive_file(self, file: RemoteFile, notifier: SenderNotifier) -> Attachment:
        """Return the stored attachment, retrying while the bus fails."""
        return await _retry_until_accepted("a file", partial(self._media.receive, file), notifier)

    async def publish(
        self,
        inbound: Inbound,
        notifier: SenderNotifier,
        access_request: AccessRequest,
        *,
        waited: bool = False,
    ) -> bool:
        """Return once a message is durable, rejected with a notice to its sender, or dropped: False."""
        fresh, current = not waited, None

        async def publish_if_allowed() -> None:
            nonlocal fresh, current
            current = inbound if fresh else await self._authorize_again(inbound, access_request)
            fresh = False
            if current is not None:
                await self._port.publish(current)

        try:
            await _retry_until_accepted(
                f"a message for {inbound.session}",
                publish_if_allowed,
                notifier,  # for the log
            )
        except (SessionFull, InvalidInbound) as refusal:
            logger.info("a message for %s was refused: %s", inbound.session, refusal)
            await notifier.notify(str(refusal))
        return current is not None

    async def _authorize_again(
        self, inbound: Inbound, access_request: AccessRequest
    ) -> Inbound | None:
        decision = await self._access.authorize(replace(access_request, text=None))
        if decision.role is None:
            logger.info("a person no longer has access: their message is dropped")
            return None
        return replace(inbound, role=decision.role)


async def _retry_until_accepted(
    what: str, call: Callable[[], Awaitable[T]], notifier: SenderNotifier | None = None
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
            logger.warning("%s could not be accepted: %s", what, error)
            if notifier is not None:
                await notifier.warn_once(error)
        await anyio.sleep(pause)
        pause = min(pause * 2, MAX_BACKOFF_SECONDS)


logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_QUOTED_FILES = 10
"""The most files that a reply brings of the message that it replies to."""

_REMEMBERED = 4096
# For an unrelated change (a pin, a thread, a preview) Discord sends the old edit again.
_EDIT_IS_NEWS = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class _LocatedMessage:
    """A message with its location and how it is to be handled.

    Attributes:
        message: The message.
        location: The chat of the message.
        bot_id: The bot's user id.
        answerable: Whether it is recent enough to be answered.
        is_new: Whether it was just sent; False for an edit or an old message.
    """

    message: discord.Message
    location: ChatLocation
    bot_id: int
    answerable: bool = True
    is_new: bool = False

    @property
    def access_request(self) -> AccessRequest:
        """The access request for the sender; with the text if it may be a pairing code."""
        text = self.message.content if self.location.private and self.is_new else None
        location = self.location
        return AccessRequest(
            location.address, _sender(self.message), location.private, location.access_ids, text
        )


class DiscordIntake:
    """Convert Discord events to ``Inbound`` and publish them; called one at a time per channel."""

    def __init__(
        self,
        name: str,
        context: ChannelContext,
        bus_client: RetryingBusClient,
        client: CurrentClient,
        positions: ReadPositions,
    ) -> None:
        self._name = name
        self._context = context
        self._bus_client = bus_client
        self._client = client
        self._positions = positions
        self._commands = {command.name for command in context.commands}
        self._handled: OrderedDict[int, None] = OrderedDict()
        self._answers: OrderedDict[int, int] = OrderedDict()

    async def handle_message(
        self, message: discord.Message, bot_id: int, *, answerable: bool = True
    ) -> None:
        """Handle a live or missed message; do nothing if it was handled before."""
        if message.id in self._handled:
            return
        if message.author.id == bot_id:
            _remember(self._answers, message.channel.id, message.id)
        elif is_from_person(message):
            location = await self._locate(message.channel)
            if location is not None:
                with use_language(await self._context.language(self._name, _sender(message))):
                    await self._publish_new(
                        _LocatedMessage(message, location, bot_id, answerable, is_new=answerable)
                    )
        _remember(self._handled, message.id, None)
        self._positions.advance(message.channel.id, message.id)

    async def handle_edit(self, message: discord.Message, before: str | None, bot_id: int) -> None:
        """Handle an edited message."""
        at = message.edited_at
        if at is None or message.content == before or not is_from_person(message):
            return
        location = await self._locate(message.channel)
        if location is None or datetime.now(UTC) - at > _EDIT_IS_NEWS:
            return
        with use_language(await self._context.language(self._name, _sender(message))):
            await self._publish_edit(_LocatedMessage(message, location, bot_id), at)

    async def _publish_edit(self, received: _LocatedMessage, at: datetime) -> None:
        message = received.message
        role = await self._authorize(received)
        if role is None:
            return
        notifier = self._notifier(received)
        async with tell_if_not_taken(notifier.notify):
            inbound = self._inbound(received, role, ())
            edited = _edited(inbound, edit_id(message.id, at), message.id)
            await self._bus_client.publish(edited, notifier, received.access_request)

    async def handle_unreadable(self, data: Any, bot_id: int) -> None:
        """Tell the sender of a message to the bot that discord.py cannot read, if they have access."""
        try:
            channel_id, number, author = int(data["channel_id"]), int(data["id"]), data["author"]
            sender = Sender(str(int(author["id"])), str(author.get("username")))
            mentioned = str(bot_id) in [str(one["id"]) for one in data.get("mentions") or ()]
        except (KeyError, TypeError, ValueError, AttributeError):
            return
        client, guild_id = self._client.client, data.get("guild_id")
        channel = client.get_channel(channel_id) or client.get_partial_messageable(
            channel_id, guild_id=None if guild_id is None else int(guild_id)
        )
        location = await self._locate(channel)
        if location is None or author.get("bot") or not (location.private or mentioned):
            return
        asker = AccessRequest(location.address, sender, location.private, location.access_ids)
        if (await self._bus_client.authorize(asker)).role is not None:
            with use_language(await self._context.language(self._name, sender)):
                await self._client.send_text(channel_id, _(NOT_TAKEN_TEXT), reply_to=number)

    async def handle_reaction(
        self,
        event: discord.RawReactionActionEvent,
        who: discord.abc.User | None,
        channel: object,
    ) -> None:
        """Publish a person's reaction as context that expects no answer."""
        private = event.guild_id is None
        location = await self._locate(channel)
        if location is None or not (private or self._context.group_policy.keep_context):
            return
        name = str(event.user_id) if who is None else who.display_name
        sender = Sender(str(event.user_id), name)
        access_request = AccessRequest(
            location.address, sender, location.private, location.access_ids
        )
        decision = await self._bus_client.authorize(access_request)
        if decision.role is None:
            return
        emoji = event.emoji.name or "an emoji"  # for the model
        inbound = Inbound(
            address=location.address,
            id=f"r{event.message_id}.{event.user_id}.{event.emoji.id or emoji}",
            sender=sender,
            text=f"(reacted with {emoji} to an earlier message)",  # for the model
            sent_at=datetime.now(UTC),
            private=location.private,
            role=decision.role,
            expects_answer=False,
        )
        tell = partial(self._client.send_text, location.channel_id)
        await self._bus_client.publish(inbound, SenderNotifier(tell, asks=False), access_request)

    async def _publish_new(self, received: _LocatedMessage) -> None:
        message, location = received.message, received.location
        role = await self._authorize(received)
        if role is None:
            return
        if is_unresolved_reply(message):
            await self._resolve_reply(message)
            if not (self._expects_answer(received) or self._is_context(received)):
                return
        self._positions.follow(location.channel_id, message.id - 1, location.guild_id)
        notifier = self._notifier(received)
        async with tell_if_not_taken(notifier.notify):
            session, sender = location.address.session, str(message.author.id)
            files = [remote_file(each, session, sender) for each in all_attachments(message)]
            taken = [await self._bus_client.receive_file(each, notifier) for each in files]
            inbound = self._inbound(received, role, tuple(taken))
            for file in self._quoted_files(received):
                files.append(file)
                quoted = replace(await self._bus_client.receive_file(file, notifier), quoted=True)
                inbound = replace(inbound, attachments=(*inbound.attachments, quoted))
            if inbound.text or inbound.quote or inbound.attachments or inbound.expects_answer:
                await self._bus_client.publish(
                    inbound, notifier, received.access_request, waited=bool(files)
                )

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

    def _quoted_files(self, received: _LocatedMessage) -> list[RemoteFile]:
        """Return the files of the message that one replies to, fetched if its author has access."""
        location, target = received.location, replied_message(received.message)
        if target is None or not self._expects_answer(received):
            return []
        session, sender = location.address.session, str(received.message.author.id)
        attached = islice(all_attachments(target), MAX_QUOTED_FILES)
        files = [remote_file(each, session, sender) for each in attached]
        if target.author.id == received.bot_id:
            return files
        author = AccessRequest(
            location.address, _sender(target), location.private, location.access_ids
        )
        access = self._context.access
        return [replace(one, fetch=fetch_if_allowed(access, author, one.fetch)) for one in files]

    def _notifier(self, received: _LocatedMessage) -> SenderNotifier:
        tell = partial(
            self._client.send_text, received.location.channel_id, reply_to=received.message.id
        )
        return SenderNotifier(tell, asks=self._expects_answer(received))

    async def _authorize(self, received: _LocatedMessage) -> Role | None:
        """Return the sender's role; None if the message is not to be published.

        Only a new message may be a pairing code, and only its sender is told how to get access.
        """
        asks, location = self._expects_answer(received), received.location
        # Only the message that is replied to shows whether one without a mention is for the bot.
        maybe = received.answerable and is_unresolved_reply(received.message)
        if not (asks or maybe or self._is_context(received)):
            return None
        decision = await self._bus_client.authorize(received.access_request)
        if decision.role is None and decision.reply is not None and asks and received.is_new:
            await self._client.send_text(location.channel_id, decision.reply)
        return decision.role

    def _is_context(self, received: _LocatedMessage) -> bool:
        """Return whether a message that expects no answer is published."""
        # Of an edit the tape knows whether it changes a message that was for the bot.
        edited, old = not received.is_new, received.location.private
        taken = edited if received.answerable else old
        return self._context.group_policy.keep_context or taken

    def _expects_answer(self, received: _LocatedMessage) -> bool:
        message, location, bot_id = received.message, received.location, received.bot_id
        if not received.answerable:
            return False
        if location.private or location.always_answered(self._context.group_policy):
            return True
        if mentions_bot(message, bot_id):
            return True
        if command_name(message_text(message, bot_id)) in self._commands:
            return True
        target = replied_message(message)
        return target is not None and target.author.id == bot_id

    def _inbound(
        self, received: _LocatedMessage, role: Role, taken: tuple[Attachment, ...]
    ) -> Inbound:
        message, bot_id = received.message, received.bot_id
        text = message_text(message, bot_id)
        if not text and message.flags.voice:
            text = voice_transcripts(split_attachments(message, taken)[0])
        return Inbound(
            address=received.location.address,
            id=str(message.id),
            sender=_sender(message),
            text=text,
            sent_at=message.created_at,
            private=received.location.private,
            quote=message_quote(message, bot_id, self._answers.get(message.channel.id), taken),
            role=role,
            expects_answer=self._expects_answer(received),
            attachments=taken,
        )

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
        edited_message_id=str(message_id),
    )


def _remember(known: OrderedDict[int, T], key: int, value: T) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > _REMEMBERED:
        known.popitem(last=False)
