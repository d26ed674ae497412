"""Record the newest entry of each tape of a folder, to detect lost or replaced files. Blocking.

It shows when a tape's file was cut, removed or replaced by an older copy. The file has one slot of
fixed size per tape, written in place after each append and not synced: a killed process loses
nothing, a power loss the newest slots, and no slot names an entry that is not durable.
"""

from __future__ import annotations

import logging
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from zlib import crc32

from bot.core.files import PRIVATE_FILE
from bot.tape.chain import CHAIN_START, DIGEST_SIZE

logger = logging.getLogger(__name__)

_SLOT = struct.Struct(f"<64sQ{DIGEST_SIZE}sI")
_STEM_SIZE = 64


@dataclass(frozen=True, slots=True)
class Head:
    """The newest recorded entry of a tape.

    last_id: Id of the entry.
    value: Value of its link; ``CHAIN_START`` if the tape has no chain.
    """

    last_id: int
    value: bytes


class HeadFile:
    """The heads of a folder's tapes, by file name stem. Thread-safe.

    Write errors are logged once and ignored: the tape's next start is not checked, but no append
        fails.

    Args:
        path: The file; created with the first head.
        writable: Whether heads may be recorded.
    """

    def __init__(self, path: Path, *, writable: bool) -> None:
        self._path = path
        self._writable = writable
        self._lock = Lock()
        self._fd = -1
        self._told = False
        self._places: dict[str, int] = {}
        self._heads: dict[str, Head] = {}
        self._end = 0

    def load(self) -> None:
        """Read the file; damaged slots are ignored.

        Raises:
            OSError: The storage failed.
        """
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return
        with self._lock:
            for place in range(0, len(raw) - _SLOT.size + 1, _SLOT.size):
                slot = raw[place : place + _SLOT.size]
                stem, last_id, value, check = _SLOT.unpack(slot)
                if check == crc32(slot[:-4]):
                    name = stem.rstrip(b"\0").decode("ascii", "replace")
                    self._places[name] = place
                    self._heads[name] = Head(last_id, value)
            self._end = -(-len(raw) // _SLOT.size) * _SLOT.size

    def get(self, stem: str) -> Head | None:
        """Return a tape's head; None if unknown."""
        with self._lock:
            return self._heads.get(stem)

    def known(self) -> dict[str, Head]:
        """Return all heads by stem."""
        with self._lock:
            return dict(self._heads)

    def note(self, stem: str, last_id: int, value: bytes | None) -> None:
        """Record a tape's newest entry."""
        if not self._writable:
            return
        head = Head(last_id, value or CHAIN_START)
        body = struct.pack(f"<64sQ{DIGEST_SIZE}s", stem.encode("ascii"), head.last_id, head.value)
        try:
            with self._lock:
                if self._heads.get(stem) == head:
                    return
                if self._fd < 0:
                    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                    self._fd = os.open(self._path, flags, PRIVATE_FILE)
                place, slot = (
                    self._places.get(stem, self._end),
                    body + struct.pack("<I", crc32(body)),
                )
                # The name of a slot never changes.
                kept = _STEM_SIZE if stem in self._places else 0
                os.pwrite(self._fd, slot[kept:], place + kept)
                self._places[stem] = place
                self._heads[stem] = head
                self._end = max(self._end, place + _SLOT.size)
        except OSError as error:
            if not self._told:
                logger.warning("%s cannot be written: %s", self._path, error.strerror)
            self._told = True

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
