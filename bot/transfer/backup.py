"""Make, check, rotate and restore encrypted backups of a home in files. Blocking.

A backup is a folder ``tapebot-20261126T033000Z`` with an archive, ``home.tar.gz.age``, ``key.age`` if
a passphrase opens it, and a text that tells how to open it without tapebot.

Rule 1: a backup holds the home as of one moment (``home_snapshot``); tapebot may run meanwhile.
Rule 2: it has its name only once it was decrypted, unpacked and checked.
Rule 3: only whole backups count when old ones are removed.
Rule 4: a restore writes to a new folder, checks the tapes, and renames it.
Rule 5: a restore erases again what the list beside the backups names (``erased_list``).
Rule 6: the home that made an archive has signed it. What others made is restored only after the owner
    saw its settings.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import anyio
from filelock import FileLock, Timeout
from pyrage import x25519

from bot.core.clock import format_time
from bot.core.errors import BackupFailed
from bot.core.files import (
    PRIVATE_DIRECTORY,
    PRIVATE_FILE,
    list_files,
    private_directory,
    sync_directory,
    write_synced,
)
from bot.core.i18n import _
from bot.tape.stores.folder import workspaces_in
from bot.tape.stores.folder_verification import VerificationReport, verify_folder
from bot.transfer import backup_key as keys
from bot.transfer.backup_archive import ArchiveContents, read_archive, write_archive
from bot.transfer.backup_key import BackupKey
from bot.transfer.erased_list import ERASED_LIST, copy_list, erase_again
from bot.transfer.home_snapshot import CHECK_FOLDER, SnapshotChanged, take_snapshot

ARCHIVE = "home.tar.gz.age"
KEY = "key.age"

_TIME = "tapebot-%Y%m%dT%H%M%SZ"
_PART = ".part"
_TRIES = 5
_README = """\
This is a backup of a tapebot home, encrypted with age (https://age-encryption.org).

Restore it with tapebot:   tapebot restore FOLDER
or by hand:                {unlock}age -d -i key.txt home.tar.gz.age | tar xz -C HOME
"""


@dataclass(frozen=True, slots=True)
class BackupResult:
    """A backup that was made or restored, and how many entries and files were erased from it again."""

    path: Path
    read: ArchiveContents
    tapes: VerificationReport
    removed: tuple[str, ...] = ()
    erased: int = 0


def create_backup(
    home: Path,
    to: Path,
    key: BackupKey,
    now: datetime,
    *,
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
        made = to / now.strftime(_TIME)
        part, scratch = to / f"{made.name}{_PART}", home / CHECK_FOLDER
        if made.exists():
            raise BackupFailed(_("{made} exists already", made=made))
        try:
            part.mkdir(mode=PRIVATE_DIRECTORY)
            _write(home, part, key, now, beat)
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(mode=PRIVATE_DIRECTORY)
            archive = part / ARCHIVE
            read = read_archive(archive, key.identity, scratch, without_blobs=True, beat=beat)
            report = _verified(scratch / "tapes")
            part.rename(made)
            sync_directory(to)
            copy_list(home / ERASED_LIST, to / ERASED_LIST)
        finally:
            shutil.rmtree(part, ignore_errors=True)
            shutil.rmtree(scratch, ignore_errors=True)
        removed = () if keep is None else _rotate(to, keep)
        return BackupResult(made, read, report, removed)


def newest_backup(to: Path) -> Path | None:
    """Return the newest whole backup in a folder; None if there is none."""
    return next(iter(_backups(to)), None)


def _backups(to: Path) -> list[Path]:
    """Return the whole backups in a folder, newest first."""
    found = []
    for path in list_files(to, "tapebot-*Z"):
        with suppress(ValueError):  # no such date
            found += [path] if backup_time(path).strftime(_TIME) == path.name else []
    return sorted(found, reverse=True)


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
) -> BackupResult:
    """Restore a backup to a home that is missing or empty.

    Raises:
        BackupFailed: The home holds something, the key does not fit, the backup is damaged, or nobody
            confirmed it.
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
        read = read_archive(backup / ARCHIVE, identity, fresh)
        if read.signer != signer:
            if not confirm(fresh, read.signer):
                raise BackupFailed(_("Nothing was restored."))
            # Whoever made the backup may have this key.
            (fresh / keys.SIGNING_KEY).unlink(missing_ok=True)
        copy_list(backup.parent / ERASED_LIST, fresh / ERASED_LIST)
        erased = 0
        if (fresh / ERASED_LIST).exists():
            erased = anyio.run(erase_again, fresh, read.signer)
        report = _verified(fresh / "tapes")
        _sync(fresh)
        if home.exists():
            home.rmdir()
        fresh.rename(home)
        sync_directory(home.parent)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return BackupResult(home, read, report, erased=erased)


def open_key(
    backup: Path, passphrase: Callable[[], str], identity_file: Path | None
) -> tuple[x25519.Identity, str | None]:
    """Return the key that opens a backup, and who signed it if the passphrase vouches for that."""
    if not (backup / ARCHIVE).is_file():
        raise BackupFailed(
            _("{backup} is no backup: it has no {archive}", backup=backup, archive=ARCHIVE)
        )
    if identity_file is not None:
        return keys.parse_identity(identity_file.read_text("utf-8", "replace")), None
    if not (backup / KEY).is_file():
        raise BackupFailed(
            _("this backup is for the owner of a key: give its file with --identity")
        )
    return keys.unlock((backup / KEY).read_bytes(), passphrase())


@contextmanager
def _locked(to: Path) -> Iterator[None]:
    """Create the folder of backups if it is missing, and keep other backups out."""
    private_directory(to)
    try:
        with FileLock(to / ".lock", timeout=0, mode=PRIVATE_FILE, thread_local=False):
            yield
    except Timeout as error:
        raise BackupFailed(_("another backup to {to} is being made", to=to)) from error


def _write(home: Path, part: Path, key: BackupKey, now: datetime, beat: Callable[[], None]) -> None:
    """Write the files of a backup; take another snapshot if the home changed too much."""
    signing = keys.signing_key(home)
    about = {"tapebot": version("tapebot"), "taken": format_time(now)}
    for left in reversed(range(_TRIES)):
        snapshot = take_snapshot(home, beat)
        try:
            write_archive(part / ARCHIVE, key, snapshot, about, signing=signing, beat=beat)
            break
        except SnapshotChanged as error:
            if not left:
                told = _(
                    "{error}, again and again; try at a quieter time, or stop tapebot", error=error
                )
                raise BackupFailed(told) from error
    first = ""
    if key.passphrase is not None:
        first = "age -d key.age > key.txt; "
        write_synced(part / KEY, keys.lock(key, keys.signer_of(signing)))
    write_synced(part / "README.txt", _README.format(unlock=first).encode())
    sync_directory(part)


def _verified(tapes: Path) -> VerificationReport:
    """Verify the tapes of all workspaces."""
    whole = VerificationReport()
    for one in (verify_folder(tapes, workspace) for workspace in workspaces_in(tapes)):
        whole.tapes += one.tapes
        whole.problems += one.problems
    return whole


def _sync(folder: Path) -> None:
    """Make all files and folders below one durable."""
    for path in (*folder.rglob("*"), folder):
        if path.is_dir():
            sync_directory(path)
        elif path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


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
