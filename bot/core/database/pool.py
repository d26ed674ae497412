"""psycopg's pool with few connections that are used much, and without its locks where nothing waits."""

from __future__ import annotations

from asyncio import TimerHandle, get_running_loop
from collections import deque
from time import monotonic
from typing import Any

from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool

Row = tuple[Any, ...]
Connection = AsyncConnection[Row]

_FEW = 2
"""Connections that are opened as soon as somebody waits for one."""
_PATIENCE = 0.05
"""Seconds for which others wait for a connection in use before one more is opened."""


class _Stack(deque[Connection]):
    """Connections of which the last returned is the next to be used."""

    popleft = deque.pop


class ConnectionPool(AsyncConnectionPool[Connection]):
    """A pool that uses few connections much: each has plans and catalogues of its own to warm up.

    psycopg's pool takes turns. Were its queue not called so any more, this one would, too.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._pool = _Stack()
        self._growth: TimerHandle | None = None

    def take(self) -> Connection | None:
        """Return a connection that is ready; None if there is none.

        It does what ``getconn`` does then, which also takes a lock that guards nothing without an ``await``.
        """
        if self._closed or not self._pool:
            return None
        self._stats[self._REQUESTS_NUM] += 1
        connection = self._pool.popleft()
        self._nconns_min = min(self._nconns_min, len(self._pool))
        connection._pool = self  # noqa: SLF001 (as the pool does)
        return connection

    def give(self, connection: Connection) -> bool:
        """Take a connection back; return False if ``putconn`` must, for somebody or something waits."""
        if (
            self._closed
            or self._waiting
            or self._pool_full_event
            or connection.pgconn.transaction_status != TransactionStatus.IDLE
            or connection._created_at <= self._drained_at  # noqa: SLF001 (as the pool does)
            or connection._expire_at <= monotonic()  # noqa: SLF001
        ):
            return False
        connection._pool = None  # noqa: SLF001
        self._pool.append(connection)
        return True

    def _maybe_grow_pool(self) -> None:
        # One in use is mostly free within milliseconds; a new one costs both sides many for its first plans.
        if self._nconns < _FEW:
            super()._maybe_grow_pool()
        elif self._growth is None:
            self._growth = get_running_loop().call_later(_PATIENCE, self._grow)

    def _grow(self) -> None:
        self._growth = None
        if self._waiting and not self._closed:
            super()._maybe_grow_pool()

    async def _shrink_pool(self) -> None:
        if self._nconns > self._min_size and self._nconns_min > 0:
            # It closes the next in turn, which shall be the one that was unused for longest.
            self._pool.rotate(-1)
        await super()._shrink_pool()
