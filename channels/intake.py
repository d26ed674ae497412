"""Take what people do on a platform: authorize, fetch, compose, publish, and tell if that fails.

Rule 1: nothing of anybody is fetched, stored or answered before the ``Authorizer`` accepts them;
what waited, for a file or for the bus, is authorized again.
Rule 2: whoever sent something to the bot is told if it is not taken, and once if it has to wait.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

import anyio

from bot.bus import (
    AccessDecision,
    AccessRequest,
    Address,
    Attachment,
    BusClosed,
    BusError,
    ChannelPort,
    FileUnavailable,
    Inbound,
    InvalidInbound,
    RemoteFile,
    Role,
    Sender,
    SessionFull,
    address_press,
    join_parts,
)
from bot.core.i18n import _, use_language
from bot.core.reasons import Reason
from channels.base import NOT_TAKEN_TEXT, ChannelContext
from channels.delivery.dispatcher import OutboundDispatcher
from channels.text import format_quote

logger = logging.getLogger(__name__)

_LONGEST_RETRY_SECONDS = 60.0
_MOST_REMEMBERED = 5_000
_LONGEST_NAME = 60

T = TypeVar("T")

FileKind = Literal["image", "voice", "audio", "video", "document"]


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file of a message, not fetched yet.

    Attributes:
        ref: By what the platform gives it: an id or an address.
        kind: As in ``bot.bus.Attachment``.
        name: The file's name, or a default for its kind.
        mime: The media type that the platform states.
        size: The bytes that the platform states; None if it states none.
        quoted: Whether it is a file of the message that is replied to.
        author: Who sent a quoted file, and must have access here; None if nobody must.
    """

    ref: str
    kind: FileKind
    name: str
    mime: str
    size: int | None
    quoted: bool = False
    author: Sender | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that a person did on a platform.

    Attributes:
        kind: The kind of action; a slash command is a message.
        id: The value for ``Inbound.id``.
        address: The conversation.
        chat_ids: The ids by which access or an answer to everything may be set.
        sender: The person, or the chat on whose behalf they write.
        private: Whether only the person and the bot are there.
        message_id: The platform's id of the message itself, or of the one that it concerns.
        text: The person's own words.
        sent_at: The time of the action.
        addressed: Whether it is addressed to the bot, regardless of the group policy.
        quote: Text that it quotes or forwards.
        answered_message_id: The bot's message from which all of ``quote`` comes.
        files: The attached files.
        is_forwarded: Whether its content is forwarded, or made by an inline bot.
        is_old: Whether it is too old to be answered.
        in_place: Whether what it is told takes a place that waits for its answer.
        moved_to: As in ``Inbound``.
    """

    kind: Literal["message", "edit", "press", "reaction", "unreadable"]
    id: str
    address: Address
    chat_ids: tuple[str, ...]
    sender: Sender
    private: bool
    message_id: str
    text: str
    sent_at: datetime
    addressed: bool
    quote: str | None = None
    answered_message_id: str | None = None
    files: tuple[SentFile, ...] = ()
    is_forwarded: bool = False
    is_old: bool = False
    in_place: bool = False
    moved_to: str | None = None

    @property
    def name(self) -> str:
        """A short description by which its sender recognises it; empty if it is told in place."""
        if self.in_place:
            return ""
        words = " ".join(self.text.split()) or ", ".join(file.name for file in self.files)
        short = words if len(words) <= _LONGEST_NAME else f"{words[: _LONGEST_NAME - 1]}…"
        return f"“{short}”" if short else _("a message without words")

    def access_request(self, text: str | None = None) -> AccessRequest:
        """Return the request for access of its sender; with a text that may be a pairing code."""
        return AccessRequest(self.address, self.sender, self.private, self.chat_ids, text)


class Attempt(Protocol):
    """Does something of an event with the bus: once, or until the bus accepts it."""

    async def __call__(self, event: Event | None, act: Callable[[], Awaitable[T]]) -> T:
        """Do it; tell the event's sender, if there is an event, that it has to wait."""


class Intake:
    """Publish what people send on one channel.

    Args:
        channel: The channel's name.
        context: What the application gave the channel.
        port: Where messages are published.
        fetch: Returns a file's bytes, given the most to read; see ``RemoteFile``.
        dispatcher: Shows what people are told.
        first_retry: Seconds between the first two tries to publish something.
    """

    def __init__(
        self,
        channel: str,
        context: ChannelContext,
        port: ChannelPort,
        fetch: Callable[[SentFile, int], Awaitable[bytes]],
        dispatcher: OutboundDispatcher[Any],
        *,
        first_retry: float = 1.0,
    ) -> None:
        self._channel = channel
        self._context = context
        self._port = port
        self._fetch = fetch
        self._dispatcher = dispatcher
        self._first_retry = first_retry
        self._warned: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._texts: OrderedDict[tuple[str, str], int] = OrderedDict()

    # What an event is.

    def expects_answer(self, event: Event) -> bool:
        """Return whether an event is answered."""
        platform, always = self._channel.partition("-")[0], self._context.group_policy.always_answer
        asked = event.addressed or any(f"{platform}:{one}" in always for one in event.chat_ids)
        return asked and event.kind != "reaction" and not event.is_old

    def is_relevant(self, event: Event) -> bool:
        """Return whether an event may be published if its sender has access."""
        # Of an edit the tape knows whether it changes a message that was for the bot.
        edit = event.kind == "edit" and not event.is_forwarded
        kept = event.private or self._context.group_policy.keep_context
        return self.expects_answer(event) or edit or kept

    def is_repeated(self, event: Event) -> bool:
        """Return whether an edit leaves a message the text that it is known to have."""
        return event.kind == "edit" and self._texts.get(_key(event)) == _mark(event)

    def remember_text(self, event: Event) -> None:
        """Remember a mark of the present text of a person's message."""
        if event.kind in ("message", "edit"):
            _remember(self._texts, _key(event), _mark(event))

    # Whose it is, and what they are told.

    @asynccontextmanager
    async def speaking_to(self, event: Event) -> AsyncIterator[None]:
        """Speak the sender's language within the block, and tell them if it fails unexpectedly."""
        with use_language(await self._context.language(self._channel, event.sender)):
            try:
                yield
            except BusError:
                raise  # it is told where it is tried again
            except Exception:
                await self.refuse(event, _(NOT_TAKEN_TEXT))
                raise

    async def authorize(self, event: Event, *, waited: bool = False) -> AccessDecision:
        """Return whether an event's sender has access; a new private message may be a pairing code.

        Raises:
            BusError: A change could not be stored.
        """
        code = event.private and event.kind == "message" and not (event.is_old or waited)
        return await self._context.access.authorize(
            event.access_request(event.text if code else None)
        )

    async def admit(self, event: Event, attempt: Attempt) -> Role | None:
        """Return the sender's role; if they have none, tell them what the access control replies.

        Raises:
            BusError: As the attempt does.
        """
        decision = await attempt(None, partial(self.authorize, event))
        told = decision.role is None and event.kind != "edit" and self.expects_answer(event)
        if told and decision.reply is not None:
            self.tell(event, decision.reply)
        return decision.role

    def tell(self, event: Event, text: str) -> None:
        """Tell an event's chat something, without waiting."""
        self._dispatcher.tell(event.address, text)

    async def refuse(self, event: Event, text: str) -> None:
        """Tell who sent something to the bot, if they have access, why it is not taken."""
        if self.expects_answer(event):
            decision = await self.authorize(event, waited=True)
            if decision.role is not None:
                self._dispatcher.refuse(event.address, text, event.message_id, event.name)

    # What happens to it.

    async def once(self, event: Event | None, act: Callable[[], Awaitable[T]]) -> T:
        """Do something; if it fails and may succeed later, tell the event's sender once.

        Raises:
            BusError: It failed.
        """
        try:
            return await act()
        except (BusClosed, SessionFull, InvalidInbound):
            raise
        except BusError as error:
            if event is None or not self.expects_answer(event):
                raise
            # Not the message's id, which all presses of its buttons share.
            if (key := (event.address.session, event.id)) not in self._warned:
                _remember(self._warned, key, 0)
                problem = str(error)
                problem = f"{problem[:1].upper()}{problem[1:]}"
                # Not a reply: on Discord that would take the place of a command's answer.
                self.tell(event, _("{problem} I will retry.", problem=problem))
            raise

    async def until_done(self, event: Event | None, act: Callable[[], Awaitable[T]]) -> T:
        """Do something, again until it succeeds or can never succeed.

        Raises:
            SessionFull: The session takes no more messages.
            InvalidInbound: The bus will never take the message.
        """
        pause = self._first_retry
        while True:
            try:
                return await self.once(event, act)
            except BusClosed:
                await anyio.sleep_forever()  # the program is stopping and cancels this task
            except (SessionFull, InvalidInbound):
                raise
            except BusError as error:
                logger.warning("something that was sent on %s waits: %s", self._channel, error)
            await anyio.sleep(pause)
            pause = min(2 * pause, _LONGEST_RETRY_SECONDS)

    async def publish(self, events: Sequence[Event], role: Role, attempt: Attempt) -> bool:
        """Fetch the events' files, and publish the events as one message.

        Returns:
            False if that took a while, and the sender lost access meanwhile.

        Raises:
            BusError: As the attempt does.
        """
        event = next(filter(self.expects_answer, events), events[0])
        inbound = await self._composed(events, role, attempt)
        current: Inbound | None = inbound
        waited = bool(inbound.attachments)
        said = inbound.text or inbound.quote or inbound.attachments or event.kind == "edit"
        if not (said or inbound.expects_answer):
            return True

        async def publish_if_allowed() -> None:
            nonlocal current, waited
            if waited:
                role = (await self.authorize(event, waited=True)).role
                current = None if role is None else replace(inbound, role=role)
            waited = True
            if current is not None:
                await self._port.publish(current)

        try:
            await attempt(event, publish_if_allowed)
        except (SessionFull, InvalidInbound) as refusal:
            logger.info("a message of %s is skipped: %s", inbound.session, refusal)
            if inbound.expects_answer:
                self._dispatcher.refuse(event.address, str(refusal), event.message_id, event.name)
        if current is None:
            logger.info("a person no longer has access: their message is dropped")
        return current is not None

    async def _composed(self, events: Sequence[Event], role: Role, attempt: Attempt) -> Inbound:
        first, asks = events[0], any(map(self.expects_answer, events))
        # Each part of an album repeats the files of the message that it replies to.
        files = dict.fromkeys(file for event in events for file in event.files)
        ordered = [file for file in files if not file.quoted]
        ordered += [file for file in files if file.quoted and asks]
        attachments = [await self._receive(first, file, attempt) for file in ordered]
        spoken = "\n".join(
            taken.text
            for taken in attachments
            if taken.kind == "voice" and taken.text and not taken.quoted
        )
        text, parts = join_parts([(event.message_id, event.text) for event in events])
        quote = self._quote(events)
        if first.is_forwarded:
            # A forwarded message is not the sender's own text, and neither is its voice.
            quote = format_quote(quote or "", spoken) if spoken else quote
        else:
            text = "\n".join(filter(None, (text, spoken)))
        return address_press(
            Inbound(
                address=first.address,
                id=first.id,
                sender=first.sender,
                text=text,
                sent_at=first.sent_at,
                private=first.private,
                quote=quote,
                role=role,
                expects_answer=asks,
                edited_message_id=first.message_id if first.kind == "edit" else None,
                parts=parts if len(events) > 1 and not spoken else (),
                attachments=tuple(attachments),
                pressed_message_id=first.message_id if first.kind == "press" else None,
                moved_to=first.moved_to,
            )
        )

    def _quote(self, events: Sequence[Event]) -> str | None:
        found: list[str] = []
        for event in events:
            answers = event.answered_message_id
            known = answers and self._dispatcher.is_last_answer(event.address.session, answers)
            if event.quote is not None and not known:
                found.append(event.quote)
        # Each part of a forwarded album names the source; a part with text says more.
        return next((one for one in found if "\n" in one), found[0] if found else None)

    async def _receive(self, event: Event, file: SentFile, attempt: Attempt) -> Attachment:
        async def fetch(most: int) -> bytes:
            if file.author is not None:
                author = replace(event.access_request(), sender=file.author)
                if (await self._context.access.authorize(author)).role is None:
                    raise FileUnavailable(Reason("file_of_stranger"))
            return await self._fetch(file, most)

        session, sender = event.address.session, event.sender.id
        remote = RemoteFile(
            file.kind, file.name, file.mime, file.size, fetch, session=session, sender=sender
        )
        taken = await attempt(event, partial(self._context.media.receive, remote))
        return replace(taken, quoted=file.quoted)


def _key(event: Event) -> tuple[str, str]:
    return event.address.session, event.message_id


def _mark(event: Event) -> int:
    return hash((event.text, event.quote if event.is_forwarded else None))


def _remember(known: OrderedDict[tuple[str, str], int], key: tuple[str, str], value: int) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > _MOST_REMEMBERED:
        known.popitem(last=False)
