"""Make, check, rotate and restore encrypted backups of a home in files. Blocking.

A backup is a folder ``tapebot-20261126T033000Z`` with two archives, ``state.tar.gz.age`` and
``files.tar.gz.age`` (files that people sent), ``key.age`` if a passphrase opens it, and a text that
tells how to open it without tapebot.

Rule 1: a backup holds the home as of one moment (``home_snapshot``); tapebot may run meanwhile.
Rule 2: it has its name only once it was decrypted, unpacked and checked.
Rule 3: only whole backups count when old ones are removed.
Rule 4: a restore writes to a new folder, checks the tapes, and renames it.
Rule 5: a restore erases again what the list beside the backups names (``erased_list``).
Rule 6: both archives name their backup, and the home that made them has signed this. What others
    made is restored only after the owner saw its settings.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
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
from bot.core.i18n import _
from bot.core.patterns import LazyPattern
from bot.tape.stores.folder_verification import VerificationReport, verify_folder
from bot.transfer.backup_archive import read_archive, write_archive
from bot.transfer.backup_encryption import (
    BackupKey,
    lock,
    parse_identity,
    unlock,
)
from bot.transfer.backup_signature import SIGNING_KEY, signing_key
from bot.transfer.erased_list import ERASED_LIST, copy_list, erase_again
from bot.transfer.home_snapshot import (
    CHECK_FOLDER,
    HomeSnapshot,
    SnapshotChanged,
    take_snapshot,
)

STATE = "state.tar.gz.age"
FILES = "files.tar.gz.age"
KEY = "key.age"

_NAME = LazyPattern(r"tapebot-\d{8}T\d{6}Z")
_TIME = "tapebot-%Y%m%dT%H%M%SZ"
_PART = ".part"
_TRIES = 5
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
        signer: Whose key signed it.
        erased: How many entries and files were erased again after it was restored.
    """

    path: Path
    taken: str
    files: int
    size: int
    tapes: VerificationReport
    signer: str
    removed: tuple[str, ...] = ()
    erased: int = 0


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

    Raises:
        BackupFailed: It does not read back, or the home changed too often.
        OSError: A disk refused; nothing of this backup remains.
    """
    if not (home / "tapes").is_dir():
        raise BackupFailed(_("{home} holds no tapes; nothing to back up", home=home))
    if to.resolve().is_relative_to(home.resolve()):
        raise BackupFailed(
            _("{to} is in the home folder: choose a folder elsewhere, or another disk", to=to)
        )
    with _locked(to):
        name = now.strftime(_TIME)
        made, part = to / name, to / f"{name}{_PART}"
        if made.exists():
            raise BackupFailed(_("{made} exists already", made=made))
        try:
            part.mkdir(mode=PRIVATE_DIRECTORY)
            key = replace(key, signing=signing_key(home))
            snapshot = _write(home, part, key, now, beat)
            report = _check(part, key.identity, home, workspace, beat)
            part.rename(made)
            sync_directory(to)
            copy_list(home / ERASED_LIST, to / ERASED_LIST)
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
        return BackupResult(made, format_time(now), len(kept), size, report, key.signer, removed)


def newest_backup(to: Path) -> Path | None:
    """Return the newest whole backup in a folder; None if there is none."""
    return next(iter(_backups(to)), None)


def backup_time(backup: Path) -> datetime:
    """Return the time that a backup's name tells, in UTC."""
    return datetime.strptime(backup.name, _TIME).replace(tzinfo=UTC)


def restore_backup(
    backup: Path,
    home: Path,
    identity: x25519.Identity,
    *,
    signer: str | None,
    confirm: Callable[[Path, str], bool],
    workspace: str = "",
) -> BackupResult:
    """Restore a backup to a home that is missing or empty.

    Raises:
        BackupFailed: The home holds something, the key does not fit, the backup is damaged or mixed,
            or nobody confirmed it.
        OSError: A disk refused; the home is unchanged.
    """
    if home.exists() and any(home.iterdir()):
        raise BackupFailed(
            _(
                "{home} is not empty: move it away, or set another TAPEBOT_HOME. Nothing was restored",
                home=home,
            )
        )
    private_directory(home.parent)
    fresh = home.with_name(f"{home.name}.restoring")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        fresh.mkdir(mode=PRIVATE_DIRECTORY)
        manifest = read_archive(backup / STATE, identity, fresh)
        files = read_archive(backup / FILES, identity, fresh)
        if (manifest.backup, manifest.signer) != (files.backup, files.signer):
            raise BackupFailed(
                _("{STATE} and {FILES} are of two backups", STATE=STATE, FILES=FILES)
            )
        if manifest.signer != signer:
            if not confirm(fresh, manifest.signer):
                raise BackupFailed(_("Nothing was restored."))
            # Whoever made the backup may have this key.
            (fresh / SIGNING_KEY).unlink(missing_ok=True)
        copy_list(backup.parent / ERASED_LIST, fresh / ERASED_LIST)
        erased = 0
        if (fresh / ERASED_LIST).exists():
            erased = anyio.run(erase_again, fresh, workspace, manifest.signer)
        report = verify_folder(fresh / "tapes", workspace)
        _sync(fresh)
        if home.exists():
            home.rmdir()
        fresh.rename(home)
        sync_directory(home.parent)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    count, size = manifest.count + files.count, manifest.size + files.size
    return BackupResult(home, manifest.taken, count, size, report, manifest.signer, erased=erased)


def open_key(
    backup: Path, passphrase: Callable[[], str], identity_file: Path | None
) -> tuple[x25519.Identity, str | None]:
    """Return the key that opens a backup, and who signed it if the passphrase vouches for that.

    Raises:
        BackupFailed: The key cannot be had.
        OSError: A file cannot be read.
    """
    if not (backup / STATE).is_file():
        raise BackupFailed(
            _("{backup} is no backup: it has no {STATE}", backup=backup, STATE=STATE)
        )
    if identity_file is not None:
        return parse_identity(identity_file.read_text("utf-8", "replace")), None
    if not (backup / KEY).is_file():
        raise BackupFailed(
            _("this backup is for the owner of a key: give its file with --identity")
        )
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
        raise BackupFailed(_("another backup to {to} is being made", to=to)) from error


# Writing.


def _write(
    home: Path, part: Path, key: BackupKey, now: datetime, beat: Callable[[], None]
) -> HomeSnapshot:
    """Write both archives of a snapshot; take another one if the home changed too much."""
    about = {
        "tapebot": version("tapebot"),
        "taken": format_time(now),
        "backup": secrets.token_hex(16),
    }
    snapshot = _write_state(home, part, key, about, beat)
    # The state names these files, so that none is missing but those that were erased meanwhile.
    gone: list[str] = []
    write_archive(part / FILES, key, snapshot, snapshot.blobs, about, gone=gone, beat=beat)
    if key.passphrase is not None:
        write_synced(part / KEY, lock(key))
    first = "age -d key.age > key.txt; " if key.passphrase is not None else ""
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
        try:
            write_archive(part / STATE, key, snapshot, snapshot.files, about, beat=beat)
        except SnapshotChanged as error:
            left -= 1
            if not left:
                raise BackupFailed(
                    _(
                        "{error}, again and again; try at a quieter time, or stop tapebot",
                        error=error,
                    )
                ) from error
        else:
            return snapshot


# Reading.


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
    read_archive(part / STATE, identity, scratch, beat)
    read_archive(part / FILES, identity, None, beat)
    return verify_folder(scratch / "tapes", workspace)


def _sync(folder: Path) -> None:
    """Make all files and folders below one durable."""
    for path in (*folder.rglob("*"), folder):
        if path.is_dir():
            sync_directory(path)
        elif path.is_file():
            with path.open("rb") as file:
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
