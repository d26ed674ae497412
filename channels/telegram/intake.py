"""Receive updates, authorize their senders and publish them to the bus.

Rule 1: nothing of anybody is fetched, stored or answered before the ``Authorizer`` accepts them;
events that waited are authorized again.
Rule 2: an update is accepted once its message is on the bus or its file is in the spool.
Rule 3: within a chat everything stays in order; slow events wait in the chat's own lane.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import anyio

from bot.bus import (
    AccessDecision,
    AccessRequest,
    BusClosed,
    BusError,
    ChannelPort,
    Inbound,
    InvalidInbound,
    Role,
    SessionFull,
    Spool,
    waiting_text,
)
from bot.core.i18n import N_, _, use_language
from channels.base import NOT_TAKEN_TEXT, ChannelContext, tell_if_not_taken
from channels.keyed_executor import KeyedExecutor
from channels.telegram.api import Backoff, TelegramTiming
from channels.telegram.inbound_composer import InboundComposer, MessageGroup, RecentMessages
from channels.telegram.moved_chats import MovedChats
from channels.telegram.notices import NoticeSender
from channels.telegram.updates import UpdateReader, read_update_id
from channels.telegram.user_events import UserEvent

_MAX_NOTIFIED_UPDATES = 200

ResultT = TypeVar("ResultT")


class InboundPublisher:
    """Publish inbound messages, and notify senders when that fails."""

    def __init__(self, port: ChannelPort, notices: NoticeSender, timing: TelegramTiming) -> None:
        self._port = port
        self._notices = notices
        self._timing = timing
        self._notified_updates: deque[int] = deque(maxlen=_MAX_NOTIFIED_UPDATES)

    async def publish(self, event: UserEvent, inbound: Inbound) -> None:
        """Publish a message; drop one that the bus rejects permanently.

        If the session is full, the sender of a message that expects an answer is notified.

        Raises:
            BusError: A retry may succeed; the sender was notified.
        """
        try:
            await self.notify_on_error(
                event, partial(self._port.publish, inbound), asks=inbound.expects_answer
            )
        except SessionFull as full:
            # A message that expects no answer is dropped silently.
            if inbound.expects_answer:
                self._notices.report_rejected(event, str(full))
            logger.info("a message of %s is skipped: %s", inbound.session, full)
        except InvalidInbound as invalid:
            logger.warning("a message of %s is skipped: %s", inbound.session, invalid)

    async def notify_on_error(
        self, event: UserEvent, act: Callable[[], Awaitable[ResultT]], *, asks: bool
    ) -> ResultT:
        """Run an action; if it fails and a retry may succeed, notify the sender once per update.

        Raises:
            BusError: The action failed.
        """
        try:
            return await act()
        except (BusClosed, SessionFull, InvalidInbound):
            raise
        except BusError as error:
            if asks and event.update_id not in self._notified_updates:
                self._notified_updates.append(event.update_id)
                self._notices.send(event.address, _("{error} (Retrying.)", error=error))
            raise

    async def retry(self, event: UserEvent, act: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Run an action until it succeeds.

        Raises:
            BusClosed: The program is stopping.
        """
        pause = Backoff(self._timing)
        while True:
            try:
                return await act()
            except BusClosed:
                raise
            except BusError as error:
                logger.warning("an update of %s waits: %s", event.address.session, error)
            await pause.wait()


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
        channel: str,
        context: ChannelContext,
        port: ChannelPort,
        *,
        reader: UpdateReader,
        spool: Spool,
        executor: KeyedExecutor,
        composer: InboundComposer,
        notices: NoticeSender,
        recent: RecentMessages,
        moved: MovedChats,
        timing: TelegramTiming,
    ) -> None:
        self._channel = channel
        self._context = context
        self._publisher = InboundPublisher(port, notices, timing)
        self._moved = moved
        self._reader = reader
        self._spool = spool
        self._executor = executor
        self._composer = composer
        self._notices = notices
        self._recent = recent
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
            if number not in self._handled:
                await self._process_update(number, raw)

    async def _process_update(self, number: int, raw: Any) -> None:
        try:
            await self._moved.learn_from(raw)
            event = self._reader.read(raw)
            if event is not None:
                event = self._moved.in_session(event)
            if event is not None and not self._is_ignored(event):
                language = await self._context.language(self._channel, event.sender)
                with use_language(language):
                    async with tell_if_not_taken(partial(self._reject, event)):
                        await self._accept(event, raw)
        except BusError:
            raise
        except Exception:  # otherwise the update would end the channel at every start
            logger.exception("the update %s is skipped: it failed", number)
        self._mark_handled(number)

    # Handling of new events.

    def _is_ignored(self, event: UserEvent) -> bool:
        repeated = event.kind == "edit" and self._recent.has_text(event)
        return repeated or not self._is_relevant(event)

    async def _accept(self, event: UserEvent, raw: Any) -> None:
        role = await self._authorize(event)
        if role is None:
            return
        if event.callback_query_id is not None:
            self._notices.expect_press_result(event.callback_query_id)
        if event.kind == "unreadable":
            await self._reject(event, _(NOT_TAKEN_TEXT))
        elif self._needs_spooling(event):
            await self._spool_event(event, raw)
        else:
            inbound = await self._composer.compose([event], role, asks=self._expects_answer(event))
            await self._publisher.publish(event, inbound)
        if event.kind in ("message", "edit"):
            self._recent.record_text(event)

    async def _reject(self, event: UserEvent, text: str) -> None:
        """Tell who sent a message to the bot, if they have access, why it is not accepted."""
        if not self._expects_answer(event):
            return
        if (await self._request_access(event, None)).role is not None:
            self._notices.report_rejected(event, text)

    def _is_relevant(self, event: UserEvent) -> bool:
        """Return whether an event may be published if its sender is authorized."""
        group = self._open_groups.get(event.address.session)
        # Only a complete album shows whether one of its parts mentions the bot.
        # Of an edit the tape knows whether it changes a message that was for the bot.
        return (
            self._expects_answer(event)
            or event.private
            or (event.kind == "edit" and not event.is_forwarded)
            or self._context.group_policy.keep_context
            or event.media_group_id is not None
            or (group is not None and group.accepts(event))
        )

    def _expects_answer(self, event: UserEvent) -> bool:
        if event.kind == "reaction":
            return False
        platform, ids = self._channel.partition("-")[0], self._moved.ids(event.address)
        always = self._context.group_policy.always_answer
        return event.addressed or any(f"{platform}:{one}" in always for one in ids)

    async def _authorize(self, event: UserEvent) -> Role | None:
        """Return the sender's role; if they have none, send them the reply of the access control.

        Raises:
            BusError: The access control could not store a change.
        """
        text = event.text if event.private and event.kind == "message" else None
        decision = await self._request_access(event, text)
        if decision.role is None and decision.reply is not None and self._expects_answer(event):
            self._notices.send(event.address, decision.reply)
        anonymous = event.sender.id.startswith("-") and event.text.startswith("/pair")
        if decision.role is None and anonymous and event.kind == "message":
            self._notices.send(event.address, _(_ANONYMOUS))
        return decision.role

    async def _request_access(self, event: UserEvent, text: str | None) -> AccessDecision:
        access_request = AccessRequest(
            address=event.address,
            sender=event.sender,
            private=event.private,
            chat_ids=(event.address.chat_id,),
            text=text,
        )
        return await self._context.access.authorize(access_request)

    def _needs_spooling(self, event: UserEvent) -> bool:
        lane = event.address.session
        if event.files or event.media_group_id is not None or event.is_long_text:
            return True
        # /stop overtakes only downloads; other waiting events are soon handled, and it stops them.
        overtakes = event.urgent and self._fetching[lane] > 0
        return self._executor.is_busy(lane) and not overtakes

    async def _spool_event(self, event: UserEvent, raw: Any) -> None:
        asks = self._expects_answer(event)
        if self._waiting[event.address.session] >= _MAX_WAITING_MESSAGES:
            if asks:
                self._notices.report_rejected(
                    event,
                    waiting_text(_MAX_WAITING_MESSAGES),
                )
            return
        put = partial(self._spool.store_claimed, event.update_id, raw)
        await self._publisher.notify_on_error(event, put, asks=asks)
        self._enqueue(event)

    def _enqueue(self, event: UserEvent) -> None:
        """Queue an event in its chat's lane, with the message group that it belongs to."""
        lane = event.address.session
        self._waiting[lane] += 1
        if event.files:
            self._fetching[lane] += 1
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
        language = await self._context.language(self._channel, events[0].sender)
        try:
            with use_language(language):
                async with tell_if_not_taken(partial(self._reject, events[0])):
                    await self._publish_group(events)
        except BusClosed:
            return  # the spool keeps the updates for the next start
        except Exception:  # otherwise they would fail at every start
            logger.exception("messages of %s are skipped: they failed", lane)
        finally:
            self._waiting[lane] -= len(events)
            self._waiting += Counter()
            self._fetching[lane] -= sum(bool(event.files) for event in events)
            self._fetching += Counter()
        # The first part is removed last: an album without it would be published under another id.
        for event in reversed(events):
            await self._spool.remove(event.update_id)

    async def _wait_for_pending_updates(self) -> None:
        await self._caught_up.wait()
        shared = self._context.spool
        if shared is not None:
            # With slow storage, updates that another process received may be read late.
            with suppress(BusError):
                for _, raw in await shared.fetch_pending(wait=False):
                    await self.handle_update(raw)
        async with self._lock:
            pass

    async def _publish_group(self, events: list[UserEvent]) -> None:
        first = events[0]
        # The sender may have lost access while this waited. Replies to strangers were sent before.
        decision = await self._publisher.retry(first, partial(self._request_access, first, None))
        asks = any(self._expects_answer(event) for event in events)
        keeps = asks or first.private or first.kind == "edit"
        if decision.role is None or not (keeps or self._context.group_policy.keep_context):
            return
        compose = partial(self._composer.compose, events, decision.role, asks=asks)
        inbound = await self._publisher.retry(first, compose)
        await self._publisher.retry(first, partial(self._publisher.publish, first, inbound))

    def _mark_handled(self, number: int) -> None:
        self._handled[number] = None
        if len(self._handled) > _MAX_HANDLED_UPDATES:
            self._handled.popitem(last=False)
