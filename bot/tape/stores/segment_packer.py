"""Pack sealed segments in the background.

A packed file is written beside the raw one and read back before it replaces it. Until then the raw
file counts; while both exist they are one segment. No lock is needed for readers: one that is
reading the raw file when it is removed has it open.
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
    """Pack the sealed segments of a folder one by one.

    Attributes:
        turn: Held while segment files are written, to exclude other writers of them.
    """

    def __init__(self, folder: TapeFolder) -> None:
        self._folder = folder
        self._woken = anyio.Event()
        self.turn = anyio.Lock()

    def wake(self) -> None:
        """Notify the packer that a segment was sealed."""
        self._woken.set()

    async def run(self) -> None:
        """Pack raw segments as they appear, until cancelled."""
        while True:
            self._woken = anyio.Event()
            # This includes segments that failed before: there may be space by now.
            for segment in await self._raw():
                await self._pack(segment)
            await self._woken.wait()

    async def _raw(self) -> list[Segment]:
        try:
            return await anyio.to_thread.run_sync(self._folder.raw_segments)
        except OSError as error:
            logger.warning("sealed segments stay unchanged for now: %s", error.strerror)
            return []

    async def _pack(self, segment: Segment) -> None:
        try:
            async with self.turn:
                await anyio.to_thread.run_sync(
                    pack, self._folder, segment, anyio.from_thread.check_cancelled
                )
        except (OSError, SegmentDamaged) as error:
            why = error.strerror if isinstance(error, OSError) else error
            logger.warning("%s stays unchanged, it cannot be packed: %s", segment.name, why)


def pack(folder: TapeFolder, segment: Segment, beat: Callable[[], None]) -> None:
    """Replace a raw segment file by a packed one. Blocking.

    Args:
        folder: The tapes' folder.
        segment: The segment; nothing happens if it is packed or gone.
        beat: Called now and then; may raise to cancel.

    Raises:
        SegmentDamaged: The packed file does not read back correctly; the raw file stays.
        OSError: The storage failed; the raw file stays.
    """
    raw = folder.segment_path(segment)
    if raw.exists():
        put_packed(folder, raw, segment, beat)


def put_packed(folder: TapeFolder, raw: Path, segment: Segment, beat: Callable[[], None]) -> None:
    """Pack the lines of a file as the segment's packed file, replacing any other; remove the file.

    Raises:
        SegmentDamaged: The packed file does not read back correctly; the source file stays.
        OSError: The storage failed; the source file stays.
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
    """Write a packed file durably; return the SHA-256 of its lines."""
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
    """Check that a packed file's lines have this SHA-256 and that its parity is correct.

    Raises:
        SegmentDamaged: The lines or the parity are wrong.
        OSError: The storage failed.
    """
    digest = sha256()
    with scan.open_source(path) as file:
        contents = read_contents(file.fd, segment)
        for block in contents.blocks:
            beat()
            digest.update(read_block(file.fd, block) or b"")
        whole = contents.protected and not find_damage(file.fd, contents)
    if digest.hexdigest() != wanted or not whole:
        raise SegmentDamaged(f"{path.name} cannot be read back as it was written")
