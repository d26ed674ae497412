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

_MANIFEST = "backup.json"
_SIGNATURE = "backup.json.sig"
_FORMAT = 2
_COMPRESSION = 6
_GZIP = 31
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class ArchiveContents:
    """What an archive held.

    Attributes:
        taken: When the home was read, ISO 8601.
        count: How many files it held.
        size: Their bytes.
        signer: Whose key has signed it.
    """

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
    """Write a snapshot to an encrypted archive, durably.

    Raises:
        SnapshotChanged: A file was replaced since the snapshot.
        BackupFailed: The encryption failed.
        OSError: A disk refused.
    """
    about = {"format": _FORMAT, "signer": signer_of(signing), **about}
    with path.open("wb") as out:
        path.chmod(PRIVATE_FILE)
        encrypt(_compressed(_packed(snapshot, signing, about), beat), out, key)
        out.flush()
        os.fsync(out.fileno())


def _compressed(chunks: Iterator[bytes], beat: Callable[[], None]) -> Iterator[bytes]:
    packer = zlib.compressobj(_COMPRESSION, zlib.DEFLATED, _GZIP)
    for chunk in chunks:
        beat()
        if data := packer.compress(chunk):
            yield data
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
        info = tarfile.TarInfo(file.path)
        info.size, info.mode, info.mtime = file.size, file.mode, file.changed
        digest = hashlib.sha256()
        yield info.tobuf()
        for chunk in chunks:
            digest.update(chunk)
            yield chunk
        yield _padding(file.size)
        digests[file.path] = digest.hexdigest()
    manifest = json.dumps({**about, "files": digests}, ensure_ascii=False).encode()
    for name, data in ((_MANIFEST, manifest), (_SIGNATURE, signing.sign(manifest))):
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(data), PRIVATE_FILE
        yield info.tobuf() + data + _padding(len(data))
    yield bytes(2 * tarfile.BLOCKSIZE)


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

    Args:
        path: The archive.
        identity: What opens it.
        into: The folder.
        without_blobs: Compare the files that people sent, but write them nowhere.
        beat: Called with each piece.

    Raises:
        BackupFailed: The archive is damaged or of another format, or the key does not fit.
        OSError: A disk refused.
    """
    found: list[ArchiveContents] = []

    def extract(plain: IO[bytes]) -> None:
        digests: dict[str, str] = {}
        size, last = 0, {_MANIFEST: b"", _SIGNATURE: b""}
        with tarfile.open(fileobj=plain, mode="r|gz") as archive:
            for info in archive:
                source = archive.extractfile(info) if info.isreg() else None
                if source is None:
                    raise BackupFailed(_("{name!r} in the backup is no file", name=info.name[:100]))
                if info.name in last:
                    last[info.name] = source.read()
                    continue
                target = _target(info.name, into, digests)
                skipped = without_blobs and info.name.startswith(BLOBS)
                digests[info.name] = _copy(source, info.mode, None if skipped else target, beat)
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


def _target(name: str, into: Path, seen: dict[str, str]) -> Path:
    # An index or the sandbox's program is made anew: only somebody else puts one there.
    if not is_path_below(name) or not is_saved(Path(name)):
        raise BackupFailed(_("{name!r} in the backup is no path below the home", name=name[:100]))
    if name in seen or (into / name).exists():
        raise BackupFailed(_("{name!r} is in the backup twice", name=name[:100]))
    return into / name


def _copy(source: IO[bytes], mode: int, path: Path | None, beat: Callable[[], None]) -> str:
    """Copy a file, if it has a path, and return the digest of its bytes."""
    digest = hashlib.sha256()
    if path is not None:
        private_directory(path.parent)
    with (path or Path(os.devnull)).open("wb" if path is None else "xb") as out:
        if path is not None:
            path.chmod(mode & 0o700)
        while data := source.read(_BLOCK):
            beat()
            digest.update(data)
            out.write(data)
    return digest.hexdigest()


def _compared(
    manifest: bytes, signature: bytes, digests: dict[str, str], size: int
) -> ArchiveContents:
    try:
        told = json.loads(manifest)
        form, files = told["format"], told["files"]
        taken, signer = str(told["taken"]), str(told["signer"])
    except (ValueError, KeyError, TypeError) as error:
        raise BackupFailed(_("the backup has no list of its files: it is incomplete")) from error
    if form != _FORMAT:
        raise BackupFailed(
            _(
                "the backup has the format {form!r}: another tapebot made it; restore it with that one",
                form=form,
            )
        )
    if files != digests:
        differ = sorted(files.items() ^ digests.items())
        raise BackupFailed(
            _("{differ} in the backup differs from what was saved", differ=differ[0][0])
        )
    if not is_signed(manifest, signature, signer):
        raise BackupFailed(_("the backup is not signed: tapebot did not make it"))
    return ArchiveContents(taken, len(digests), size, signer)
