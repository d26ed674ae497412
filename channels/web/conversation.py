"""One conversation and the pages that show it.

Rule 1: what was said is read from the tape; a page is sent each line once, in order.
Rule 2: a page that comes in gets what it lacks and everything later, and nothing twice: both are done
    under one lock.
Rule 3: what is on no tape yet (an accepted message, an answer so far) is held here, and is gone with a
    restart; the tape then has it, or the session begins it anew.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import anyio
import anyio.to_thread

from bot.bus import Activity, Answer, Inbound, Partial, TranscriptMessage, WebBackend
from channels.web.frames import encode, lines_frame
from channels.web.notices import Notice, NoticeStore
from channels.web.page_messages import MessageJson, messages_json, pending_message_json

ERASURE_CHECK_SECONDS = 5.0
"""How often it is looked whether something was erased from a conversation that is shown."""


class ConversationRegistry:
    """All conversations that something is held of.

    Args:
        site: As for ``Room``.
        notices: As for ``Room``.
    """

    def __init__(self, site: WebBackend, notices: NoticeStore) -> None:
        self._site = site
        self._notices = notices
        self._rooms: dict[str, WebConversation] = {}
        self._users: dict[str, int] = {}

    @contextmanager
    def acquire(self, session: str) -> Iterator[WebConversation]:
        """Give a conversation's room for the block; it is given up when nothing is held in it."""
        room = self._rooms.get(session)
        if room is None:
            room = self._rooms[session] = WebConversation(session, self._site, self._notices)
        self._users[session] = self._users.get(session, 0) + 1
        try:
            yield room
        finally:
            self._users[session] -= 1
            if not self._users[session]:
                del self._users[session]
                if room.idle:
                    del self._rooms[session]

    async def watch_erasures(self) -> None:
        """Take back what was erased, from wherever that was done, until cancelled."""
        while True:
            await anyio.sleep(ERASURE_CHECK_SECONDS)
            for session in list(self._rooms):
                if session not in self._rooms:
                    continue
                with self.acquire(session) as room:
                    try:
                        await room.retract_erased()
                    except Exception as error:  # noqa: BLE001 (the next look finds it)
                        logger.info("what was erased is looked for later: %s", type(error).__name__)


logger = logging.getLogger(__name__)

PAGE_SIZE = 50
"""Lines that a page gets at first, and with each wish for older ones."""

_LOOKED_THROUGH = 200
"""Newest lines among which a page's last one, or an answer that comes again, is looked for."""

_MOST_KNOWN = 1_000


@dataclass(frozen=True, slots=True)
class PagePosition:
    """What a page has.

    Attributes:
        after: The position of its last line; 0 where it has none.
        erasure_version: The transcript's when it got them: of another one it gets all anew.
    """

    after: int = 0
    erasure_version: str = ""


class WebConversation:
    """Shows one conversation in all pages that are open on it.

    Args:
        session: Its key.
        site: Reads what was said, and makes it HTML.
        notices: What is on no tape.
    """

    def __init__(self, session: str, site: WebBackend, notices: NoticeStore) -> None:
        self.session = session
        self._site = site
        self._notices = notices
        self._tabs: set[PageQueue] = set()
        self._pending: OrderedDict[str, str] = OrderedDict()
        self._known: OrderedDict[str, None] = OrderedDict()
        self._position: int | None = None
        self._mark: str | None = None
        self._lock = anyio.Lock()
        self._partial: tuple[str, str] | None = None
        self._activity: str | None = None
        self._answered = ""

    @property
    def idle(self) -> bool:
        """True where nothing is lost with this object."""
        running = self._partial is not None or self._activity is not None
        return not (self._tabs or self._pending or running)

    def has_message(self, message: str) -> bool:
        """Say whether a message was accepted, as far as is known here."""
        return message in self._pending or message in self._known

    # Pages.

    @contextmanager
    def detach_on_exit(self, tab: PageQueue) -> Iterator[None]:
        """Let a page go at the end of the block; ``enter`` lets it in."""
        try:
            yield
        finally:
            self._tabs.discard(tab)

    async def attach(self, tab: PageQueue, seen: PagePosition) -> None:
        """Send a page what it lacks, and from now on all that comes.

        Args:
            tab: The page's queue.
            seen: What it has.
        """
        async with self._lock:
            await self._take_back()
            await self._advance()
            after = seen.after if seen.erasure_version == self._mark else 0
            lines, reset = await self._behind(after)
            older = len(lines) >= PAGE_SIZE
            begin = lines[0].position if older else 0
            # What the tape got since the step above comes to all pages, with the next one.
            lines = [line for line in lines if line.position <= (self._position or 0)]
            rows = await self._rows(lines, begin if reset else after)
            # From here on nothing is awaited: no frame is missed, and none comes twice.
            pending = self._pending.values()
            tab.put(lines_frame(rows, pending, reset=reset, older=older, mark=self._mark))
            for kind, frame in (
                ("activity", self._activity),
                ("partial", self._partial and self._partial[1]),
            ):
                if frame is not None:
                    tab.put_latest(kind, frame)
            self._tabs.add(tab)

    async def send_older(self, tab: PageQueue, before: int) -> None:
        """Send a page the lines before a position."""
        lines = await self._site.transcript.newest(self.session, PAGE_SIZE, before)
        more = len(lines) == PAGE_SIZE
        rows = await self._rows(lines, lines[0].position if more else 0, before)
        tab.put(encode({"type": "older", "lines": rows, "more": more}))

    # What comes.

    def show_accepted(self, inbound: Inbound) -> None:
        """Show a message that is durable, until the tape shows it."""
        if inbound.pressed_message_id is None and not self.has_message(inbound.id):
            row = pending_message_json(inbound)
            self._pending[inbound.id] = encode(row)
            self._send(lines_frame([row]))

    async def refresh(self) -> None:
        """Send what the tape has by now, if a page is open."""
        if self._tabs:
            async with self._lock:
                await self._advance()

    async def retract_erased(self) -> None:
        """Take back what was erased, if a page is open."""
        if self._tabs:
            async with self._lock:
                await self._take_back()

    async def show_activity(self, activity: Activity) -> None:
        """Show what the bot is doing."""
        if activity.state == "idle":
            self._partial = None
        frame = encode({"type": "activity", "state": activity.state, "detail": activity.detail})
        self._activity = frame if activity.state != "idle" else None
        if activity.state != "tool":
            # The message that is being answered is on the tape by now.
            await self.refresh()
        for tab in self._tabs:
            tab.put_latest("activity", frame)

    async def show_partial(self, partial: Partial) -> None:
        """Show an answer so far."""
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
        for tab in self._tabs:
            tab.put_latest("partial", frame)

    async def show_answer(self, answer: Answer) -> None:
        """Show an answer; when this returns it is on the tape, or kept as a notice.

        Raises:
            BusError: The notice could not be kept.
        """
        async with self._lock:
            self._answered = answer.id
            self._partial = None
            for tab in self._tabs:
                tab.drop("partial")
            was_shown = answer.id in self._known
            await self._advance()
            await self._take_back()
            if was_shown and answer.files and self._tabs:
                await self._show_again(answer.id)
            if not await self._on_tape(answer):
                await self._keep(answer)

    # Inside; under the lock.

    async def _advance(self) -> None:
        """Read what the tape has behind the last line that is known, and send it to all pages."""
        transcript = self._site.transcript
        first = self._position is None
        if self._position is None:
            lines = await transcript.newest(self.session, PAGE_SIZE)
        else:
            lines = await transcript.since(self.session, self._position)
        rows = [] if first or not self._tabs else await messages_json(self._site, lines, ())
        self._position = lines[-1].position if lines else self._position or 0
        for line in lines:
            self._note(line)
            self._pending.pop(line.id, None)
        if rows:
            self._send(lines_frame(rows))

    async def _behind(self, after: int) -> tuple[list[TranscriptMessage], bool]:
        """Return the lines behind a page's last one; the newest and True where it is to begin anew."""
        newest = await self._site.transcript.newest(self.session, PAGE_SIZE)
        known = newest
        if after > 0 and newest and newest[0].position > after:
            known = await self._site.transcript.newest(self.session, _LOOKED_THROUGH)
        if after > 0 and any(line.position == after for line in known):
            return [line for line in known if line.position > after], False
        return newest, True

    async def _on_tape(self, answer: Answer) -> bool:
        if answer.id in self._known:
            return True
        if answer.stream is None:
            # No turn's; it was never on its way to a tape.
            return False
        lines = await self._site.transcript.newest(self.session, _LOOKED_THROUGH)
        return any(line.id == answer.id for line in lines)

    async def _show_again(self, answer: str) -> None:
        """Send an answer's line anew: its files, which another process made, were not here with its words."""
        lines = await self._site.transcript.newest(self.session, PAGE_SIZE)
        found = [line for line in lines if line.id == answer]
        if found:
            rows = await messages_json(self._site, found, ())
            self._send(lines_frame(rows))

    async def _keep(self, answer: Answer) -> None:
        notice = Notice(
            answer.id,
            self._position or 0,
            answer.text,
            datetime.now(UTC).isoformat(timespec="microseconds"),
            tuple((one.label, one.command) for one in answer.buttons),
            tuple((one.name, str(one.path)) for one in answer.files),
        )
        if await self._notices.add(self.session, notice) and self._tabs:
            rows = await messages_json(self._site, (), [notice])
            self._send(lines_frame(rows))

    async def _take_back(self) -> None:
        """Let pages begin anew once something was erased: they may show what the tape does not say any more."""
        mark = await self._site.transcript.erasure_version(self.session)
        if mark == self._mark or self._mark is None or not self._tabs:
            self._mark = mark
            return
        lines = await self._site.transcript.newest(self.session, PAGE_SIZE)
        older = len(lines) >= PAGE_SIZE
        rows = await self._rows(lines, lines[0].position if older else 0)
        self._send(lines_frame(rows, self._pending.values(), reset=True, older=older, mark=mark))
        self._mark = mark

    async def _rows(
        self, lines: Sequence[TranscriptMessage], first: int, before: int | None = None
    ) -> list[MessageJson]:
        """Return lines, with the notices that came from a position on, up to another."""
        notices = [
            one
            for one in await self._notices.load(self.session)
            if one.position >= first and (before is None or one.position < before)
        ]
        return await messages_json(self._site, lines, notices)

    def _note(self, line: TranscriptMessage) -> None:
        # Not its words: they may have to be forgotten.
        self._known[line.id] = None
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)

    def _send(self, frame: str) -> None:
        for tab in self._tabs:
            tab.put(frame)


MAX_QUEUED_FRAMES = 64
"""Frames that one page may have waiting."""

MAX_QUEUED_CHARACTERS = 16_000_000
"""Characters of them beyond which none is added: lines are long at times, and a page is free to ask for many."""


class PageQueue:
    """One page's queue. Frames are texts, encoded once for all pages."""

    def __init__(self) -> None:
        self._frames: deque[str] = deque()
        self._characters = 0
        self._newest: dict[str, str] = {}
        self._filled = anyio.Event()
        self.overflowed = anyio.Event()

    def put(self, frame: str) -> None:
        """Add a frame; returns at once."""
        if len(self._frames) >= MAX_QUEUED_FRAMES or self._characters >= MAX_QUEUED_CHARACTERS:
            self.overflowed.set()
            return
        self._frames.append(frame)
        self._characters += len(frame)
        self._filled.set()

    def put_latest(self, kind: str, frame: str) -> None:
        """Add a frame that takes the place of an earlier one of its kind; returns at once."""
        self._newest.pop(kind, None)
        self._newest[kind] = frame
        self._filled.set()

    def drop(self, kind: str) -> None:
        """Forget the frame of a kind, if it waits."""
        self._newest.pop(kind, None)

    async def get(self) -> str:
        """Return the next frame, waiting for it."""
        while not self._frames and not self._newest:
            self._filled = anyio.Event()
            await self._filled.wait()
        if self._frames:
            frame = self._frames.popleft()
            self._characters -= len(frame)
            return frame
        return self._newest.pop(next(iter(self._newest)))
