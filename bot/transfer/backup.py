"""Make, check, rotate and restore encrypted backups of a home in files. Blocking.

A backup is a folder ``tapebot-20261126T033000Z`` with two archives, ``state.tar.gz.age`` and
``files.tar.gz.age`` (files that people sent), ``key.age`` if a passphrase opens it, and a text that
tells how to open it without tapebot.

Rule 1: a backup holds the home as of one moment (``home_snapshot``); tapebot may run meanwhile.
Rule 2: it has its name only once it was decrypted, unpacked and checked.
Rule 3: only whole backups count when old ones are removed.
Rule 4: a restore writes to a new folder, checks the tapes, and renames it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from io import BufferedIOBase
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from filelock import FileLock, Timeout
from pyrage import x25519

from bot.core.clock import format_time
from bot.core.errors import BackupFailed
from bot.core.files import (
    PRIVATE_DIRECTORY,
    PRIVATE_FILE,
    private_directory,
    sync_directory,
    write_synced,
)
from bot.tape.stores.folder_verification import VerificationReport, verify_folder
from bot.transfer.backup_encryption import (
    BackupKey,
    decrypt,
    encrypt,
    parse_identity,
    unlock,
)
from bot.transfer.home_snapshot import (
    CHECK_FOLDER,
    HomeSnapshot,
    SnapshotChanged,
    SnapshotFile,
    take_snapshot,
)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

STATE = "state.tar.gz.age"
FILES = "files.tar.gz.age"
KEY = "key.age"

_NAME = re.compile(r"tapebot-\d{8}T\d{6}Z")
_TIME = "tapebot-%Y%m%dT%H%M%SZ"
_PART = ".part"
_MANIFEST = "backup.json"
_FORMAT = 1
_TRIES = 5
_COMPRESSION = 6
_README = """\
This is a backup of a tapebot home, encrypted with age (https://age-encryption.org).

Restore it with tapebot:   tapebot restore FOLDER
or by hand:                {unlock}age -d -i key.txt state.tar.gz.age | tar xz -C HOME
                           age -d -i key.txt files.tar.gz.age | tar xz -C HOME
"""


@dataclass(frozen=True, slots=True)
class BackupResult:
    """A backup that was made or restored.

    Attributes:
        path: The backup's folder, or the restored home.
        taken: When the home was read, ISO 8601.
        files: How many files it holds.
        size: Their bytes.
        tapes: The check of its tapes.
        removed: Names of older backups that were removed.
    """

    path: Path
    taken: str
    files: int
    size: int
    tapes: VerificationReport
    removed: tuple[str, ...] = ()


def create_backup(
    home: Path,
    to: Path,
    key: BackupKey,
    now: datetime,
    *,
    workspace: str = "",
    keep: int | None = None,
    beat: Callable[[], None] = lambda: None,
) -> BackupResult:
    """Make a backup, check it, and remove old ones.

    Args:
        home: The home folder; a tapebot may run on it.
        to: The folder of all backups; created if it is missing.
        key: What encrypts it.
        now: The current time, which names it.
        workspace: The workspace of the tapes.
        keep: How many backups remain; None removes none.
        beat: Called often; what it raises ends the work, and nothing of this backup remains.

    Raises:
        BackupFailed: It does not read back, or the home changed too often.
        OSError: A disk refused; nothing of this backup remains.
    """
    if not (home / "tapes").is_dir():
        raise BackupFailed(f"{home} holds no tapes; nothing to back up")
    if to.resolve().is_relative_to(home.resolve()):
        raise BackupFailed(
            f"{to} is in the home folder: choose a folder elsewhere, or another disk"
        )
    with _locked(to):
        name = now.strftime(_TIME)
        made, part = to / name, to / f"{name}{_PART}"
        if made.exists():
            raise BackupFailed(f"{made} exists already")
        try:
            part.mkdir(mode=PRIVATE_DIRECTORY)
            snapshot = _write(home, part, key, now, beat)
            report = _check(part, key.identity, home, workspace, beat)
            part.rename(made)
            sync_directory(to)
        except BackupFailed:
            # The library of age makes an error of its own of what ``beat`` raised.
            beat()
            raise
        finally:
            shutil.rmtree(part, ignore_errors=True)
            shutil.rmtree(home / CHECK_FOLDER, ignore_errors=True)
        kept = (*snapshot.files, *snapshot.blobs)
        removed = () if keep is None else _rotate(to, keep)
        size = sum(file.size for file in kept)
        return BackupResult(made, format_time(now), len(kept), size, report, removed)


def newest_backup(to: Path) -> Path | None:
    """Return the newest whole backup in a folder; None if there is none."""
    return next(iter(_backups(to)), None)


def backup_time(backup: Path) -> datetime:
    """Return the time that a backup's name tells, in UTC."""
    return datetime.strptime(backup.name, _TIME).replace(tzinfo=UTC)


def restore_backup(
    backup: Path, home: Path, identity: x25519.Identity, *, workspace: str = ""
) -> BackupResult:
    """Restore a backup to a home that is missing or empty.

    Args:
        backup: The backup's folder.
        home: The home folder.
        identity: Opens the backup; see ``open_identity``.
        workspace: The workspace of the tapes.

    Raises:
        BackupFailed: The home holds something, the key does not fit, or the backup is damaged.
        OSError: A disk refused; the home is unchanged.
    """
    if home.exists() and any(home.iterdir()):
        raise BackupFailed(
            f"{home} is not empty: move it away, or set another TAPEBOT_HOME. Nothing was restored"
        )
    private_directory(home.parent)
    fresh = home.with_name(f"{home.name}.restoring")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        fresh.mkdir(mode=PRIVATE_DIRECTORY)
        manifest = _unpack(backup / STATE, identity, partial(_extract, fresh))
        files = _unpack(backup / FILES, identity, partial(_extract, fresh))
        report = verify_folder(fresh / "tapes", workspace)
        _sync(fresh)
        if home.exists():
            home.rmdir()
        fresh.rename(home)
        sync_directory(home.parent)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    count, size = manifest.count + files.count, manifest.size + files.size
    return BackupResult(home, manifest.taken, count, size, report)


def open_identity(
    backup: Path, passphrase: Callable[[], str], identity_file: Path | None
) -> x25519.Identity:
    """Return the key that opens a backup.

    Args:
        backup: The backup's folder.
        passphrase: Returns the passphrase; called if the backup has one.
        identity_file: An age key file; None for the passphrase.

    Raises:
        BackupFailed: The key cannot be had.
        OSError: A file cannot be read.
    """
    if not (backup / STATE).is_file():
        raise BackupFailed(f"{backup} is no backup: it has no {STATE}")
    if identity_file is not None:
        return parse_identity(identity_file.read_text("utf-8", "replace"))
    if not (backup / KEY).is_file():
        raise BackupFailed("this backup is for the owner of a key: give its file with --identity")
    return unlock((backup / KEY).read_bytes(), passphrase())


@contextmanager
def _locked(to: Path) -> Iterator[None]:
    """Create the folder of backups if it is missing, and keep other backups out.

    Raises:
        BackupFailed: Another backup is being made.
    """
    private_directory(to)
    try:
        with FileLock(to / ".lock", timeout=0, mode=PRIVATE_FILE, thread_local=False):
            yield
    except Timeout as error:
        raise BackupFailed(f"another backup to {to} is being made") from error


# Writing.


def _write(
    home: Path, part: Path, key: BackupKey, now: datetime, beat: Callable[[], None]
) -> HomeSnapshot:
    """Write both archives of a snapshot; take another one if the home changed too much."""
    about = {"format": _FORMAT, "tapebot": version("tapebot"), "taken": format_time(now)}
    snapshot = _write_state(home, part, key, about, beat)
    # The state names these files, so that none is missing but those that were erased meanwhile.
    gone: list[str] = []
    _archive(part / FILES, key, partial(_pack, snapshot, snapshot.blobs, about, gone), beat)
    if key.locked is not None:
        write_synced(part / KEY, key.locked)
    first = "age -d key.age > key.txt; " if key.locked is not None else ""
    write_synced(part / "README.txt", _README.format(unlock=first).encode())
    sync_directory(part)
    there = tuple(file for file in snapshot.blobs if file.path not in set(gone))
    return HomeSnapshot(home, snapshot.files, there)


def _write_state(
    home: Path, part: Path, key: BackupKey, about: dict[str, Any], beat: Callable[[], None]
) -> HomeSnapshot:
    left = _TRIES
    while True:
        snapshot = take_snapshot(home, beat)
        pack = partial(_pack, snapshot, snapshot.files, about, None)
        try:
            _archive(part / STATE, key, pack, beat)
        except SnapshotChanged as error:
            left -= 1
            if not left:
                raise BackupFailed(
                    f"{error}, again and again; try at a quieter time, or stop tapebot"
                ) from error
        else:
            return snapshot


def _archive(
    path: Path,
    key: BackupKey,
    write: Callable[[BufferedIOBase], object],
    beat: Callable[[], None],
) -> None:
    with path.open("wb") as out:
        path.chmod(PRIVATE_FILE)
        encrypt(write, _Beating(out, beat), key)
        out.flush()
        _fsync(out)


def _pack(
    snapshot: HomeSnapshot,
    files: tuple[SnapshotFile, ...],
    about: dict[str, Any],
    gone: list[str] | None,
    out: BufferedIOBase,
) -> None:
    """Write files as a compressed archive, and a manifest with their digests at its end.

    Args:
        snapshot: Reads the files.
        files: The files.
        about: More for the manifest.
        gone: Receives files that are gone; None raises for them.
        out: Where to write.
    """
    digests = {}
    with (
        gzip.GzipFile(fileobj=out, mode="wb", compresslevel=_COMPRESSION) as packed,
        tarfile.open(fileobj=packed, mode="w|") as archive,
    ):
        for file in files:
            chunks = snapshot.read(file)
            if gone is not None:
                try:
                    chunks = iter([b"".join(chunks)])
                except SnapshotChanged:
                    gone.append(file.path)
                    continue
            digests[file.path] = _add(archive, file, chunks)
        manifest = json.dumps({**about, "files": digests}, ensure_ascii=False).encode()
        info = tarfile.TarInfo(_MANIFEST)
        info.size, info.mode = len(manifest), PRIVATE_FILE
        archive.addfile(info, io.BytesIO(manifest))


def _add(archive: tarfile.TarFile, file: SnapshotFile, chunks: Iterator[bytes]) -> str:
    """Add a file, and return the digest of its bytes."""
    info = tarfile.TarInfo(file.path)
    info.size, info.mode, info.mtime = file.size, file.mode, file.changed
    source = _Digested(chunks)
    archive.addfile(info, source)  # type: ignore[arg-type]
    # The file is closed behind its last bytes.
    next(chunks, None)
    return source.digest.hexdigest()


class _Beating(BufferedIOBase):
    """A file that calls a function with each piece that is read or written."""

    def __init__(self, file: BufferedIOBase, beat: Callable[[], None]) -> None:
        self._file = file
        self._beat = beat

    def read(self, size: int | None = -1, /) -> bytes:
        self._beat()
        return self._file.read(size)

    def write(self, data: ReadableBuffer, /) -> int:
        self._beat()
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


class _Digested:
    """A readable file over chunks that computes their SHA-256."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.digest = hashlib.sha256()
        self._chunks = chunks
        self._left = b""

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes; fewer only at the end."""
        while len(self._left) < size and (more := next(self._chunks, b"")):
            self._left += more
        data, self._left = self._left[:size], self._left[size:]
        self.digest.update(data)
        return data


# Reading.


@dataclass(frozen=True, slots=True)
class _Contents:
    """What an archive held."""

    taken: str
    count: int
    size: int


def _check(
    part: Path,
    identity: x25519.Identity,
    home: Path,
    workspace: str,
    beat: Callable[[], None],
) -> VerificationReport:
    """Restore a backup's state to a scratch folder and check it; check the files as they pass by."""
    scratch = home / CHECK_FOLDER
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(mode=PRIVATE_DIRECTORY)
    _unpack(part / STATE, identity, partial(_extract, scratch), beat)
    _unpack(part / FILES, identity, partial(_extract, None), beat)
    return verify_folder(scratch / "tapes", workspace)


def _unpack(
    path: Path,
    identity: x25519.Identity,
    extract: Callable[[BufferedIOBase, list[_Contents]], None],
    beat: Callable[[], None] = lambda: None,
) -> _Contents:
    found: list[_Contents] = []
    with path.open("rb") as source:
        decrypt(source, lambda plain: extract(_Beating(plain, beat), found), identity)
    if not found:
        raise BackupFailed(f"{path.name} has no end: the backup is incomplete")
    return found[0]


def _extract(into: Path | None, plain: BufferedIOBase, found: list[_Contents]) -> None:
    """Read an archive, compare its files with their digests, and write them to a folder.

    Args:
        into: The folder; None only compares.
        plain: The archive.
        found: Receives what it held.

    Raises:
        BackupFailed: The archive is damaged, or of another format.
    """
    digests: dict[str, str] = {}
    size, manifest = 0, b""
    try:
        with tarfile.open(fileobj=plain, mode="r|gz") as archive:
            for info in archive:
                source = archive.extractfile(info) if info.isreg() else None
                if source is None:
                    raise BackupFailed(f"{info.name[:100]!r} in the backup is no file")
                if info.name == _MANIFEST:
                    manifest = source.read()
                    continue
                digests[info.name] = _copy(source, info, into)
                size += info.size
    except (tarfile.TarError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise BackupFailed(f"the backup is damaged ({error})") from error
    found.append(_compared(manifest, digests, size))


def _compared(manifest: bytes, digests: dict[str, str], size: int) -> _Contents:
    try:
        told = json.loads(manifest)
        form, files, taken = told["format"], told["files"], str(told["taken"])
    except (ValueError, KeyError, TypeError) as error:
        raise BackupFailed("the backup has no list of its files: it is incomplete") from error
    if form != _FORMAT:
        raise BackupFailed(
            f"the backup has the format {form!r}: a newer tapebot made it; update first"
        )
    if files != digests:
        differ = sorted(files.items() ^ digests.items())
        raise BackupFailed(f"{differ[0][0]} in the backup differs from what was saved")
    return _Contents(taken, len(digests), size)


def _copy(source: IO[bytes], info: tarfile.TarInfo, into: Path | None) -> str:
    """Copy a file below a folder, and return the digest of its bytes."""
    digest = hashlib.sha256()
    path = None if into is None else _inside(into, info.name)
    if path is None:
        while data := source.read(1 << 20):
            digest.update(data)
        return digest.hexdigest()
    private_directory(path.parent)
    with path.open("xb") as out:
        path.chmod(info.mode & 0o700)
        while data := source.read(1 << 20):
            digest.update(data)
            out.write(data)
    return digest.hexdigest()


def _inside(folder: Path, name: str) -> Path:
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name or not path.parts:
        raise BackupFailed(f"{name[:100]!r} in the backup is no path below the home")
    return folder / path


def _sync(folder: Path) -> None:
    """Make all files and folders below one durable."""
    for path in (*folder.rglob("*"), folder):
        if path.is_dir():
            sync_directory(path)
        elif path.is_file():
            with path.open("rb") as file:
                _fsync(file)


def _fsync(file: IO[bytes]) -> None:
    os.fsync(file.fileno())


# Rotation.


def _backups(to: Path) -> list[Path]:
    """Return the whole backups in a folder, newest first."""
    found = [path for path in to.iterdir() if _is_backup(path)] if to.is_dir() else []
    return sorted(found, reverse=True)


def _is_backup(path: Path) -> bool:
    try:
        return _NAME.fullmatch(path.name) is not None and bool(backup_time(path))
    except ValueError:  # no such date
        return False


def _rotate(to: Path, keep: int) -> tuple[str, ...]:
    """Remove all but the newest backups, and what killed attempts left; return their names."""
    for torn in to.glob(f"tapebot-*{_PART}"):
        shutil.rmtree(torn, ignore_errors=True)
    old = _backups(to)[max(keep, 1) :]
    for backup in old:
        # A name that is no backup's first: a kill in between leaves no half backup under one.
        gone = backup.rename(backup.with_name(f"{backup.name}{_PART}"))
        shutil.rmtree(gone)
    return tuple(backup.name for backup in old)
