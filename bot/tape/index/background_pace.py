"""When an index is brought in line in the background: soon, but beside nobody who uses the store.

Rule 1: a round begins a second after a change, so that what follows at once is in it.
Rule 2: while little is new it waits for more: to index one entry or thirty writes about the same pages, and a
    search does not wait, since it scans what is new.
Rule 3: each portion of work waits while the store is being used, where a turn may begin at any moment.
"""

from __future__ import annotations

from time import monotonic

import anyio

_LINGER, _LINGER_LONG = 1.0, 600.0
"""Seconds that a round waits for more changes: at least, and while little is new."""

_MANY = 30
"""New entries that no round waits long with."""

_QUIET = 0.2
"""Seconds since the store was last used, after which a portion is worked."""


class BackgroundPace:
    """Decides when the background task of an index works."""

    def __init__(self) -> None:
        self._used = monotonic()
        self.begin_round()

    def begin_round(self) -> None:
        """Wait for what changes from now on; the round takes in all that has changed before."""
        self._change, self._due, self._new = anyio.Event(), anyio.Event(), 0

    @property
    def changed(self) -> bool:
        """Whether something has changed since the round began."""
        return self._change.is_set()

    def note_changed(self, entries: int, *, soon: bool) -> None:
        """Note a change.

        Args:
            entries: How many entries are new.
            soon: Whether it must not wait for more.
        """
        self.note_used()
        self._change.set()
        self._new += entries
        if soon or self._new >= _MANY:
            self._due.set()

    def note_used(self) -> None:
        """Note that the store is being used."""
        self._used = monotonic()

    async def wait_for_changes(self) -> None:
        """Wait until enough has changed for the next round, or something long ago."""
        await self._change.wait()
        await anyio.sleep(_LINGER)
        with anyio.move_on_after(_LINGER_LONG - _LINGER):
            await self._due.wait()

    async def give_way(self) -> None:
        """Wait a moment if somebody has just used the store, and so may be about to do so again."""
        if (left := self._used + _QUIET - monotonic()) > 0:
            await anyio.sleep(left)
