"""Wake-ups: what another process tells of by ``tell(topic)`` in SQL.

A wake-up is a hint: it may be lost, and comes after the commit. Whoever waits for one looks by itself
every so often, too.
"""

from __future__ import annotations

import logging

import anyio
import psycopg

from bot.core.database.connections import Database
from bot.core.errors import DatabaseUnavailable

logger = logging.getLogger(__name__)

POLL = 0.25
"""Seconds after which whoever waits looks by itself."""

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0


class Wakeups:
    """Listens on a connection of its own: one of a pooler that is shared by transactions hears nothing.

    Args:
        database: Where it is told.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._events: dict[str, anyio.Event] = {}
        self.listening = False

    def event(self, topic: str) -> anyio.Event:
        """Return what is set when a topic is next told of. Ask for it first, then look, then wait."""
        return self._events.setdefault(topic, anyio.Event())

    async def wait(self, event: anyio.Event, seconds: float = POLL) -> None:
        """Wait for it, no longer than that."""
        with anyio.move_on_after(seconds):
            await event.wait()

    def tell(self, topic: str) -> None:
        """Wake whoever waits for a topic in this process."""
        event = self._events.pop(topic, None)
        if event is not None:
            event.set()

    async def run(self) -> None:
        """Listen until cancelled; a lost connection is made anew."""
        pause = _FIRST_PAUSE
        while True:
            try:
                async with self._database.dedicated_connection() as connection:
                    await connection.execute("listen tapebot")
                    self.listening = True
                    pause = _FIRST_PAUSE
                    self._tell_all()
                    async for one in connection.notifies():
                        self.tell(one.payload)
            except (psycopg.Error, DatabaseUnavailable) as error:
                logger.debug("wake-ups are not heard for now: %s", error)
            finally:
                self.listening = False
            await anyio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _tell_all(self) -> None:
        """Whatever was told while nobody listened may concern anybody."""
        for topic in list(self._events):
            self.tell(topic)
