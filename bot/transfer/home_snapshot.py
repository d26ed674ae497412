"""Read a home folder as it was at one moment, while a tapebot runs on it. Blocking.

Files of a home grow, or are replaced as a whole. So their names and lengths at one moment are a
snapshot: the state that a kill at that moment would have left, from which every start recovers.

Rule 1: the moment counts only if two looks in a row find the same names and lengths.
Rule 2: what was appended later is not read.
Rule 3: a file that was replaced or shortened later makes the snapshot void; take another one.
Rule 4: what tapebot makes again is left out: search index, vectors, the sandbox for code, the readable
    names of blobs in ``files``; and so are logs, locks and sockets.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.core.errors import TapebotError
from bot.core.files import TEMPORARY_SUFFIX
from bot.core.i18n import _

MOST_TRIES = 200
_PAUSE = 0.05
CHECK_FOLDER = ".backup-check"
"""Folder in the home where a backup is unpacked to check it."""

BLOBS = "blobs/"
"""How the paths of files that people sent begin."""

_READABLE = "files/"
"""The folder with readable names of blobs; what somebody else put there is kept."""
_WORKSPACE = "workspace"
"""The owner's own folder, of which nothing is left out."""

_LEFT_OUT_FOLDERS = frozenset(
    {CHECK_FOLDER, "logs", "vectors", "blobs/incoming", "sandbox", "incoming-skills"}
)
_LEFT_OUT_SUFFIXES = (TEMPORARY_SUFFIX, ".lock", ".owner")
_INDEX = ".index.db"


class SnapshotChanged(TapebotError):
    """A file was replaced after the snapshot was taken."""


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """A file as it was.

    Attributes:
        path: Its path relative to the home, with ``/``.
        size: Its length in bytes.
        mode: Its permissions.
        changed: When it was changed, in seconds since 1970.
        identity: Device and number of the file.
    """

    path: str
    size: int
    mode: int
    changed: int
    identity: tuple[int, int]


@dataclass(frozen=True, slots=True)
class HomeSnapshot:
    """The files of a home at one moment.

    Attributes:
        home: The folder.
        files: All files but blobs.
        blobs: Files that people sent; they never change, and may be erased meanwhile.
    """

    home: Path
    files: tuple[SnapshotFile, ...]
    blobs: tuple[SnapshotFile, ...]

    def read(self, file: SnapshotFile) -> Iterator[bytes]:
        """Yield a file's bytes as of the snapshot.

        Raises:
            SnapshotChanged: It was replaced or removed since.
            OSError: It cannot be read.
        """
        try:
            descriptor = os.open(self.home / file.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError as error:
            raise SnapshotChanged(_("{path} was removed meanwhile", path=file.path)) from error
        with os.fdopen(descriptor, "rb") as source:
            found = os.fstat(descriptor)
            if (found.st_dev, found.st_ino) != file.identity:
                raise SnapshotChanged(_("{path} was replaced meanwhile", path=file.path))
            left = file.size
            while left:
                data = source.read(min(left, 1 << 20))
                if not data:
                    raise SnapshotChanged(_("{path} was shortened meanwhile", path=file.path))
                left -= len(data)
                yield data


def take_snapshot(home: Path, beat: Callable[[], None] = lambda: None) -> HomeSnapshot:
    """Return a snapshot of a home.

    Raises:
        SnapshotChanged: The home changed each time that it was looked at.
        OSError: A folder cannot be read.
    """
    before = _look(home)
    for _unused in range(MOST_TRIES):
        beat()
        time.sleep(_PAUSE)
        now = _look(home)
        if now == before:
            # A blob is stored before the entry that names it.
            blobs = tuple(file for file in now if file.path.startswith(BLOBS))
            stored = {blob.identity for blob in blobs}
            files = (file for file in now if not file.path.startswith(BLOBS))
            kept = (
                file
                for file in files
                if not file.path.startswith(_READABLE) or file.identity not in stored
            )
            return HomeSnapshot(home, tuple(kept), blobs)
        before = now
    raise SnapshotChanged(
        _("{home} kept changing; try again when tapebot has less to do, or stop it", home=home)
    )


def _look(home: Path) -> list[SnapshotFile]:
    found = []
    for folder, names, files in os.walk(home):
        above = Path(folder).relative_to(home)
        names[:] = sorted(
            name for name in names if (above / name).as_posix() not in _LEFT_OUT_FOLDERS
        )
        for name in sorted(files):
            if not is_saved(above / name):
                continue
            try:
                status = Path(folder, name).lstat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                mode, identity = stat.S_IMODE(status.st_mode), (status.st_dev, status.st_ino)
                path, changed = (above / name).as_posix(), int(status.st_mtime)
                found.append(SnapshotFile(path, status.st_size, mode, changed, identity))
    return found


def is_saved(path: Path) -> bool:
    """Say whether a backup holds a file, by its path below the home."""
    folders = {folder.as_posix().casefold() for folder in path.parents}
    name = path.name.casefold()
    left_out = name.endswith(_LEFT_OUT_SUFFIXES) or _INDEX in name
    own = path.parts[:1] == (_WORKSPACE,)
    return bool(name) and not folders & _LEFT_OUT_FOLDERS and (own or not left_out)
