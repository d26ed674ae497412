"""Read a home folder as it was at one moment, while a tapebot runs on it. Blocking.

Files of a home grow, or are replaced as a whole. So their names and lengths at one moment are a
snapshot: the state that a kill at that moment would have left, from which every start recovers.

Rule 1: the moment counts only if two looks in a row find the same names and lengths.
Rule 2: what was appended later is not read.
Rule 3: a file that was replaced or shortened later makes the snapshot void; take another one.
Rule 4: what tapebot makes again is left out: search index, vectors, the sandbox for code, the readable
    names of blobs in ``files``; and so are logs, locks, sockets and links, but for linked folders right
    in the home.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from bot.core.errors import TapebotError
from bot.core.files import TEMPORARY_SUFFIX, list_files
from bot.core.i18n import _

CHECK_FOLDER = ".backup-check"
"""Folder in the home where a backup is unpacked to check it."""

BLOBS = "blobs/"
"""How the paths of files that people sent begin."""

_MOST_TRIES = 200
_PAUSE = 0.05
_READABLE = "files/"  # readable names of blobs; what somebody else put there is kept
_WORKSPACE = "workspace"  # the owner's own folder, of which nothing is left out
_LEFT_OUT_FOLDERS = frozenset(
    {CHECK_FOLDER, "logs", "vectors", "blobs/incoming", "sandbox", "incoming-skills"}
)
_LEFT_OUT_SUFFIXES = (TEMPORARY_SUFFIX, ".lock", ".owner")
_INDEX = ".index.db"


class SnapshotChanged(TapebotError):
    """A file was replaced after the snapshot was taken."""


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """A file as it was: its path below the home, with ``/``, and its device and number."""

    path: str
    size: int
    mode: int
    changed: int
    identity: tuple[int, int]


@dataclass(frozen=True, slots=True)
class HomeSnapshot:
    """The files of a home at one moment; blobs never change, but may be erased meanwhile."""

    home: Path
    files: tuple[SnapshotFile, ...]
    blobs: tuple[SnapshotFile, ...]

    def read(self, file: SnapshotFile) -> Iterator[bytes]:
        """Yield a file's bytes as of the snapshot.

        Raises:
            SnapshotChanged: It was replaced or removed since.
        """
        changed = SnapshotChanged(_("{path} changed meanwhile", path=file.path))
        try:
            descriptor = os.open(self.home / file.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError as error:
            raise changed from error
        with os.fdopen(descriptor, "rb") as source:
            found, left = os.fstat(descriptor), file.size
            if (found.st_dev, found.st_ino) != file.identity:
                raise changed
            while left:
                data = source.read(min(left, 1 << 20))
                if not data:
                    raise changed
                left -= len(data)
                yield data


def take_snapshot(home: Path, beat: Callable[[], None] = lambda: None) -> HomeSnapshot:
    """Return a snapshot of a home; raise ``SnapshotChanged`` if it differs at every look."""
    before = _look(home)
    for _unused in range(_MOST_TRIES):
        beat()
        time.sleep(_PAUSE)
        now = _look(home)
        if now == before:
            # A blob is stored before the entry that names it.
            blobs = tuple(file for file in now if file.path.startswith(BLOBS))
            stored, files = {blob.identity for blob in blobs}, []
            for file in now:
                is_name = file.path.startswith(_READABLE) and file.identity in stored
                files += [] if is_name or file.path.startswith(BLOBS) else [file]
            return HomeSnapshot(home, tuple(files), blobs)
        before = now
    raise SnapshotChanged(
        _("{home} kept changing; try again when tapebot has less to do, or stop it", home=home)
    )


def _look(home: Path) -> list[SnapshotFile]:
    found = []
    # A folder of the home may be a link to another disk; further below links are left out.
    linked = [path for path in list_files(home, "*") if path.is_symlink() and path.is_dir()]
    walks = (os.walk(path, onerror=_unless_gone) for path in (home, *sorted(linked)))
    for folder, names, files in chain.from_iterable(walks):
        above = Path(folder).relative_to(home)
        names[:] = sorted(
            name for name in names if (above / name).as_posix() not in _LEFT_OUT_FOLDERS
        )
        for path in (above / name for name in sorted(files) if is_saved(above / name)):
            try:
                status = (home / path).lstat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                mode, identity = stat.S_IMODE(status.st_mode), (status.st_dev, status.st_ino)
                about = (status.st_size, mode, int(status.st_mtime), identity)
                found.append(SnapshotFile(path.as_posix(), *about))
    return found


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def is_saved(path: Path) -> bool:
    """Say whether a backup holds a file, by its path below the home."""
    folders = {folder.as_posix().casefold() for folder in path.parents}
    name = path.name.casefold()
    left_out = name.endswith(_LEFT_OUT_SUFFIXES) or _INDEX in path.as_posix().casefold()
    own = path.parts[:1] == (_WORKSPACE,)
    return bool(name) and not folders & _LEFT_OUT_FOLDERS and (own or not left_out)
