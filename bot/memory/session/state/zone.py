"""The memory zone service: read and write long-term memory and daily notes on a session's tape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, tzinfo

from bot.core.clock import Clock, SystemClock, format_time
from bot.core.errors import MemoryRefused
from bot.core.i18n import _, format_number
from bot.memory.gate.memory_validation import check_note_date
from bot.memory.session.state.zone_snapshot import (
    MAX_LONG_TERM_BYTES,
    MemorySnapshot,
    ZoneFold,
    check_note_size,
    render_memory_block,
    zone_entries,
)
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService

ZoneEdit = Callable[[MemorySnapshot], MemorySnapshot]

ComposeZoneEntries = Callable[[MemorySnapshot, list[TapeEntry], int], Sequence[TapeEntry]]
"""Returns the entries to append, given a snapshot, its zone entries and the tape's version."""


class MemoryZone:
    """Read and write the zone of one tape.

    A write is a compare-and-set: it is computed from the newest zone, and appended only if nothing
    came in between.

    Args:
        tape: The tape; each zone is one atomic append to it.
        retention_days: Daily notes older than this are dropped by the next write.
        fold: A fold that somebody else updates; by default the zone keeps its own.
        timezone: The user's time zone, which sets the start of days.
        clock: The current time.
    """

    def __init__(
        self,
        tape: TapeService,
        *,
        retention_days: int = 30,
        fold: ZoneFold | None = None,
        timezone: tzinfo | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._tape = tape
        self.retention_days = retention_days
        self.timezone = timezone
        self._clock = clock or SystemClock()
        self._fold = fold or ZoneFold()
        self._loaded = fold is not None
        if fold is None:
            tape.observe(self._fold.apply)

    def read(self) -> MemorySnapshot:
        """Return the current snapshot, from memory."""
        return self._fold.snapshot

    def now(self) -> datetime:
        """Return the current time, in UTC."""
        return self._clock.now()

    def today(self) -> date:
        """Return today's date for the user."""
        return self.now().astimezone(self.timezone).date()

    def get_context(self) -> str:
        """Return the ``<memory>`` block of the system prompt."""
        return render_memory_block(self.read(), self.today())

    async def load_or_create(self) -> None:
        """Load the zone; create one on a new tape, restore it after a reset, or prune old notes."""
        if not self._loaded:
            for entry in await self._tape.read_entries():
                self._fold.apply(entry)
            self._loaded = True
        if self.read().version == 0:
            await self.edit(lambda _: MemorySnapshot(1))
        elif self._fold.span is None:
            await self.edit(lambda snapshot: snapshot.without_own_memory())
        else:
            await self.prune()

    async def save_long_term(self, content: str) -> None:
        """Replace long-term memory.

        Raises:
            MemoryRefused: It is too long; nothing was saved.
        """
        size = len(content.strip().encode("utf-8", "backslashreplace"))
        if size > MAX_LONG_TERM_BYTES:
            raise MemoryRefused(
                _(
                    "long-term memory holds at most {limit} bytes, and this is {size}: nothing "
                    "was saved; leave out what matters least, and save again",
                    limit=format_number(MAX_LONG_TERM_BYTES),
                    size=format_number(size),
                )
            )
        await self.edit(lambda snapshot: snapshot.with_long_term(content))

    async def append_daily(self, content: str, date: str | None = None) -> None:
        """Append to the note of a day, an ISO date that defaults to today.

        Raises:
            MemoryRefused: The date is invalid or older than the retention, or the note is full.
        """
        day = check_note_date(date, self.today(), self.retention_days)

        def change(snapshot: MemorySnapshot) -> MemorySnapshot:
            return check_note_size(snapshot.with_daily(day, content), day)

        await self.edit(change)

    async def clear(self) -> None:
        """Empty the zone; earlier versions stay on the tape."""
        await self.edit(lambda snapshot: snapshot.without_own_memory())

    async def prune(self) -> int:
        """Drop daily notes older than the retention; return how many were dropped."""
        snapshot = self.read()
        kept = len(snapshot.pruned(self.today(), self.retention_days).dailies)
        dropped = len(snapshot.dailies) - kept
        if dropped:
            await self.edit(_next)
        return dropped

    def zone_entries_for(self, snapshot: MemorySnapshot) -> list[TapeEntry]:
        """Return the entries that write a snapshot, without old notes."""
        pruned = snapshot.pruned(self.today(), self.retention_days)
        return zone_entries(pruned, format_time(self._clock.now()))

    async def edit(
        self, change: ZoneEdit | None, compose: ComposeZoneEntries | None = None
    ) -> MemorySnapshot:
        """Write a changed zone, with other entries in one atomic append, and return what is now current.

        ``change`` returns the next snapshot, or the current one if there is nothing to write; None changes
        nothing. ``compose`` returns all entries to append; by default those of the zone.

        Raises:
            MemoryRefused: ``change`` refused; nothing was written.
            VersionConflict: Another process wrote to the tape.
        """

        def entries(version: int) -> Sequence[TapeEntry]:
            base = self.read()
            fresh = base if change is None else change(base)
            zone = [] if fresh is base else self.zone_entries_for(fresh)
            return zone if compose is None else compose(fresh, zone, version)

        await self._tape.append_composed(entries)
        return self.read()

    async def reset(self, *, archive: bool = False) -> None:
        """Clear the tape with its memory, sealing it if it is to be archived, and write an empty zone."""
        empty = self.read().without_own_memory()
        await self._tape.reset(archive=archive, carry=self.zone_entries_for(empty))


def _next(snapshot: MemorySnapshot) -> MemorySnapshot:
    return replace(snapshot, version=snapshot.version + 1, cleared=False)
