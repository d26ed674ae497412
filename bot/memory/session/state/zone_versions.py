"""Read earlier versions of the memory zone from the tape."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from bot.memory.session.state.zone_snapshot import DailyNote, MemorySnapshot, ZoneFold
from bot.tape.entries import MEMORY_OPEN, MEMORY_SEAL, TapeEntry
from bot.tape.service import TapeService

MEMORY_UNDONE_EVENT = "memory.undone"
"""Name of the event before a zone that restores an earlier version: ``{from, to, version}``."""

_SCANNED = 20_000


@dataclass(frozen=True, slots=True)
class ZoneVersion:
    """An earlier zone.

    Attributes:
        snapshot: Its content.
        restores: The version that it restored; None if it was not an undo.
        saved_at: When it was written, ISO 8601 in UTC.
        cleared: A person cleared memory with it.
    """

    snapshot: MemorySnapshot
    restores: int | None
    saved_at: str
    cleared: bool


async def read_zone_versions(tape: TapeService) -> AsyncGenerator[ZoneVersion, None]:
    """Yield zones, newest first, from at most ``_SCANNED`` entries."""
    scanned = 0
    inside: list[TapeEntry] = []
    found: ZoneFold | None = None
    async with aclosing(tape.read_back()) as entries:
        async for entry in entries:
            if found is not None:
                yield _version(found, entry)
                found = None
            scanned += 1
            if scanned > _SCANNED:
                return
            if entry.kind == "anchor" and entry.name == MEMORY_SEAL:
                inside = []
            inside.append(entry)
            if entry.kind == "anchor" and entry.name == MEMORY_OPEN:
                fold = ZoneFold()
                for other in reversed(inside):
                    fold.apply(other)
                found = fold if fold.span is not None else None
    if found is not None:
        yield _version(found, None)


async def find_zone_version(tape: TapeService, version: int) -> MemorySnapshot | None:
    """Return the zone of a version; None if it is too far back."""
    async with aclosing(read_zone_versions(tape)) as zones:
        async for zone in zones:
            if zone.snapshot.version == version:
                return zone.snapshot
    return None


async def notes_before_clearing(tape: TapeService, since: str) -> tuple[DailyNote, ...]:
    """Return the daily notes from right before memory was cleared; none if it was not.

    The first clearing from the time ``since`` on, ISO 8601 in UTC, counts.
    """
    notes: tuple[DailyNote, ...] = ()
    cleared = False
    async with aclosing(read_zone_versions(tape)) as zones:
        async for zone in zones:
            if cleared:
                notes = zone.snapshot.dailies
            if zone.saved_at < since:
                break
            cleared = zone.cleared
    return notes


def _version(fold: ZoneFold, before: TapeEntry | None) -> ZoneVersion:
    """Return a zone version, using the entry before it to recognise an undo."""
    to = (
        before.data.get("to") if before is not None and before.name == MEMORY_UNDONE_EVENT else None
    )
    restores = to if type(to) is int else None
    return ZoneVersion(fold.snapshot, restores, fold.saved_at, fold.cleared != 0)
