"""Erase entries from tape files by rewriting each affected part beside the old one.

Each part is replaced by one rename, so after a crash it is either the old one or the new.
Unfinished files end with ``.new`` and are removed when the folder is opened. Appends to the live
file continue meanwhile and are copied at the end. If the tape was archived or reset meanwhile,
erasing starts over.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import anyio
import anyio.from_thread
import anyio.to_thread

from bot.core.errors import SegmentDamaged, TapeWriteError
from bot.core.files import sync_directory
from bot.tape.entries import TapeEntry
from bot.tape.index import TapeIndex
from bot.tape.store import Segment
from bot.tape.stores.changes import check_tombstones, entries_differ, index_tombstones
from bot.tape.stores.folder import SEALED_FILE, TapeFolder
from bot.tape.stores.live_tapes import LiveTapes
from bot.tape.stores.part_reader import PartReader, TapeSnapshot
from bot.tape.stores.part_rewrite import PartScan, rewrite_part, scan_part
from bot.tape.stores.segment_packer import SegmentPacker, put_packed


@dataclass(frozen=True, slots=True)
class _Plan:
    """The parts of a tape that an erasure must rewrite.

    Attributes:
        parts: The tape when it was read.
        found: The affected parts with their segments; None for the live file.
        changed: Ids of entries that do not equal their tombstones yet.
    """

    parts: TapeSnapshot
    found: list[tuple[Segment | None, PartScan]]
    changed: frozenset[int]


class TapeEraser:
    """Erase entries from the tapes of a folder, one erasure at a time.

    Args:
        folder: The tapes' folder.
        reader: Reads sealed segments and counts damage.
        tapes: The open tapes.
        packing: The segment packer, which must not write at the same time.
        index: The search index.

    Attributes:
        emptied: How many unreadable lines were emptied.
    """

    def __init__(
        self,
        folder: TapeFolder,
        reader: PartReader,
        tapes: LiveTapes,
        packing: SegmentPacker,
        index: TapeIndex,
    ) -> None:
        self._folder = folder
        self._reader = reader
        self._tapes = tapes
        self._packing = packing
        self._index = index
        self.emptied = 0

    async def erase(self, tape: str, tombstones: Sequence[TapeEntry]) -> int:
        """Replace entries by tombstones; see ``TapeStore.erase``."""
        wanted = await anyio.to_thread.run_sync(index_tombstones, tombstones)
        changed: set[int] = set()
        try:
            async with self._packing.turn:
                checked = whole = False
                while not whole:
                    async with self._tapes.snapshot(tape) as parts:
                        plan = await anyio.to_thread.run_sync(self._plan, parts, wanted)
                        if not checked:
                            _see(plan, wanted)
                            checked = True
                        if not wanted:
                            return 0
                        changed |= plan.changed
                        # From the first change on, a crash would leave erased content in the index.
                        await self._index.mark_untrusted()
                        whole = await self._carry_out(plan, wanted)
                await self._index.erase(tape, list(wanted.values()))
        except (OSError, SegmentDamaged) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise TapeWriteError(
                f"not everything could be erased from tape {tape} ({why}); fix the storage, and "
                "erase again"
            ) from error
        return len(changed)

    def _plan(self, parts: TapeSnapshot, wanted: Mapping[int, TapeEntry]) -> _Plan:
        beat = anyio.from_thread.check_cancelled
        found: list[tuple[Segment | None, PartScan]] = []
        ids = sorted(wanted)
        for segment in parts.segments:
            if bisect_left(ids, segment.first_id) < bisect_right(ids, segment.last_id):
                with self._reader.sealed(segment) as source:
                    if source is not None:
                        found.append((segment, scan_part(source, wanted, beat)))
        if ids and ids[-1] >= parts.first_id:
            found.append((None, scan_part(parts.live, wanted, beat)))
        held = [
            (number, line.entry)
            for _, part_scan in found
            for number, (_, line) in part_scan.held.items()
        ]
        changed = frozenset(number for number, old in held if entries_differ(old, wanted[number]))
        return _Plan(parts, found, changed)

    async def _carry_out(self, plan: _Plan, wanted: Mapping[int, TapeEntry]) -> bool:
        """Rewrite the affected parts; return False if the tape was archived or reset meanwhile."""
        for segment, part_scan in plan.found:
            if not part_scan.debris and plan.changed.isdisjoint(part_scan.held):
                continue
            if segment is not None:
                await anyio.to_thread.run_sync(self._sealed, plan.parts, segment, part_scan, wanted)
            elif not await self._live(plan.parts, part_scan, wanted):
                return False
        return True

    def _sealed(
        self,
        parts: TapeSnapshot,
        segment: Segment,
        part_scan: PartScan,
        wanted: Mapping[int, TapeEntry],
    ) -> None:
        beat = anyio.from_thread.check_cancelled
        raw, packed = self._folder.segment_path(segment), self._folder.packed_path(segment)
        is_raw = raw.exists()
        if is_raw and packed.exists():
            # Packing was about to finish: the raw file is complete and counts.
            packed.unlink()
            sync_directory(packed.parent)
        fresh = raw.with_name(raw.name + ".new")
        with self._reader.sealed(segment) as source:
            if source is None:
                raise FileNotFoundError(None, f"the segment {segment.name} is missing")
            emptied = rewrite_part(source, part_scan, wanted, fresh, beat)
        try:
            if is_raw:
                fresh.chmod(SEALED_FILE)
                fresh.replace(raw)
                sync_directory(raw.parent)
            else:
                put_packed(self._folder, fresh, segment, beat)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
        self.emptied += emptied
        self._reader.clear_part_damage(parts.tape, segment.first_id)

    async def _live(
        self, parts: TapeSnapshot, part_scan: PartScan, wanted: Mapping[int, TapeEntry]
    ) -> bool:
        """Rewrite the live file; return whether it was still the live file at the end."""
        path = self._folder.live_path(parts.tape)
        fresh = path.with_name(path.name + ".new")
        emptied = await anyio.to_thread.run_sync(
            rewrite_part, parts.live, part_scan, wanted, fresh, anyio.from_thread.check_cancelled
        )
        if not await self._tapes.replace(parts, fresh):
            return False
        self.emptied += emptied
        self._reader.clear_part_damage(parts.tape, parts.first_id)
        return True


def _see(plan: _Plan, wanted: Mapping[int, TapeEntry]) -> None:
    """Check that the tombstones fit the entries that they replace.

    Raises:
        InvalidEntry: An entry is missing, or its kind differs.
    """
    held = {
        number: line.entry
        for _, part_scan in plan.found
        for number, (_, line) in part_scan.held.items()
    }
    heads = {segment.first_id for segment in plan.parts.segments} | {plan.parts.first_id}
    check_tombstones(plan.parts.tape, wanted, held, heads)
