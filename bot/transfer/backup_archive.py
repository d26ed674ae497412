"""Write and read the archives of a backup: compressed, encrypted, signed. Blocking.

Rule 1: an archive ends with a signed list of its files' digests, its own name and its backup.
Rule 2: nothing is written outside the folder that it is unpacked to, and nothing that no backup holds.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from io import BufferedIOBase
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pyrage import x25519

from bot.core.errors import BackupFailed
from bot.core.files import PRIVATE_FILE, private_directory
from bot.core.i18n import _
from bot.transfer.backup_encryption import BackupKey, decrypt, encrypt
from bot.transfer.backup_signature import is_signed
from bot.transfer.home_snapshot import HomeSnapshot, SnapshotChanged, SnapshotFile, is_saved

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_MANIFEST = "backup.json"
_SIGNATURE = "backup.json.sig"
_FORMAT = 1
_COMPRESSION = 6


def write_archive(
    path: Path,
    key: BackupKey,
    snapshot: HomeSnapshot,
    files: tuple[SnapshotFile, ...],
    about: dict[str, Any],
    *,
    gone: list[str] | None = None,
    beat: Callable[[], None],
) -> None:
    """Write files of a snapshot to an encrypted archive, durably.

    Raises:
        SnapshotChanged: A file was replaced since the snapshot.
        BackupFailed: The encryption failed.
        OSError: A disk refused.
    """
    about = {"format": _FORMAT, "archive": path.name, "signer": key.signer, **about}
    pack = partial(_pack, snapshot, files, about, gone, key=key)
    with path.open("wb") as out:
        path.chmod(PRIVATE_FILE)
        encrypt(pack, _Beating(out, beat), key)
        out.flush()
        os.fsync(out.fileno())


def _pack(
    snapshot: HomeSnapshot,
    files: tuple[SnapshotFile, ...],
    about: dict[str, Any],
    gone: list[str] | None,
    out: BufferedIOBase,
    *,
    key: BackupKey,
) -> None:
    """Write files as a compressed archive, and a signed manifest with their digests at its end."""
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
        for name, data in ((_MANIFEST, manifest), (_SIGNATURE, key.sign(manifest))):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), PRIVATE_FILE
            archive.addfile(info, io.BytesIO(data))


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
        # Python closes and so flushes it when it is freed, after the file itself was closed.
        if not self._file.closed:
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


@dataclass(frozen=True, slots=True)
class ArchiveContents:
    """What an archive held.

    Attributes:
        taken: When the home was read, ISO 8601.
        count: How many files it held.
        size: Their bytes.
        backup: The backup that it is a part of.
        signer: Whose key has signed it.
    """

    taken: str
    count: int
    size: int
    backup: str
    signer: str


def read_archive(
    path: Path,
    identity: x25519.Identity,
    into: Path | None,
    beat: Callable[[], None] = lambda: None,
) -> ArchiveContents:
    """Read an archive, compare its files with their digests, and write them to a folder.

    Raises:
        BackupFailed: The archive is damaged, of another format or another's, or the key does not fit.
        OSError: A disk refused.
    """
    found: list[ArchiveContents] = []
    with path.open("rb") as source:
        extract = partial(_extract, into, path.name, found)
        decrypt(source, lambda plain: extract(_Beating(plain, beat)), identity)
    if not found:
        raise BackupFailed(_("{name} has no end: the backup is incomplete", name=path.name))
    return found[0]


def _extract(
    into: Path | None, own_name: str, found: list[ArchiveContents], plain: BufferedIOBase
) -> None:
    digests: dict[str, str] = {}
    size, last = 0, {_MANIFEST: b"", _SIGNATURE: b""}
    try:
        with tarfile.open(fileobj=plain, mode="r|gz") as archive:
            for info in archive:
                source = archive.extractfile(info) if info.isreg() else None
                if source is None:
                    raise BackupFailed(_("{name!r} in the backup is no file", name=info.name[:100]))
                if info.name in last:
                    last[info.name] = source.read()
                    continue
                digests[info.name] = _copy(source, info, into)
                size += info.size
    except (tarfile.TarError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise BackupFailed(_("the backup is damaged ({error})", error=error)) from error
    read = _compared(last[_MANIFEST], own_name, digests, size)
    if not is_signed(last[_MANIFEST], last[_SIGNATURE], read.signer):
        raise BackupFailed(_("{name} is not signed: tapebot did not make it", name=own_name))
    found.append(read)


def _compared(
    manifest: bytes, own_name: str, digests: dict[str, str], size: int
) -> ArchiveContents:
    try:
        told = json.loads(manifest)
        form, files, name = told["format"], told["files"], told["archive"]
        taken, backup, signer = (str(told[key]) for key in ("taken", "backup", "signer"))
    except (ValueError, KeyError, TypeError) as error:
        raise BackupFailed(_("the backup has no list of its files: it is incomplete")) from error
    if form != _FORMAT:
        raise BackupFailed(
            _(
                "the backup has the format {form!r}: a newer tapebot made it; update first",
                form=form,
            )
        )
    if files != digests:
        differ = sorted(files.items() ^ digests.items())
        raise BackupFailed(
            _("{differ} in the backup differs from what was saved", differ=differ[0][0])
        )
    if name != own_name:
        raise BackupFailed(
            _("{name} is another archive under this name: {other}", name=own_name, other=name)
        )
    return ArchiveContents(taken, len(digests), size, backup, signer)


def _copy(source: IO[bytes], info: tarfile.TarInfo, into: Path | None) -> str:
    """Copy a file below a folder, and return the digest of its bytes."""
    digest = hashlib.sha256()
    path = None if into is None else _inside(into, info.name)
    if path is None:
        while data := source.read(1 << 20):
            digest.update(data)
        return digest.hexdigest()
    private_directory(path.parent)
    if path.exists():
        raise BackupFailed(_("{name!r} is in the backup twice", name=info.name[:100]))
    with path.open("xb") as out:
        path.chmod(info.mode & 0o700)
        while data := source.read(1 << 20):
            digest.update(data)
            out.write(data)
    return digest.hexdigest()


def _inside(folder: Path, name: str) -> Path:
    path = Path(name)
    # An index or the sandbox's program is made anew: only somebody else puts one there.
    if path.is_absolute() or ".." in path.parts or "\0" in name or not is_saved(path):
        raise BackupFailed(_("{name!r} in the backup is no path below the home", name=name[:100]))
    return folder / path
