"""Write and read the archive of a backup: compressed, encrypted, signed. Blocking.

Rule 1: an archive ends with a signed list of its files' digests.
Rule 2: nothing is written outside the folder that it is unpacked to, and nothing that no backup holds.
"""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pyrage import x25519

from bot.core.errors import BackupFailed
from bot.core.files import PRIVATE_FILE, private_directory
from bot.core.i18n import _
from bot.transfer.backup_key import BackupKey, decrypt, encrypt, is_signed, signer_of
from bot.transfer.foreign import is_path_below
from bot.transfer.home_snapshot import BLOBS, HomeSnapshot, SnapshotChanged, is_saved
from bot.transfer.whole_files import open_private

_MANIFEST, _SIGNATURE = "backup.json", "backup.json.sig"
_FORMAT = 1
_COMPRESSION = 6
_GZIP = 31
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class ArchiveContents:
    """What an archive held: when the home was read, how many files and bytes, and who signed it."""

    taken: str
    count: int
    size: int
    signer: str


def write_archive(
    path: Path,
    key: BackupKey,
    snapshot: HomeSnapshot,
    about: dict[str, Any],
    *,
    signing: Ed25519PrivateKey,
    beat: Callable[[], None],
) -> None:
    """Write a snapshot to an encrypted archive, durably; ``beat`` is called with each piece.

    Raises:
        SnapshotChanged: A file was replaced since the snapshot.
        BackupFailed: The encryption failed.
    """
    about = {"format": _FORMAT, "signer": signer_of(signing), **about}
    with open_private(path) as out:
        encrypt(_compressed(_packed(snapshot, signing, about), beat), out, key)


def _compressed(chunks: Iterator[bytes], beat: Callable[[], None]) -> Iterator[bytes]:
    packer = zlib.compressobj(_COMPRESSION, zlib.DEFLATED, _GZIP)
    for chunk in chunks:
        beat()
        yield packer.compress(chunk)
    yield packer.flush()


def _packed(
    snapshot: HomeSnapshot, signing: Ed25519PrivateKey, about: dict[str, Any]
) -> Iterator[bytes]:
    """Yield a tar of all files, and a signed manifest with their digests at its end."""
    digests = {}
    for file in (*snapshot.files, *snapshot.blobs):
        chunks = snapshot.read(file)
        if file.path.startswith(BLOBS):
            try:
                chunks = iter([b"".join(chunks)])
            except SnapshotChanged:  # erased meanwhile
                continue
        digest = hashlib.sha256()
        yield _header(file.path, file.size, file.mode, file.changed)
        for chunk in chunks:
            digest.update(chunk)
            yield chunk
        yield _padding(file.size)
        digests[file.path] = digest.hexdigest()
    # In ASCII, since a name may be no text.
    manifest = json.dumps({**about, "files": digests}).encode()
    for name, data in ((_MANIFEST, manifest), (_SIGNATURE, signing.sign(manifest))):
        yield _header(name, len(data), PRIVATE_FILE) + data + _padding(len(data))
    yield bytes(2 * tarfile.BLOCKSIZE)


def _header(name: str, size: int, mode: int, changed: int = 0) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, mode, changed
    return info.tobuf()


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)


def read_archive(
    path: Path,
    identity: x25519.Identity,
    into: Path,
    *,
    without_blobs: bool = False,
    beat: Callable[[], None] = lambda: None,
) -> ArchiveContents:
    """Read an archive, compare its files with their digests, and write them to a folder.

    With ``without_blobs`` the files that people sent are compared and written nowhere.

    Raises:
        BackupFailed: The archive is damaged or of another format, or the key does not fit.
    """
    found: list[ArchiveContents] = []

    def extract(plain: IO[bytes]) -> None:
        digests: dict[str, str] = {}
        size, last = 0, {_MANIFEST: b"", _SIGNATURE: b""}
        with tarfile.open(fileobj=plain, mode="r|gz") as archive:
            for info in archive:
                name, source = info.name, archive.extractfile(info) if info.isreg() else None
                if source is None:
                    raise BackupFailed(_("{name!r} in the backup is no file", name=name[:100]))
                if name in last:
                    last[name] = source.read()
                    continue
                _check_name(name, into, digests)
                skipped = without_blobs and name.startswith(BLOBS)
                target = Path(os.devnull) if skipped else into / name
                digests[name] = _copy(source, target, info.mode, beat)
                size += info.size
        found.append(_compared(last[_MANIFEST], last[_SIGNATURE], digests, size))

    try:
        with path.open("rb") as source:
            decrypt(source, extract, identity)
    except (tarfile.TarError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise BackupFailed(_("the backup is damaged ({error})", error=error)) from error
    return found[0]


def _check_name(name: str, into: Path, seen: dict[str, str]) -> None:
    # An index or the sandbox's program is made anew: only somebody else puts one there.
    if not is_path_below(name) or not is_saved(Path(name)):
        raise BackupFailed(_("{name!r} in the backup is no path below the home", name=name[:100]))
    if name in seen or (into / name).exists():
        raise BackupFailed(_("{name!r} is in the backup twice", name=name[:100]))


def _copy(source: IO[bytes], path: Path, mode: int, beat: Callable[[], None]) -> str:
    """Copy a file, and return the digest of its bytes."""
    digest = hashlib.sha256()
    private_directory(path.parent)
    with path.open("wb") as out:
        if path.is_file():
            path.chmod(mode & 0o700)
        while data := source.read(_PIECE):
            beat()
            digest.update(data)
            out.write(data)
    return digest.hexdigest()


def _compared(
    manifest: bytes, signature: bytes, digests: dict[str, str], size: int
) -> ArchiveContents:
    try:
        told = json.loads(manifest)
        form, files = told["format"], {name: str(one) for name, one in told["files"].items()}
        taken, signer = str(told["taken"]), str(told["signer"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BackupFailed(_("the backup has no list of its files: it is incomplete")) from error
    if form != _FORMAT:
        raise BackupFailed(
            _(
                "the backup has the format {form!r}: another tapebot made it; restore it with that one",
                form=form,
            )
        )
    if files != digests:
        differ = min(files.items() ^ digests.items())[0]
        raise BackupFailed(_("{differ} in the backup differs from what was saved", differ=differ))
    if not is_signed(manifest, signature, signer):
        raise BackupFailed(_("the backup is not signed: tapebot did not make it"))
    return ArchiveContents(taken, len(digests), size, signer)
