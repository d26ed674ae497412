"""Former versions of the memory zone: all are on the tape."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from bot.memory.snapshot import MemorySnapshot, ZoneFold
from bot.tape.entries import MEMORY_OPEN, MEMORY_SEAL, TapeEntry
from bot.tape.service import TapeService

UNDONE = "memory.undone"
"""An event right before a zone that brings a former version back: ``{from, to, version}``."""

_SCANNED = 20_000


@dataclass(frozen=True, slots=True)
class ZoneVersion:
    """A zone as it was.

    Attributes:
        snapshot: What it held.
        restores: The version that it brought back, None where it was no undo.
    """

    snapshot: MemorySnapshot
    restores: int | None


async def zones_back(tape: TapeService) -> AsyncGenerator[ZoneVersion, None]:
    """Yield zones, newest first, as far as ``_SCANNED`` entries back."""
    scanned = 0
    inside: list[TapeEntry] = []
    found: MemorySnapshot | None = None
    async with aclosing(tape.read_back()) as entries:
        async for entry in entries:
            if found is not None:
                yield ZoneVersion(found, _restored(entry))
                found = None
            scanned += 1
            if scanned > _SCANNED:
                return
            if entry.kind == "anchor" and entry.name == MEMORY_SEAL:
                inside = []
            inside.append(entry)
            if entry.kind == "anchor" and entry.name == MEMORY_OPEN:
                fold = ZoneFold()
                for one in reversed(inside):
                    fold.apply(one)
                found = fold.snapshot if fold.span is not None else None
    if found is not None:
        yield ZoneVersion(found, None)


async def zone_at(tape: TapeService, version: int) -> MemorySnapshot | None:
    """Return the zone of a version; None where it is too far back."""
    async with aclosing(zones_back(tape)) as zones:
        async for zone in zones:
            if zone.snapshot.version == version:
                return zone.snapshot
    return None


def _restored(entry: TapeEntry) -> int | None:
    to = entry.data.get("to") if entry.name == UNDONE else None
    return to if type(to) is int else None
