"""Receive updates: publish quick ones at once, and store those that wait in their chat's lane.

Rule 1: an update is accepted once its message is on the bus or its file is in the spool.
Rule 2: within a chat everything stays in order; slow events wait in the chat's own lane.
Rule 3: the parts of an album, and of a long text that the client split, are one message.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import anyio

from bot.bus import BusClosed, BusError, SharedSpool, Spool, waiting_text
from bot.core.i18n import N_, _
from channels.base import NOT_TAKEN_TEXT, ChannelContext
from channels.intake import Intake
from channels.keyed_executor import KeyedExecutor
from channels.telegram.api import Backoff, TelegramTiming
from channels.telegram.messenger import TelegramMessenger
from channels.telegram.moved_chats import MovedChats
from channels.telegram.updates import UpdateReader, read_update_id
from channels.telegram.user_events import TelegramEvent

logger = logging.getLogger(__name__)

_ANONYMOUS = N_(
    "I cannot see who you are, since you write in the name of a chat. Send it in your own name."
)
_MAX_HANDLED_UPDATES = 2_000
_MAX_WAITING_MESSAGES = 5_000
"""The most messages that may wait in one chat's lane; their content is in the spool."""


class TelegramIntake:
    """Handle updates, whether polled, received by webhook or read from a spool."""

    def __init__(
        self,
        intake: Intake,
        context: ChannelContext,
        *,
        reader: UpdateReader,
        spool: Spool,
        executor: KeyedExecutor,
        messenger: TelegramMessenger,
        moved: MovedChats,
        timing: TelegramTiming,
    ) -> None:
        self._intake = intake
        self._shared = context.spool
        self._reader = reader
        self._spool = spool
        self._executor = executor
        self._messenger = messenger
        self._moved = moved
        self._timing = timing
        self._handled: OrderedDict[int, None] = OrderedDict()
        self._open_groups: dict[str, MessageGroup] = {}
        self._waiting: Counter[str] = Counter()
        self._fetching: Counter[str] = Counter()
        self._lock = anyio.Lock()
        self._caught_up = anyio.Event()

    async def resume(self) -> None:
        """Queue updates that the previous run stored and did not handle; call before new ones."""
        for number, raw in await self._spool.load():
            self._mark_handled(number)
            event = self._reader.read(raw)
            if event is not None and event.kind != "unreadable":
                self._enqueue(self._moved.in_session(event))
            else:
                await self._spool.remove(number)

    async def learn_moves(self, batch: list[Any]) -> None:
        """Learn first which chats have new ids: their messages may come before Telegram says so.

        Raises:
            BusError: It could not be kept; the batch must be sent again.
        """
        for raw in batch:
            await self._moved.learn_from(raw)

    def mark_caught_up(self) -> None:
        """Record that all updates which were pending at the start have been received.

        Until then, an album of which the previous run received some parts may get further ones.
        """
        self._caught_up.set()

    async def handle_update(self, raw: Any) -> None:
        """Handle a raw update; return once it is durable or skipped.

        Raises:
            BusError: It was not accepted and must be sent again.
        """
        number = read_update_id(raw)
        if number is None:
            logger.warning("an update without an id is skipped")
            return
        # One at a time: a webhook delivers several concurrently.
        async with self._lock:
            if number in self._handled:
                return
            try:
                await self._moved.learn_from(raw)
                event = self._reader.read(raw)
                if event is not None:
                    await self._handle(self._moved.in_session(event), raw)
            except BusError:
                raise
            except Exception:  # otherwise the update would end the channel at every start
                logger.exception("the update %s is skipped: it failed", number)
            self._mark_handled(number)

    async def _handle(self, event: TelegramEvent, raw: Any) -> None:
        group = self._open_groups.get(event.address.session)
        # Only a complete album shows whether one of its parts mentions the bot.
        part = event.media_group_id is not None or (group is not None and group.accepts(event))
        if self._intake.is_repeated(event) or not (part or self._intake.is_relevant(event)):
            return
        async with self._intake.speaking_to(event):
            role = await self._intake.admit(event, self._intake.once)
            if role is None:
                anonymous = event.kind == "message" and event.sender.id.startswith("-")
                if anonymous and event.text.startswith("/pair"):
                    self._intake.tell(event, _(_ANONYMOUS))
                return
            self._messenger.note_forum(event.address, is_forum=event.is_forum)
            if event.callback_query_id is not None:
                press = partial(self._messenger.presses.end, event.callback_query_id)
                self._executor.submit(f"press {event.callback_query_id}", press)
            if event.kind == "unreadable":
                logger.warning("the update %s has nothing that can be read", event.update_id)
                await self._intake.refuse(event, _(NOT_TAKEN_TEXT))
            elif self._needs_spooling(event):
                await self._spool_event(event, raw)
            else:
                await self._intake.publish([event], role, self._intake.once)
            self._intake.remember_text(event)

    def _needs_spooling(self, event: TelegramEvent) -> bool:
        lane = event.address.session
        if event.files or event.media_group_id is not None or event.is_long_text:
            return True
        # /stop overtakes only downloads; other waiting events are soon handled, and it stops them.
        overtakes = event.urgent and self._fetching[lane] > 0
        return self._executor.is_busy(lane) and not overtakes

    async def _spool_event(self, event: TelegramEvent, raw: Any) -> None:
        if self._waiting[event.address.session] >= _MAX_WAITING_MESSAGES:
            await self._intake.refuse(event, waiting_text(_MAX_WAITING_MESSAGES))
            return
        await self._intake.once(event, partial(self._spool.store_claimed, event.update_id, raw))
        self._enqueue(event)

    def _enqueue(self, event: TelegramEvent) -> None:
        """Queue an event in its chat's lane, with the message group that it belongs to."""
        lane = event.address.session
        self._waiting[lane] += 1
        self._fetching[lane] += bool(event.files)
        group = self._open_groups.get(lane)
        if group is not None and group.accepts(event):
            group.add(event)
            return
        if group is not None:
            group.close()
        self._open_groups[lane] = group = MessageGroup(event)
        self._executor.submit(lane, partial(self._run_group, lane, group))

    # Inside the chat's lane.

    async def _run_group(self, lane: str, group: MessageGroup) -> None:
        events = await group.complete(
            self._timing.message_group_wait, self._wait_for_pending_updates
        )
        if self._open_groups.get(lane) is group:
            del self._open_groups[lane]
        try:
            async with self._intake.speaking_to(events[0]):
                await self._publish_group(events)
        except Exception:  # otherwise they would fail at every start
            logger.exception("messages of %s are skipped: they failed", lane)
        finally:
            self._waiting[lane] -= len(events)
            self._fetching[lane] -= sum(bool(event.files) for event in events)
            self._waiting, self._fetching = +self._waiting, +self._fetching
        # The first part is removed last: an album without it would be published under another id.
        for event in reversed(events):
            await self._spool.remove(event.update_id)

    async def _publish_group(self, events: list[TelegramEvent]) -> None:
        until_done = self._intake.until_done
        # The sender may have lost access while this waited. Replies to strangers were sent before.
        access = partial(self._intake.authorize, events[0], waited=True)
        role = (await until_done(None, access)).role
        if role is not None and any(map(self._intake.is_relevant, events)):
            await self._intake.publish(events, role, until_done)

    async def _wait_for_pending_updates(self) -> None:
        await self._caught_up.wait()
        if self._shared is not None:
            # With slow storage, updates that another process received may be read late.
            with suppress(BusError):
                for _number, raw in await self._shared.fetch_pending(wait=False):
                    await self.handle_update(raw)
        async with self._lock:
            pass

    def _mark_handled(self, number: int) -> None:
        self._handled[number] = None
        if len(self._handled) > _MAX_HANDLED_UPDATES:
            self._handled.popitem(last=False)


class MessageGroup:
    """Consecutive messages of one authorized sender in one chat that belong together."""

    def __init__(self, first: TelegramEvent) -> None:
        self.parts = [first]
        self._closed = False
        self._changed = anyio.Event()
        self._close_unless_more()

    def accepts(self, event: TelegramEvent) -> bool:
        """Return whether an event is the next part of the group."""
        last = self.parts[-1]
        if self._closed or event.kind != "message" or last.sender.id != event.sender.id:
            return False
        if last.media_group_id is not None or event.media_group_id is not None:
            return last.media_group_id == event.media_group_id
        plain = event.is_plain_text and event.quote is None and not event.text.startswith("/")
        return last.is_long_text and plain

    def add(self, part: TelegramEvent) -> None:
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
    ) -> list[TelegramEvent]:
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


class SpoolConsumer:
    """Handle the updates of a shared spool, in order."""

    def __init__(self, spool: SharedSpool, intake: TelegramIntake, timing: TelegramTiming) -> None:
        self._spool = spool
        self._intake = intake
        self._pause = Backoff(timing)

    async def run(self) -> None:
        """Handle updates until cancelled; one that is not accepted stays, with all after it."""
        while True:
            batch = await self._spool.fetch_pending()
            done: list[int] = []
            try:
                for number, raw in batch:
                    await self._intake.handle_update(raw)
                    done.append(number)
            except BusError as error:
                if not isinstance(error, BusClosed):
                    logger.warning("an update was not accepted: %s", error)
            try:
                # Updates that wait in a lane stay in the spool until they are handled.
                await self._spool.delete_pending(done)
            except BusError as error:
                logger.warning("updates that were already accepted will come again: %s", error)
                done.clear()
            if len(done) == len(batch):
                self._pause.reset()
            else:
                await self._pause.wait()
