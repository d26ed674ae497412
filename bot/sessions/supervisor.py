"""The supervisor: gives every session that has something a worker, and contains its failures."""

from __future__ import annotations

import logging
from collections import Counter

import anyio

from bot.bus import SessionInbox
from bot.sessions.services import SessionServices
from bot.sessions.worker import SessionWorker

logger = logging.getLogger(__name__)

_GIVE_UP_AFTER = 3
_PAUSE = 1.0


class Supervisor:
    """Runs session workers side by side.

    Args:
        services: What workers share.
    """

    def __init__(self, services: SessionServices) -> None:
        self._services = services
        self._failures: Counter[str] = Counter()
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
        give_up = self._failures[inbox.session] >= _GIVE_UP_AFTER
        self._running += 1
        try:
            await SessionWorker(inbox, self._services, give_up=give_up).run()
        except Exception:  # whatever it is, other sessions go on
            logger.exception("the worker of session %s failed", inbox.session)
            self._failures[inbox.session] += 1
            await self._services.agent.clock.sleep(_PAUSE)
        else:
            del self._failures[inbox.session]
        finally:
            self._running -= 1
            inbox.release()
