"""The session worker: opens a session, serves it, and tells which messages broke it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import anyio

from bot.bus import DeliveryReport, ReleaseRequest, SessionInbox
from bot.bus.buttons import pressed_button
from bot.core.errors import BusError, TapeNotFound
from bot.core.i18n import use_language
from bot.core.telemetry.active_work import track_work
from bot.runtime.sessions.background_run import Post
from bot.runtime.sessions.edits import is_silent_edit
from bot.runtime.sessions.loop_queue import LoopQueue
from bot.runtime.sessions.message_loop import MessageLoop
from bot.runtime.sessions.services import SessionServices
from bot.runtime.sessions.session import Session, open_session
from bot.runtime.sessions.writer import tell_dead_button


class SessionWorker:
    """Serves one session while it holds its inbox.

    Args:
        inbox: The session's inbox; the caller releases it.
        services: What workers share.

    Attributes:
        failed_on: Platform ids of the messages that were being handled at a failure.
    """

    def __init__(self, inbox: SessionInbox, services: SessionServices) -> None:
        self._inbox = inbox
        self._services = services
        self._loop: MessageLoop | None = None
        # What holds while there is no loop: before the session is open, and once it has ended.
        self._busy = True
        self._progressed = False
        self._leaving = False
        # Whether words of edits that changed nothing may be left in the bus's files.
        self._has_dropped = False
        self.failed_on: tuple[str, ...] = ()

    @property
    def busy(self) -> bool:
        """True while the session is opened, a job runs or an answer is undelivered."""
        return self._busy if self._loop is None else self._loop.busy

    @property
    def progressed(self) -> bool:
        """Whether a turn or ``/new`` has ended."""
        return self._progressed if self._loop is None else self._loop.progressed

    def leave(self) -> None:
        """End as soon as nothing runs and no answer is undelivered."""
        self._leaving = True
        if self._loop is not None:
            self._loop.leave()

    async def run(self, on_idle: Callable[[bool], None]) -> None:
        """Serve until idle for long, or cancelled; an interrupted turn stays open on the tape.

        Args:
            on_idle: Called when the session begins to wait with nothing to do, and when it stops.
        """
        key = self._inbox.session
        queue = LoopQueue(self._inbox)
        with track_work(key, tuple, waits=True):
            if await self._is_wanted(queue):
                await self._serve(queue, on_idle)
            if self._has_dropped:
                # It rewrites the inbox of all chats: so not after each, but with nothing else to do.
                with suppress(BusError):  # the next message tries again
                    await self._services.bus.purge()

    async def _serve(self, queue: LoopQueue, on_idle: Callable[[bool], None]) -> None:
        session = await self._open(queue.post)
        try:
            async with anyio.create_task_group() as tasks:
                self._loop = MessageLoop(
                    session, queue, tasks, working_on=self._working_on, on_idle=on_idle
                )
                if self._leaving:
                    self._loop.leave()
                await self._loop.run()
                self._has_dropped |= self._loop.has_dropped
                tasks.cancel_scope.cancel()
        finally:
            self._services.scopes.active_sessions.pop(session.key, None)
            self._break_cycles(session)

    async def _is_wanted(self, queue: LoopQueue) -> bool:
        """Say whether there is more to do than to refuse presses and silent edits where there is no tape."""
        try:
            return await self._services.store.version(self._inbox.session) > 0
        except TapeNotFound:
            pass
        wanted = False
        while not wanted and (item := queue.next_nowait()) is not None:
            if isinstance(item, DeliveryReport | ReleaseRequest) or callable(item):
                continue  # they are of a refused press
            if is_silent_edit(item.inbound):
                await item.ack()
                self._has_dropped = True
                continue
            if pressed_button(item.inbound) is None:
                queue.post(item)
                wanted = True
                continue
            sender, languages = item.inbound.sender, self._services.languages
            language = await languages.of_sender(item.inbound.address.channel, sender)
            with use_language(language):
                await tell_dead_button(self._services.bus, item.inbound)
            await item.ack()
        self._busy = wanted
        return wanted

    def _break_cycles(self, session: Session) -> None:
        """Break the reference cycles of an ended session, so that its memory is free at once, without the collector."""
        self._busy, self._progressed = self.busy, self.progressed
        self._loop = None
        session.memory.close()

    async def _open(self, post: Post) -> Session:
        """Open the session; no erasure may happen while its state is read from the tape."""
        key, scopes = self._inbox.session, self._services.scopes
        async with scopes.session_locks.read_lock(key):
            with track_work(key, tuple):
                session = await open_session(self._services, key, post, self._working_on)
                scopes.active_sessions[key] = session
                return session

    @contextmanager
    def _working_on(self, messages: Callable[[], Sequence[str]]) -> Iterator[None]:
        """Record the messages that are being handled, for the watchdog and for failure reports."""
        try:
            with track_work(self._inbox.session, messages):
                yield
        except Exception:
            self.failed_on = self.failed_on or tuple(messages())
            raise
