"""Packing sealed segments in the background.

A packed file is written beside the raw one, read back, and only then takes its place. Until then the
raw file counts; while both are there they are one segment. No lock is held: whoever reads the raw file
when it goes has it open.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import anyio
import anyio.from_thread
import anyio.to_thread

from bot.core.errors import SegmentDamaged
from bot.core.files import PRIVATE_FILE, sync_directory
from bot.tape.store import HEADER_EVENT, Segment
from bot.tape.stores import line_scan as scan
from bot.tape.stores.folder import SEALED_FILE, TapeFolder
from bot.tape.stores.packed_segment import (
    find_damage,
    read_block,
    read_contents,
    write_packed,
)

logger = logging.getLogger(__name__)


class SegmentPacker:
    """Packs the sealed segments of a folder, one after the other.

    Attributes:
        turn: Held while segments are written, so that nobody else writes them.
    """

    def __init__(self, folder: TapeFolder) -> None:
        self._folder = folder
        self._woken = anyio.Event()
        self.turn = anyio.Lock()

    def wake(self) -> None:
        """Say that a segment was sealed."""
        self._woken.set()

    async def run(self) -> None:
        """Pack what is raw and what becomes so, until cancelled."""
        while True:
            self._woken = anyio.Event()
            # Those that could not be packed before are among them: by now there may be room.
            for segment in await self._raw():
                await self._pack(segment)
            await self._woken.wait()

    async def _raw(self) -> list[Segment]:
        try:
            return await anyio.to_thread.run_sync(self._folder.raw_segments)
        except OSError as error:
            logger.warning("sealed segments stay as they are for now: %s", error.strerror)
            return []

    async def _pack(self, segment: Segment) -> None:
        try:
            async with self.turn:
                await anyio.to_thread.run_sync(
                    pack, self._folder, segment, anyio.from_thread.check_cancelled
                )
        except (OSError, SegmentDamaged) as error:
            why = error.strerror if isinstance(error, OSError) else error
            logger.warning("%s stays as it is, it cannot be packed: %s", segment.name, why)


def pack(folder: TapeFolder, segment: Segment, beat: Callable[[], None]) -> None:
    """Put a packed file in the place of a raw one. Blocking.

    Args:
        folder: Where they are.
        segment: What to pack; nothing is done where it is packed, or gone.
        beat: Called now and then; may raise, to break off.

    Raises:
        SegmentDamaged: What was written does not read back as it should; the raw file stays.
        OSError: The storage refused; the raw file stays.
    """
    raw = folder.segment_path(segment)
    if raw.exists():
        put_packed(folder, raw, segment, beat)


def put_packed(folder: TapeFolder, raw: Path, segment: Segment, beat: Callable[[], None]) -> None:
    """Make the lines of a file a segment's packed file, in the place of any other; remove the file.

    Raises:
        SegmentDamaged: What was written does not read back as it should; the file stays.
        OSError: The storage refused; the file stays.
    """
    packed = folder.packed_path(segment)
    fresh = packed.with_name(packed.name + ".new")
    try:
        written = _write(raw, fresh, segment, beat)
        check_packed(fresh, segment, written, beat)
        fresh.rename(packed)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    sync_directory(folder.root)
    raw.unlink()


def _write(raw: Path, fresh: Path, segment: Segment, beat: Callable[[], None]) -> str:
    """Write a packed file and make it durable; return the SHA-256 of its lines."""
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    out = os.open(fresh, flags, PRIVATE_FILE)
    try:
        with scan.open_source(raw) as source:
            head = scan.first_entry(source)
            named = head.data.get("session") if head and head.name == HEADER_EVENT else None
            session = named if isinstance(named, str) else None
            digest = write_packed(source, out, segment, session, beat)
        os.fchmod(out, SEALED_FILE)
        os.fsync(out)
    finally:
        os.close(out)
    return digest


def check_packed(path: Path, segment: Segment, wanted: str, beat: Callable[[], None]) -> None:
    """Check that a packed file gives back the lines with this SHA-256, and that its parity is right.

    Raises:
        SegmentDamaged: It does not, or is not.
        OSError: The storage refused.
    """
    digest = sha256()
    with scan.open_source(path) as file:
        contents = read_contents(file.fd, segment)
        for block in contents.blocks:
            beat()
            digest.update(read_block(file.fd, block) or b"")
        whole = contents.protected and not find_damage(file.fd, contents)
    if digest.hexdigest() != wanted or not whole:
        raise SegmentDamaged(f"{path.name} does not read back as it was written")
