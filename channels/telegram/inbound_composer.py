"""Convert user events to inbound messages, download their files and remember recent messages.

Also groups the parts of a media group, and of a long text that the client split.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import anyio

from bot.bus import (
    AccessRequest,
    Attachment,
    FileUnavailable,
    Inbound,
    RemoteFile,
    Role,
    address_press,
)
from bot.core.reasons import Reason
from channels.base import ChannelContext, FetchBytes, fetch_if_allowed
from channels.delivery.messenger import PlatformUnreachable, RateLimited
from channels.telegram.api import (
    MAX_DOWNLOAD_BYTES,
    Backoff,
    BotApiClient,
    TelegramTiming,
    file_too_large,
)
from channels.telegram.message_content import format_quote
from channels.telegram.user_events import TelegramFile, UserEvent
from channels.text import utf16_length

_TRIES = 4


class InboundComposer:
    """Convert the events of authorized users to ``Inbound``."""

    def __init__(
        self,
        api: BotApiClient,
        context: ChannelContext,
        recent: RecentMessages,
        timing: TelegramTiming,
    ) -> None:
        self._api = api
        self._context = context
        self._recent = recent
        self._timing = timing

    async def compose(self, events: list[UserEvent], role: Role, *, asks: bool) -> Inbound:
        """Download the events' files and return the events as one message."""
        first = events[0]
        self._recent.record_chat(first)
        files = [(event, file) for event in events for file in event.files]
        # Each part of an album repeats the file of the message that it replies to.
        quoted = [(event, file) for event, file in files if file.quoted and asks][:1]
        own = [(event, file) for event, file in files if not file.quoted]
        attachments = [await self._receive(*one) for one in (*own, *quoted)]
        spoken = "\n".join(
            attachment.text for attachment in attachments if _spoken(attachment) and attachment.text
        )
        (text, parts), quote = join_texts(events), self._quote(events)
        if first.is_forwarded:
            # A forwarded message is not the sender's own text, and neither is its voice.
            quote = format_quote(quote or "", spoken) if spoken else quote
        else:
            text = "\n".join(filter(None, (text, spoken)))
        inbound = Inbound(
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
            moved_to=self._api.moved.moved_to(first.address),
        )
        return address_press(inbound)

    def _quote(self, events: list[UserEvent]) -> str | None:
        found: list[str] = []
        for event in events:
            answers = event.answered_message_id
            known = answers and self._recent.is_last_answer(event.address.session, answers)
            if event.quote is not None and not known:
                found.append(event.quote)
        # Each part of a forwarded album names the source; a part with text says more.
        return next((one for one in found if "\n" in one), found[0] if found else None)

    async def _receive(self, event: UserEvent, telegram_file: TelegramFile) -> Attachment:
        fetch: FetchBytes = partial(self._fetch, telegram_file)
        if telegram_file.author is not None:
            author = AccessRequest(
                event.address, telegram_file.author, event.private, (event.address.chat_id,)
            )
            fetch = fetch_if_allowed(self._context.access, author, fetch)
        file = RemoteFile(
            kind=telegram_file.kind,
            name=telegram_file.name,
            mime=telegram_file.mime,
            size=telegram_file.size,
            fetch=fetch,
            session=event.address.session,
            sender=event.sender.id,
        )
        return replace(await self._context.media.receive(file), quoted=telegram_file.quoted)

    async def _fetch(self, telegram_file: TelegramFile, most: int) -> bytes:
        """Return a file's bytes, with a few retries.

        Raises:
            FileUnavailable: It is too large or gone, or Telegram could not be reached.
        """
        allowed = min(most, MAX_DOWNLOAD_BYTES)
        if telegram_file.size is not None and telegram_file.size > allowed:
            raise file_too_large(allowed)
        pause = Backoff(self._timing)
        for _ in range(_TRIES):
            try:
                return await self._api.download(telegram_file.file_id, allowed)
            except RateLimited as flood:
                await pause.wait(flood.seconds)
            except PlatformUnreachable:
                await pause.wait()
        raise FileUnavailable(Reason("file_unreachable", platform="Telegram"))


def _spoken(attachment: Attachment) -> bool:
    return attachment.kind == "voice" and not attachment.quoted


_LONGEST_TEXT = 4_096


class MessageGroup:
    """Consecutive messages of one authorized sender in one chat that belong together."""

    def __init__(self, first: UserEvent) -> None:
        self.parts = [first]
        self._closed = False
        self._changed = anyio.Event()
        self._close_unless_more()

    def accepts(self, event: UserEvent) -> bool:
        """Return whether an event is the next part of the group."""
        last = self.parts[-1]
        return not self._closed and event.kind == "message" and _continues(last, event)

    def add(self, part: UserEvent) -> None:
        """Add the next part."""
        self.parts.append(part)
        self._close_unless_more()
        self._changed.set()

    def close(self) -> None:
        """Accept no more parts, since another message followed."""
        self._closed = True
        self._changed.set()

    async def complete(
        self, seconds: float, at_rest: Callable[[], Awaitable[None]]
    ) -> list[UserEvent]:
        """Return all parts once no other has arrived for some time."""
        while not self._closed:
            self._changed = anyio.Event()
            with anyio.move_on_after(seconds) as waiting:
                await self._changed.wait()
            if waiting.cancelled_caught:
                known = len(self.parts)
                await at_rest()
                if len(self.parts) == known:
                    self._closed = True
        return self.parts

    def _close_unless_more(self) -> None:
        last = self.parts[-1]
        self._closed = last.kind != "message" or not (last.media_group_id or last.is_long_text)


def join_texts(events: Iterable[UserEvent]) -> tuple[str, tuple[tuple[str, int, int], ...]]:
    """Join the texts of messages that are one; return also where that of each begins and ends."""
    text, before, parts = "", None, []
    for event in events:
        part = event.text
        # A part that fills a message to the last unit was cut inside a word or line.
        whole = before is None or utf16_length(before) < _LONGEST_TEXT
        text += "\n" if text and part and whole else ""
        parts.append((event.message_id, len(text), len(text) + len(part)))
        text, before = text + part, part
    return text, tuple(parts)


def _continues(last: UserEvent, event: UserEvent) -> bool:
    if last.sender.id != event.sender.id:
        return False
    if last.media_group_id is not None or event.media_group_id is not None:
        return last.media_group_id == event.media_group_id
    return (
        last.is_long_text
        and event.is_plain_text
        and event.quote is None
        and not event.text.startswith("/")
    )


KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

_MOST_CHATS = 1_000
_MOST_MESSAGES = 5_000


class RecentMessages:
    """Bounded in-memory record of recent messages, for repeated edits, quotes and forums."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, tuple[str, frozenset[str]]] = OrderedDict()
        self._said: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._forums: OrderedDict[str, bool] = OrderedDict()

    def record_answer(self, session: str, answer: str, message_id: str) -> None:
        """Record a message that carries an answer, or a part of it."""
        known = self._answers.get(session)
        before: frozenset[str] = known[1] if known and known[0] == answer else frozenset()
        _keep(self._answers, session, (answer, before | {message_id}), _MOST_CHATS)

    def is_last_answer(self, session: str, message_id: str) -> bool:
        """Return whether a message carries the bot's last answer in its chat."""
        known = self._answers.get(session)
        return known is not None and message_id in known[1]

    def record_text(self, event: UserEvent) -> None:
        """Record the present text of a user's message."""
        _keep(self._said, _key(event), _mark(event), _MOST_MESSAGES)

    def record_chat(self, event: UserEvent) -> None:
        """Record whether the event's chat is a forum."""
        _keep(self._forums, event.address.chat_id, event.is_forum, _MOST_CHATS)

    def is_forum(self, chat_id: str) -> bool:
        """Return whether a group is known to be a forum."""
        return self._forums.get(chat_id, False)

    def has_text(self, event: UserEvent) -> bool:
        """Return whether a message is known to have exactly this text."""
        return self._said.get(_key(event)) == _mark(event)


def _key(event: UserEvent) -> tuple[str, str]:
    return event.address.session, event.message_id


def _mark(event: UserEvent) -> int:
    return hash((event.text, event.quote if event.is_forwarded else None))


def _keep(kept: OrderedDict[KeyT, ValueT], key: KeyT, value: ValueT, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > most:
        kept.popitem(last=False)
