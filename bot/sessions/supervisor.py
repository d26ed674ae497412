"""The supervisor: gives every session that has something a worker, and contains its failures."""

from __future__ import annotations

import logging
from collections import Counter

import anyio

from bot.bus import Address, Answer, SessionInbox
from bot.errors import TapebotError, TapeError
from bot.ids import new_id
from bot.sessions.services import SessionServices
from bot.sessions.worker import SessionWorker

logger = logging.getLogger(__name__)

_GIVE_UP_AFTER = 3
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0


class Supervisor:
    """Runs session workers side by side.

    Args:
        services: What workers share.
    """

    def __init__(self, services: SessionServices) -> None:
        self._services = services
        self._failures: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._running = 0

    async def run(self) -> None:
        """Serve sessions until cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                inbox = await self._services.bus.claim()
                tasks.start_soon(self._serve, inbox)

    def statistics(self) -> dict[str, int]:
        """Return how many sessions have a worker, and how many keep failing."""
        return {"workers": self._running, "failing": len(self._failures)}

    async def _serve(self, inbox: SessionInbox) -> None:
        """Run one session's worker; the one place where an unknown failure is contained."""
        session = inbox.session
        worker = SessionWorker(
            inbox, self._services, give_up=self._faults[session] >= _GIVE_UP_AFTER
        )
        self._running += 1
        failed = False
        try:
            await worker.run()
        except Exception as error:  # whatever it is, other sessions go on
            failed = True
            if worker.progressed:
                self._forget(session)
            self._failures[session] += 1
            if self._failures[session] == 1:
                logger.exception("the worker of session %s failed", session)
            else:
                logger.info("the worker of session %s failed again: %r", session, error)
            # A disk that refuses is no message's fault.
            self._faults[session] += not _refused_by_storage(error)
            if self._failures[session] == 1:
                await self._tell(session, error)
            await self._services.agent.clock.sleep(self._pause(session))
        else:
            self._forget(session)
        finally:
            self._running -= 1
            inbox.release(failed=failed)

    def _forget(self, session: str) -> None:
        del self._failures[session], self._faults[session]

    def _pause(self, session: str) -> float:
        return min(_FIRST_PAUSE * 2.0 ** (self._failures[session] - 1), _LONGEST_PAUSE)

    async def _tell(self, session: str, failure: Exception) -> None:
        """Say in the chat that something is wrong; the tape itself may be what cannot be written."""
        why = _told(failure)
        text = f"Something went wrong here: {why}. Nothing is lost; it is tried again by itself."
        await self._services.bus.send(Answer(Address.parse(session), new_id("notice"), text))


def _told(failure: BaseException) -> str:
    """Return what a person may be told of a failure: our own words, never a foreign error's."""
    if isinstance(failure, TapebotError):
        return str(failure)
    if isinstance(failure, BaseExceptionGroup):
        return _told(failure.exceptions[0])
    return "an error inside tapebot, which is in its log"


def _refused_by_storage(failure: BaseException) -> bool:
    if isinstance(failure, BaseExceptionGroup):
        return all(_refused_by_storage(one) for one in failure.exceptions)
    return isinstance(failure, TapeError)
