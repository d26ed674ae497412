"""Wake-ups between processes, over PostgreSQL's LISTEN/NOTIFY.

SQL sends one with ``tell(topic)``. A wake-up is a hint that arrives after the commit and may be
lost, so waiters also poll. What one process or one channel waits for has a line, that is a channel of NOTIFY, of
its own, so that no other process wakes up for it.
"""

from __future__ import annotations

import hashlib
import logging

import anyio
import psycopg

from bot.core.database.connections import Connection, Database
from bot.core.errors import DatabaseUnavailable

logger = logging.getLogger(__name__)

POLL = 0.25
"""Seconds after which a waiter polls by itself."""

_COMMON = "tapebot"
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
        self._lines: dict[str, str] = {"": _COMMON}
        self._hearing = anyio.CancelScope()
        self.listening = False

    def event(self, topic: str) -> anyio.Event:
        """Return an event that the topic's next wake-up sets; get it, then query, then wait."""
        event = self._events.get(topic)
        if event is None:
            event = self._events[topic] = anyio.Event()
            self._listen_to(topic)
        return event

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
                    pause = _FIRST_PAUSE
                    while True:
                        await self._hear(connection)
            except (psycopg.Error, DatabaseUnavailable) as error:
                logger.debug("not receiving wake-ups for now: %s", error)
            finally:
                self.listening = False
            await anyio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _hear(self, connection: Connection) -> None:
        """Listen until there is one more line to listen to."""
        self._hearing = anyio.CancelScope()
        lines = "; ".join(f'listen "{line}"' for line in self._lines.values())
        await connection.execute(lines.encode())
        self.listening = True
        self._wake_all()
        with self._hearing:
            async for one in connection.notifies():
                self.wake(one.payload)

    def _listen_to(self, topic: str) -> None:
        if _has_own_line(topic) and topic not in self._lines:
            self._lines[topic] = line_of(topic)
            self._hearing.cancel()

    def _wake_all(self) -> None:
        """Wake all waiters: notifications may have been lost while nobody listened."""
        for topic in list(self._events):
            self.wake(topic)


def line_of(topic: str) -> str:
    """Return the channel of NOTIFY that a topic is told on, as ``tapebot.line_of`` in SQL does."""
    if not _has_own_line(topic):
        return _COMMON
    return f"{_COMMON}.{hashlib.sha256(topic.encode()).hexdigest()[:32]}"


def _has_own_line(topic: str) -> bool:
    return topic.startswith(("outbound:", "inbound@"))
