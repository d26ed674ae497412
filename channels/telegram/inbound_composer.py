"""Events as the bus's messages, with their files taken in."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import anyio

from bot.bus import Attachment, AttachmentReceiver, FileUnavailable, Inbound, RemoteFile, Role
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
    """Makes ``Inbound`` of the events of people who were let in.

    Args:
        api: Where files are fetched.
        media: Takes them in.
        recent: The bot's last answers, which need not be quoted.
        timing: Waits between tries.
    """

    def __init__(
        self,
        api: BotApiClient,
        media: AttachmentReceiver,
        recent: RecentMessages,
        timing: TelegramTiming,
    ) -> None:
        self._api = api
        self._media = media
        self._recent = recent
        self._timing = timing

    async def compose(self, events: list[UserEvent], role: Role, *, asks: bool) -> Inbound:
        """Return events as one message; takes as long as their files do."""
        first = events[0]
        self._recent.record_chat(first)
        attachments = [
            await self._media.receive(self._file(wanted))
            for event in events
            for wanted in event.files
        ]
        spoken = "\n".join(one.text for one in attachments if _spoken(one) and one.text)
        text, quote = join_texts(event.text for event in events), self._quote(events)
        edits = None
        if first.kind == "edit":
            edits, text = self._recent.apply_edit(first)
        if first.is_forwarded:
            # What somebody else said is not the person's own word, whoever sends it on.
            quote = format_quote(quote or "", spoken) if spoken else quote
        else:
            text = "\n".join(filter(None, (text, spoken)))
        return Inbound(
            address=first.address,
            id=first.id,
            sender=first.sender,
            text=text,
            sent_at=first.sent_at,
            private=first.private,
            quote=quote,
            role=role,
            expects_answer=asks,
            edits=edits,
            attachments=tuple(attachments),
            pressed_message_id=first.message_id if first.kind == "press" else None,
        )

    def _quote(self, events: list[UserEvent]) -> str | None:
        found: list[str] = []
        for event in events:
            answers = event.answered_message_id
            known = answers and self._recent.is_last_answer(event.address.session, answers)
            if event.quote is not None and not known:
                found.append(event.quote)
        # The parts of a forwarded album all say who it is from, and one or the other says more.
        return next((one for one in found if "\n" in one), found[0] if found else None)

    def _file(self, wanted: TelegramFile) -> RemoteFile:
        return RemoteFile(
            kind=wanted.kind,
            name=wanted.name,
            mime=wanted.mime,
            size=wanted.size,
            fetch=partial(self._fetch, wanted),
        )

    async def _fetch(self, wanted: TelegramFile, most: int) -> bytes:
        """Return a file's bytes.

        Raises:
            FileUnavailable: It is too large or gone, or Telegram could not be reached.
        """
        allowed = min(most, MAX_DOWNLOAD_BYTES)
        if wanted.size is not None and wanted.size > allowed:
            raise file_too_large(allowed)
        pause = Backoff(self._timing)
        for _ in range(_TRIES):
            try:
                return await self._api.download(wanted.file_id, allowed)
            except RateLimited as flood:
                await pause.wait(flood.seconds)
            except PlatformUnreachable:
                await pause.wait()
        raise FileUnavailable("Telegram could not be reached to fetch it; please send it again")


def _spoken(attachment: Attachment) -> bool:
    return attachment.kind == "voice"


_LONGEST_TEXT = 4_096


class MessageGroup:
    """Messages of somebody who was let in, one after the other in one chat; at least one.

    Args:
        first: The first part.
    """

    def __init__(self, first: UserEvent) -> None:
        self.parts = [first]
        self._closed = False
        self._changed = anyio.Event()
        self._close_unless_more()

    def accepts(self, event: UserEvent) -> bool:
        """Return whether an event is the next part."""
        last = self.parts[-1]
        return not self._closed and event.kind == "message" and _continues(last, event)

    def add(self, part: UserEvent) -> None:
        """Take the next part."""
        self.parts.append(part)
        self._close_unless_more()
        self._changed.set()

    def close(self) -> None:
        """Take no more: something else has come."""
        self._closed = True
        self._changed.set()

    async def complete(
        self, seconds: float, at_rest: Callable[[], Awaitable[None]]
    ) -> list[UserEvent]:
        """Return all parts, once none has come for some seconds.

        Args:
            seconds: How long.
            at_rest: Waits for what is being taken at the moment: on a slow disk, the next part.
        """
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


def join_texts(parts: Iterable[str]) -> str:
    """Return the text of parts as it was before it was split."""
    text, before = "", None
    for part in parts:
        # A text that fills a message to the last unit was cut in the middle of a word.
        whole = before is None or utf16_length(before) < _LONGEST_TEXT
        text += ("\n" if text and part and whole else "") + part
        before = part
    return text


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
_MOST_PARTS = 1_000


@dataclass(frozen=True, slots=True)
class _Whole:
    """Messages that were published as one.

    Attributes:
        id: The id under which they were.
        texts: What each says now, by its own id, in order.
        asks: It was for the bot.
    """

    id: str
    texts: dict[str, str]
    asks: bool


class RecentMessages:
    """The bot's last answer in each chat, and what people's last messages said."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, tuple[str, frozenset[str]]] = OrderedDict()
        self._said: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._parts: OrderedDict[tuple[str, str], _Whole] = OrderedDict()
        self._forums: OrderedDict[str, bool] = OrderedDict()

    def record_answer(self, session: str, answer: str, message_id: str) -> None:
        """Note a message that carries an answer, or a part of it."""
        known = self._answers.get(session)
        before: frozenset[str] = known[1] if known and known[0] == answer else frozenset()
        _keep(self._answers, session, (answer, before | {message_id}), _MOST_CHATS)

    def is_last_answer(self, session: str, message_id: str) -> bool:
        """Return whether a message carries the bot's last answer in its chat."""
        known = self._answers.get(session)
        return known is not None and message_id in known[1]

    def record_text(self, event: UserEvent) -> None:
        """Note what a person's message says now."""
        _keep(self._said, _key(event), _mark(event), _MOST_MESSAGES)

    def record_chat(self, event: UserEvent) -> None:
        """Note what kind of chat something was said in."""
        _keep(self._forums, event.address.chat_id, event.is_forum, _MOST_CHATS)

    def is_forum(self, chat_id: str) -> bool:
        """Return whether a group is known to have topics."""
        return self._forums.get(chat_id, False)

    def record_group(self, events: list[UserEvent], *, asks: bool) -> None:
        """Note that messages are published as one."""
        whole = _Whole(events[0].message_id, {one.message_id: one.text for one in events}, asks)
        for event in events:
            _keep(self._parts, _key(event), whole, _MOST_PARTS)

    def apply_edit(self, event: UserEvent) -> tuple[str, str]:
        """Return what an edit is of, as it was published, and all that it says from now on."""
        whole = self._parts.get(_key(event))
        if whole is None:
            return event.message_id, event.text
        whole.texts[event.message_id] = event.text
        return whole.id, join_texts(whole.texts.values())

    def expected_answer(self, event: UserEvent) -> bool:
        """Return whether an edit is of a part of what was for the bot."""
        whole = self._parts.get(_key(event))
        return whole is not None and whole.asks

    def has_text(self, event: UserEvent) -> bool:
        """Return whether a message is known to say just this."""
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
