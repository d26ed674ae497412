"""Encrypt backups with age, so that its own tools can open them, and sign them. Blocking.

Each backup has a key of its own. It is encrypted for the recipients' keys, or with a passphrase in a
small file beside the archive. A key of the home signs: whoever can encrypt for its owner cannot sign.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BufferedIOBase
from os import fdopen, pipe
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pyrage
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pyrage import x25519

from bot.core.errors import BackupFailed, SettingsError
from bot.core.files import replace_file
from bot.core.i18n import _

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

SIGNING_KEY = "backup-signing.key"
"""The home's key; it is in its backups, so that a restored home signs with it, too."""

_PREFIX = "ed25519:"
_SIGNED_BY = "# signed by "  # for the parser


def signing_key(home: Path) -> Ed25519PrivateKey:
    """Return the home's key; make one if it has none."""
    path = home / SIGNING_KEY
    if not path.exists():
        replace_file(path, Ed25519PrivateKey.generate().private_bytes_raw())
    return Ed25519PrivateKey.from_private_bytes(path.read_bytes())


def signer_of(key: Ed25519PrivateKey) -> str:
    """Return the text by which a person knows a key: its public part."""
    return _PREFIX + base64.urlsafe_b64encode(key.public_key().public_bytes_raw()).decode()


def is_signed(data: bytes, signature: bytes, signer: str) -> bool:
    """Say whether a signer signed these bytes."""
    try:
        raw = base64.urlsafe_b64decode(signer.removeprefix(_PREFIX))
        # Decoding skips what is no base64, such as words for the person who reads the signer.
        if signer != _PREFIX + base64.urlsafe_b64encode(raw).decode():
            return False
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class BackupKey:
    """What opens a backup, for whom it is encrypted, and the passphrase that encrypts the identity."""

    identity: x25519.Identity
    recipients: tuple[x25519.Recipient, ...]
    passphrase: str | None = field(default=None, repr=False)


def passphrase_key(passphrase: str) -> BackupKey:
    """Return a new key that a passphrase unlocks."""
    identity = x25519.Identity.generate()
    return BackupKey(identity, (identity.to_public(),), passphrase)


def recipient_key(recipients: Sequence[str]) -> BackupKey:
    """Return a new key for the owners of other keys; raise ``SettingsError`` if one is none of age."""
    identity = x25519.Identity.generate()
    keys = [identity.to_public()]
    for text in recipients:
        try:
            keys.append(x25519.Recipient.from_str(text))
        except pyrage.RecipientError as error:
            allowed = _(
                "{text!r} is not a public key of age; allowed: age1..., as `age-keygen` prints it",
                text=text[:20],
            )
            raise SettingsError(allowed) from error
    return BackupKey(identity, tuple(keys))


def lock(key: BackupKey, signer: str) -> bytes:
    """Return an identity and who signs its backup, encrypted with the passphrase."""
    assert key.passphrase is not None
    text = f"{_SIGNED_BY}{signer}\n{key.identity}\n"
    return pyrage.passphrase.encrypt(text.encode(), key.passphrase)


def unlock(locked: bytes, passphrase: str) -> tuple[x25519.Identity, str | None]:
    """Return the identity that a passphrase unlocks, and who signed its backup.

    Raises:
        BackupFailed: The passphrase is wrong, the file is damaged, or this machine is too slow now.
    """
    try:
        text = pyrage.passphrase.decrypt(locked, passphrase).decode()
    except (pyrage.DecryptError, UnicodeDecodeError) as error:
        told = _("the passphrase is wrong, or the backup's key.age is damaged")
        # age measures how long scrypt would take here, and gives up where that is far longer than at the backup.
        if str(error).startswith("Excessive work"):
            told = _(
                "this machine is too slow or too busy to derive the key from the passphrase now; "
                "try again when it does less"
            )
        raise BackupFailed(told) from error
    signer = text.partition("\n")[0].removeprefix(_SIGNED_BY)
    return parse_identity(text), signer


def parse_identity(text: str) -> x25519.Identity:
    """Return the identity in the text of an age key file."""
    lines = [line.strip() for line in text.splitlines() if not line.startswith("#")]
    try:
        return x25519.Identity.from_str(next(filter(None, lines), ""))
    except pyrage.IdentityError as error:
        raise BackupFailed(_("this is no secret key of age (AGE-SECRET-KEY-1...)")) from error


class _Chunks(BufferedIOBase):
    """A file over chunks; it keeps what they raise, since age raises an error of its own instead."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._left = chunks, b""
        self.raised: BaseException | None = None

    def read(self, size: int | None = -1, /) -> bytes:
        try:
            while not self._left and (more := next(self._chunks, None)) is not None:
                self._left = more
        except BaseException as error:
            self.raised = error
            raise
        most = size if size is not None and size > 0 else len(self._left)
        data, self._left = self._left[:most], self._left[most:]
        return data


class _Target(BufferedIOBase):
    """A file that keeps the error of a disk that is full."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self.raised: OSError | None = None

    def write(self, data: Buffer, /) -> int:
        try:
            return self._out.write(data)
        except OSError as error:
            self.raised = error
            raise


def encrypt(chunks: Iterator[bytes], out: IO[bytes], key: BackupKey) -> None:
    """Encrypt what comes in chunks; raise what they raise."""
    source, target = _Chunks(chunks), _Target(out)
    try:
        pyrage.encrypt_io(source, target, list(key.recipients))
    except BaseException as error:
        raise _failure(source.raised or target.raised or error) from error


def decrypt(
    source: IO[bytes], read: Callable[[IO[bytes]], object], identity: x25519.Identity
) -> None:
    """Decrypt a file in a thread, and have ``read`` read it here; raise what it raises."""
    ends = pipe()
    raised: list[BaseException] = []

    def run() -> None:
        try:
            with fdopen(ends[1], "wb") as out:
                pyrage.decrypt_io(source, out, [identity])  # type: ignore[arg-type]
        except BaseException as error:  # noqa: BLE001 (raised again by the reader's thread)
            raised.append(error)

    worker = threading.Thread(target=run, name="backup")
    worker.start()
    try:
        with fdopen(ends[0], "rb") as plain:
            read(plain)
            # The last words are checked, too: age signs the end of a file.
            while plain.read(1 << 20):
                pass
    except BaseException as error:
        worker.join()
        cause = raised[0] if raised and not isinstance(raised[0], BrokenPipeError) else error
        raise _failure(cause) from error
    worker.join()
    if raised:
        raise _failure(raised[0]) from raised[0]


def _failure(error: BaseException) -> BaseException:
    # The library reports a damaged stream as an OSError of no number.
    if isinstance(error, (pyrage.EncryptError, pyrage.DecryptError)) or (
        isinstance(error, OSError) and error.errno is None
    ):
        return BackupFailed(
            _("the key does not fit, or the backup is damaged ({error})", error=error)
        )
    return error
