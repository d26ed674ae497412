"""Web conversations: transcript, pending messages, streamed answer and open pages.

Rule 1: messages are read from the tape; each is sent to a page once, in order.
Rule 2: a page that attaches gets what it lacks and everything later, and nothing twice: both happen
    under one lock.
Rule 3: what is not on the tape yet (an accepted message, a partial answer) is held in memory and
    lost with a restart; then the tape has it, or the session produces it again.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import anyio
import anyio.to_thread

from bot.bus import Activity, Answer, Inbound, PartialAnswer, TranscriptMessage, WebBackend
from channels.web.frames import encode, lines_frame
from channels.web.notices import Notice, NoticeStore
from channels.web.page_messages import MessageJson, messages_json, pending_message_json

ERASURE_CHECK_SECONDS = 5.0
"""Seconds between two checks whether something was erased from an open conversation."""


class ConversationRegistry:
    """The conversations that are in use or hold state."""

    def __init__(self, site: WebBackend, notices: NoticeStore) -> None:
        self._site = site
        self._notices = notices
        self._conversations: dict[str, WebConversation] = {}
        self._users: dict[str, int] = {}

    @contextmanager
    def acquire(self, session: str) -> Iterator[WebConversation]:
        """Yield a conversation; drop it after the block if it is idle and nobody else uses it."""
        conversation = self._conversations.get(session)
        if conversation is None:
            conversation = self._conversations[session] = WebConversation(
                session, self._site, self._notices
            )
        self._users[session] = self._users.get(session, 0) + 1
        try:
            yield conversation
        finally:
            self._users[session] -= 1
            if not self._users[session]:
                del self._users[session]
                if conversation.idle:
                    del self._conversations[session]

    async def watch_erasures(self) -> None:
        """Reload pages after erasures, which any process may cause, until cancelled."""
        while True:
            await anyio.sleep(ERASURE_CHECK_SECONDS)
            for session in list(self._conversations):
                if session not in self._conversations:
                    continue
                with self.acquire(session) as conversation:
                    try:
                        await conversation.retract_erased()
                    except Exception as error:  # noqa: BLE001 (the next check retries)
                        logger.info("erasures will be checked later: %s", type(error).__name__)


logger = logging.getLogger(__name__)

PAGE_SIZE = 50
"""Messages that a page gets at first, and with each request for older ones."""

_LOOKED_THROUGH = 200
"""The newest messages among which a page's last one, or a repeated answer, is searched."""

_MOST_KNOWN = 1_000


@dataclass(frozen=True, slots=True)
class PagePosition:
    """The messages that a page already shows.

    Attributes:
        after: The position of its last message; 0 if it has none.
        erasure_version: The transcript's version when the page got them; if it has changed, the
            page is reset.
    """

    after: int = 0
    erasure_version: str = ""


class WebConversation:
    """Display one conversation on all pages that are open on it."""

    def __init__(self, session: str, site: WebBackend, notices: NoticeStore) -> None:
        self.session = session
        self._site = site
        self._notices = notices
        self._tabs: set[PageQueue] = set()
        self._pending: OrderedDict[str, str] = OrderedDict()
        self._known: OrderedDict[str, None] = OrderedDict()
        self._position: int | None = None
        self._erasure_version: str | None = None
        self._lock = anyio.Lock()
        self._partial: tuple[str, str] | None = None
        self._activity: str | None = None
        self._answered = ""

    @property
    def idle(self) -> bool:
        """Whether this object may be dropped without losing state."""
        running = self._partial is not None or self._activity is not None
        return not (self._tabs or self._pending or running)

    def has_message(self, message: str) -> bool:
        """Return whether a message is known to be accepted."""
        return message in self._pending or message in self._known

    # Pages.

    @contextmanager
    def detach_on_exit(self, page: PageQueue) -> Iterator[None]:
        """Detach a page at the end of the block; ``attach`` attaches it."""
        try:
            yield
        finally:
            self._tabs.discard(page)

    async def attach(self, page: PageQueue, seen: PagePosition) -> None:
        """Send a page what it lacks, and from now on everything new."""
        async with self._lock:
            await self._take_back()
            await self._advance()
            after = seen.after if seen.erasure_version == self._erasure_version else 0
            messages, reset = await self._behind(after)
            older = len(messages) >= PAGE_SIZE
            begin = messages[0].position if older else 0
            # Messages that reached the tape since ``_advance`` go to all pages with the next one.
            messages = [
                message for message in messages if message.position <= (self._position or 0)
            ]
            rows = await self._rows(messages, begin if reset else after)
            # No await from here on, so that the page misses no frame and gets none twice.
            pending = self._pending.values()
            page.put(
                lines_frame(
                    rows, pending, reset=reset, older=older, erasure_version=self._erasure_version
                )
            )
            for kind, frame in (
                ("activity", self._activity),
                ("partial", self._partial and self._partial[1]),
            ):
                if frame is not None:
                    page.put_latest(kind, frame)
            self._tabs.add(page)

    async def send_older(self, page: PageQueue, before: int) -> None:
        """Send a page the messages before a position."""
        messages = await self._site.transcript.newest(self.session, PAGE_SIZE, before)
        more = len(messages) == PAGE_SIZE
        rows = await self._rows(messages, messages[0].position if more else 0, before)
        page.put(encode({"type": "older", "lines": rows, "more": more}))

    # Incoming events.

    def show_accepted(self, inbound: Inbound) -> None:
        """Display a durable message until it is on the tape."""
        if inbound.pressed_message_id is None and not self.has_message(inbound.id):
            row = pending_message_json(inbound)
            self._pending[inbound.id] = encode(row)
            self._send(lines_frame([row]))

    async def refresh(self) -> None:
        """Send new messages of the tape, if a page is open."""
        if self._tabs:
            async with self._lock:
                await self._advance()

    async def retract_erased(self) -> None:
        """Reset open pages if something was erased."""
        if self._tabs:
            async with self._lock:
                await self._take_back()

    async def show_activity(self, activity: Activity) -> None:
        """Display the bot's activity."""
        if activity.state == "idle":
            self._partial = None
        frame = encode({"type": "activity", "state": activity.state, "detail": activity.detail})
        self._activity = frame if activity.state != "idle" else None
        if activity.state != "tool":
            # By now the message that is being answered is on the tape.
            await self.refresh()
        for page in self._tabs:
            page.put_latest("activity", frame)

    async def show_partial(self, partial: PartialAnswer) -> None:
        """Display a partial answer."""
        nothing_yet = self._partial is None and not partial.text
        if partial.stream == self._answered or nothing_yet:
            return
        html = await anyio.to_thread.run_sync(self._site.render, partial.text)
        frame = encode(
            {
                "type": "partial",
                "stream": partial.stream,
                "html": html,
                "reply_to": partial.reply_to,
            }
        )
        self._partial = (partial.stream, frame)
        for page in self._tabs:
            page.put_latest("partial", frame)

    async def show_answer(self, answer: Answer) -> None:
        """Display an answer; return once it is on the tape or stored as a notice.

        Raises:
            BusError: The notice could not be stored.
        """
        if answer.sent_message_ids and answer.stream is not None:
            answer = replace(answer, id=answer.stream)  # a later state of an answer on the tape
        async with self._lock:
            self._answered = answer.id
            self._partial = None
            for page in self._tabs:
                page.drop("partial")
            was_shown = answer.id in self._known
            await self._advance()
            await self._take_back()
            if was_shown and (answer.files or answer.sent_message_ids) and self._tabs:
                await self._show_again(answer.id)
            if not await self._on_tape(answer):
                await self._keep(answer)

    # Called under the lock.

    async def _advance(self) -> None:
        """Read new messages from the tape and send them to all pages."""
        transcript = self._site.transcript
        first = self._position is None
        if self._position is None:
            messages = await transcript.newest(self.session, PAGE_SIZE)
        else:
            messages = await transcript.since(self.session, self._position)
        rows = [] if first or not self._tabs else await messages_json(self._site, messages, ())
        self._position = messages[-1].position if messages else self._position or 0
        for message in messages:
            self._note(message)
            self._pending.pop(message.id, None)
        if rows:
            self._send(lines_frame(rows))

    async def _behind(self, after: int) -> tuple[list[TranscriptMessage], bool]:
        """Return the messages after a page's last and False, or the newest and True to reset it."""
        newest = await self._site.transcript.newest(self.session, PAGE_SIZE)
        transcript_messages = newest
        if after > 0 and newest and newest[0].position > after:
            transcript_messages = await self._site.transcript.newest(self.session, _LOOKED_THROUGH)
        if after > 0 and any(message.position == after for message in transcript_messages):
            return [line for line in transcript_messages if line.position > after], False
        return newest, True

    async def _on_tape(self, answer: Answer) -> bool:
        if answer.id in self._known:
            return True
        if answer.stream is None:
            # Not an answer of a turn, so it never reaches a tape.
            return False
        messages = await self._site.transcript.newest(self.session, _LOOKED_THROUGH)
        return any(line.id == answer.id for line in messages)

    async def _show_again(self, answer: str) -> None:
        """Send an answer's message again, since files were missing, or a button is gone."""
        messages = await self._site.transcript.newest(self.session, PAGE_SIZE)
        transcript_messages = [line for line in messages if line.id == answer]
        if transcript_messages:
            rows = await messages_json(self._site, transcript_messages, ())
            self._send(lines_frame(rows))

    async def _keep(self, answer: Answer) -> None:
        notice = Notice(
            answer.id,
            self._position or 0,
            answer.text,
            datetime.now(UTC).isoformat(timespec="microseconds"),
            tuple((button.label, button.data) for button in answer.buttons),
            tuple((outgoing_file.name, str(outgoing_file.path)) for outgoing_file in answer.files),
        )
        if await self._notices.add(self.session, notice) and self._tabs:
            rows = await messages_json(self._site, (), [notice])
            self._send(lines_frame(rows))

    async def _take_back(self) -> None:
        """Reset pages once something was erased, since they may still show it."""
        erasure_version = await self._site.transcript.erasure_version(self.session)
        if (
            erasure_version == self._erasure_version
            or self._erasure_version is None
            or not self._tabs
        ):
            self._erasure_version = erasure_version
            return
        messages = await self._site.transcript.newest(self.session, PAGE_SIZE)
        older = len(messages) >= PAGE_SIZE
        rows = await self._rows(messages, messages[0].position if older else 0)
        self._send(
            lines_frame(
                rows,
                self._pending.values(),
                reset=True,
                older=older,
                erasure_version=erasure_version,
            )
        )
        self._erasure_version = erasure_version

    async def _rows(
        self, messages: Sequence[TranscriptMessage], first: int, before: int | None = None
    ) -> list[MessageJson]:
        """Return messages as JSON, with the notices from position ``first`` up to ``before``."""
        notices = [
            notice
            for notice in await self._notices.load(self.session)
            if notice.position >= first and (before is None or notice.position < before)
        ]
        return await messages_json(self._site, messages, notices)

    def _note(self, line: TranscriptMessage) -> None:
        # The id only: the text may have to be erased.
        self._known[line.id] = None
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)

    def _send(self, frame: str) -> None:
        for page in self._tabs:
            page.put(frame)


MAX_QUEUED_FRAMES = 64
"""The most frames that may wait for one page."""

MAX_QUEUED_CHARACTERS = 16_000_000
"""No frame is added above this many queued characters, since single frames can be long."""


class PageQueue:
    """The outgoing frames of one page, as JSON text that is encoded once for all pages.

    Attributes:
        overflowed: Set once a frame was dropped because the page is too slow.
    """

    def __init__(self) -> None:
        self._frames: deque[str] = deque()
        self._characters = 0
        self._newest: dict[str, str] = {}
        self._filled = anyio.Event()
        self.overflowed = anyio.Event()

    def put(self, frame: str) -> None:
        """Queue a frame without waiting; set ``overflowed`` if the queue is full."""
        if len(self._frames) >= MAX_QUEUED_FRAMES or self._characters >= MAX_QUEUED_CHARACTERS:
            self.overflowed.set()
            return
        self._frames.append(frame)
        self._characters += len(frame)
        self._filled.set()

    def put_latest(self, kind: str, frame: str) -> None:
        """Queue a frame without waiting; it replaces a waiting one of the same kind."""
        self._newest.pop(kind, None)
        self._newest[kind] = frame
        self._filled.set()

    def drop(self, kind: str) -> None:
        """Drop the waiting frame of a kind."""
        self._newest.pop(kind, None)

    async def get(self) -> str:
        """Wait for the next frame and return it."""
        while not self._frames and not self._newest:
            self._filled = anyio.Event()
            await self._filled.wait()
        if self._frames:
            frame = self._frames.popleft()
            self._characters -= len(frame)
            return frame
        return self._newest.pop(next(iter(self._newest)))
