"""Wake-ups between processes, over PostgreSQL's LISTEN/NOTIFY.

SQL sends one with ``tell(topic)``. A wake-up is a hint that arrives after the commit and may be
lost, so waiters also poll.
"""

from __future__ import annotations

import logging

import anyio
import psycopg

from bot.core.database.connections import Database
from bot.core.errors import DatabaseUnavailable

logger = logging.getLogger(__name__)

POLL = 0.25
"""Seconds after which a waiter polls by itself."""

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0


class Wakeups:
    """Listens on a dedicated connection: behind a transaction pooler LISTEN receives nothing.

    Args:
        database: The database that sends the notifications.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._events: dict[str, anyio.Event] = {}
        self.listening = False

    def event(self, topic: str) -> anyio.Event:
        """Return an event that the topic's next wake-up sets; get it, then query, then wait."""
        return self._events.setdefault(topic, anyio.Event())

    async def wait(self, event: anyio.Event, seconds: float = POLL) -> None:
        """Wait for an event, at most for some seconds."""
        with anyio.move_on_after(seconds):
            await event.wait()

    def wake(self, topic: str) -> None:
        """Wake the waiters of a topic in this process."""
        event = self._events.pop(topic, None)
        if event is not None:
            event.set()

    async def run(self) -> None:
        """Listen until cancelled; reconnect after a lost connection."""
        pause = _FIRST_PAUSE
        while True:
            try:
                async with self._database.dedicated_connection() as connection:
                    await connection.execute("listen tapebot")
                    self.listening = True
                    pause = _FIRST_PAUSE
                    self._wake_all()
                    async for one in connection.notifies():
                        self.wake(one.payload)
            except (psycopg.Error, DatabaseUnavailable) as error:
                logger.debug("not receiving wake-ups for now: %s", error)
            finally:
                self.listening = False
            await anyio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _wake_all(self) -> None:
        """Wake all waiters: notifications may have been lost while nobody listened."""
        for topic in list(self._events):
            self.wake(topic)
