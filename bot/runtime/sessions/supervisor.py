"""The supervisor: run a worker for every session with messages, and contain its failures."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from functools import partial

import anyio
from anyio.abc import TaskGroup

from bot.bus import Address, Answer, SessionInbox
from bot.core.errors import (
    BusError,
    DatabaseError,
    FileUnavailable,
    InvalidEntry,
    InvalidSearch,
    ModelError,
    SessionLost,
    TapebotError,
    TapeError,
    VersionConflict,
)
from bot.core.files import disk_error_text, is_disk_error
from bot.core.i18n import N_, _, use_language
from bot.core.ids import new_id
from bot.core.telemetry.instruments import MetricSample
from bot.core.telemetry.metrics import (
    CONSOLIDATION_BACKLOG,
    SESSIONS_FAILING,
    SESSIONS_HELD,
    count_error,
)
from bot.runtime.sessions.services import SessionServices
from bot.runtime.sessions.worker import SessionWorker

logger = logging.getLogger(__name__)

_CLAIMS = 4
"""Sessions that are waited for at once, so that a bus that is polled gives several with one poll; more
would keep them from other processes."""

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_INSIDE = N_("an error in tapebot (see its log)")
_LONGEST_WAIT = 600.0
_MOST_MOVES = 3


class Supervisor:
    """Runs session workers side by side.

    Args:
        services: What workers share.
    """

    def __init__(self, services: SessionServices) -> None:
        self._services = services
        self._failures: Counter[str] = Counter()
        self._moves: Counter[str] = Counter()
        self._workers: set[SessionWorker] = set()
        self._idle: OrderedDict[SessionWorker, None] = OrderedDict()
        self._unloading: set[SessionWorker] = set()
        self._left = anyio.Event()
        self._claiming = anyio.CancelScope()
        self.fenced = 0

    async def run(self) -> None:
        """Claim and serve sessions until cancelled."""
        async with anyio.create_task_group() as tasks:
            with self._claiming:
                async with anyio.create_task_group() as claims:
                    for _number in range(_CLAIMS):
                        claims.start_soon(self._claim, tasks)

    async def _claim(self, tasks: TaskGroup) -> None:
        while True:
            inbox = await self._services.bus.claim()
            tasks.start_soon(self._serve, inbox)

    async def drain(self, seconds: float) -> None:
        """Claim no more sessions, and let the workers finish.

        What is unfinished then is left to the session's next holder.

        Args:
            seconds: How long the workers have.
        """
        self._claiming.cancel()
        with anyio.move_on_after(seconds):
            for worker in self._workers:
                worker.leave()
            while self._workers:
                self._left = anyio.Event()
                await self._left.wait()

    def statistics(self) -> dict[str, int]:
        """Return the numbers of workers, of failing sessions and of fenced workers."""
        return {
            "workers": len(self._workers),
            "failing": len(self._failures),
            "fenced": self.fenced,
        }

    async def metric_samples(self) -> list[MetricSample]:
        """Return workers and failing sessions as metrics, for ``MonitoringServer.sample``."""
        return [
            MetricSample(SESSIONS_HELD, len(self._workers)),
            MetricSample(SESSIONS_FAILING, len(self._failures)),
        ]

    def _unload_idle(self) -> None:
        """Let the sessions leave that have been idle for longest, while too many are loaded."""
        loaded = len(self._workers) - len(self._unloading)
        for _unused in range(loaded - self._services.most_loaded):
            if not self._idle:
                return
            worker = self._idle.popitem(last=False)[0]
            self._unloading.add(worker)
            worker.leave()

    def _note_idle(self, worker: SessionWorker, idle: bool) -> None:
        if idle:
            self._idle[worker] = None
            self._unload_idle()
        else:
            self._idle.pop(worker, None)

    async def _serve(self, inbox: SessionInbox) -> None:
        """Run one session's worker; unknown failures are contained here and nowhere else."""
        session = inbox.session
        worker = SessionWorker(inbox, self._services)
        failed = False
        try:
            if pause := self._services.poison_messages.pause(session):
                await self._let_others_go_first(session, pause)
            self._workers.add(worker)
            self._unload_idle()
            await worker.run(partial(self._note_idle, worker))
        except Exception as error:  # whatever it is, other sessions go on
            failed = True
            count_error("session", error)
            if is_session_lost(error, session) and self._moves[session] < _MOST_MOVES:
                # Another process holds the session and goes on from the tape.
                self._moves[session] += 1
                self.fenced += 1
                logger.info("session %s continued in another process: %s", session, error)
                return
            if worker.progressed:
                self._forget(session)
            self._failures[session] += 1
            if self._failures[session] == 1:
                logger.exception("the worker of session %s failed", session)
            else:
                logger.info("the worker of session %s failed again: %r", session, error)
            if worker.failed_on and not _from_outside(error):
                self._services.poison_messages.add(session, worker.failed_on, "error")
            if self._failures[session] == 1:
                await self._tell(session, error)
            await self._services.agent.clock.sleep(self._pause(session))
        else:
            self._forget(session)
        finally:
            self._workers.discard(worker)
            self._unloading.discard(worker)
            self._idle.pop(worker, None)
            self._left.set()
            CONSOLIDATION_BACKLOG.mark_done(session)
            inbox.release(failed=failed)

    async def _let_others_go_first(self, session: str, pause: float) -> None:
        """Delay a session that may end the process again, until the others have been served."""
        clock = self._services.agent.clock
        logger.info("session %s failed and waits for %.0f s", session, pause)
        await clock.sleep(pause)
        until = clock.monotonic() + _LONGEST_WAIT
        while clock.monotonic() < until and any(worker.busy for worker in self._workers):
            await clock.sleep(_FIRST_PAUSE)

    def _forget(self, session: str) -> None:
        del self._failures[session], self._moves[session]

    def _pause(self, session: str) -> float:
        return min(_FIRST_PAUSE * 2.0 ** (self._failures[session] - 1), _LONGEST_PAUSE)

    async def _tell(self, session: str, failure: Exception) -> None:
        """Report a failure in the chat; not on the tape, which may be what cannot be written."""
        # The session is closed; a private chat has its person's id on some platforms.
        channel, _sep, chat = session.partition(":")
        language = await self._services.languages.of(f"{channel}:{chat.partition(':')[0]}")
        with use_language(language):
            text = _(
                "Something went wrong: {why}. Nothing is lost, and I will retry.",
                why=_told(failure),
            )
        try:
            await self._services.bus.send(Answer(Address.parse(session), new_id("notice"), text))
        except BusError as error:
            logger.warning("session %s could not be notified of its failure: %s", session, error)


def is_session_lost(failure: BaseException, session: str) -> bool:
    """Return whether a worker failed only because another holder has the session."""
    if isinstance(failure, BaseExceptionGroup):
        return all(is_session_lost(exception, session) for exception in failure.exceptions)
    if isinstance(failure, VersionConflict):
        return failure.tape == session
    return isinstance(failure, SessionLost)


def _told(failure: BaseException) -> str:
    """Return a failure's text for people, never a third-party error's own."""
    if isinstance(failure, TapebotError):
        return f"{failure}"
    if isinstance(failure, BaseExceptionGroup):
        # The group may also hold errors that only followed from the cause.
        told = map(_told, failure.exceptions)
        return next((one for one in told if one != _(_INSIDE)), _(_INSIDE))
    if isinstance(failure, OSError) and is_disk_error(failure):
        return disk_error_text(failure)
    return _(_INSIDE)


def _from_outside(failure: BaseException) -> bool:
    """Return whether a disk, network, database or provider caused it, not a message."""
    if isinstance(failure, BaseExceptionGroup):
        return any(_from_outside(exception) for exception in failure.exceptions)
    if isinstance(failure, InvalidEntry | InvalidSearch):
        return False
    if isinstance(failure, OSError):
        return is_disk_error(failure) or isinstance(failure, ConnectionError | TimeoutError)
    outside = TapeError | BusError | DatabaseError | ModelError | FileUnavailable
    return isinstance(failure, outside)
