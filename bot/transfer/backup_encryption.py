"""Encrypt backups with age, so that its own tools can open them, too. Blocking.

Each backup has a key of its own. It is encrypted for the recipients' keys, or with a passphrase in a
small file beside the archives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from io import BufferedIOBase
from os import fdopen, pipe

import pyrage
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pyrage import x25519

from bot.core.errors import BackupFailed, SettingsError
from bot.core.i18n import _
from bot.transfer.backup_signature import signer_of

_SIGNED_BY = "# signed by "  # for the parser


@dataclass(frozen=True, slots=True)
class BackupKey:
    """The key of one backup.

    Attributes:
        identity: Opens the backup; it is known while the backup is made, so that it can be checked.
        recipients: Whom the archives are encrypted for.
        passphrase: What encrypts the identity; None if there are other recipients.
        signing: The home's key, which signs the archives; None before it is known.
    """

    identity: x25519.Identity
    recipients: tuple[x25519.Recipient, ...]
    passphrase: str | None = field(default=None, repr=False)
    signing: Ed25519PrivateKey | None = None

    @property
    def signer(self) -> str:
        """The text by which a person knows whose key signs."""
        assert self.signing is not None
        return signer_of(self.signing)

    def sign(self, data: bytes) -> bytes:
        """Return a signature of these bytes."""
        assert self.signing is not None
        return self.signing.sign(data)


def passphrase_key(passphrase: str) -> BackupKey:
    """Return a new key that a passphrase unlocks."""
    identity = x25519.Identity.generate()
    return BackupKey(identity, (identity.to_public(),), passphrase)


def lock(key: BackupKey) -> bytes:
    """Return an identity and who signs its backup, encrypted with the passphrase."""
    assert key.passphrase is not None
    text = f"{_SIGNED_BY}{key.signer}\n{key.identity}\n"
    return pyrage.passphrase.encrypt(text.encode(), key.passphrase)


def recipient_key(recipients: Sequence[str]) -> BackupKey:
    """Return a new key for the owners of other keys.

    Raises:
        SettingsError: One is no public key of age.
    """
    keys = []
    for text in recipients:
        try:
            keys.append(x25519.Recipient.from_str(text))
        except pyrage.RecipientError as error:
            raise SettingsError(
                _(
                    "{text!r} is not a public key of age; allowed: age1..., as `age-keygen` prints it",
                    text=text[:20],
                )
            ) from error
    identity = x25519.Identity.generate()
    return BackupKey(identity, (*keys, identity.to_public()))


def unlock(locked: bytes, passphrase: str) -> tuple[x25519.Identity, str | None]:
    """Return the identity that a passphrase unlocks, and who signed its backup.

    Raises:
        BackupFailed: The passphrase is wrong, the file is damaged, or this machine is too slow now.
    """
    try:
        text = pyrage.passphrase.decrypt(locked, passphrase).decode()
    except (pyrage.DecryptError, UnicodeDecodeError) as error:
        # age measures how long scrypt would take here, and gives up where that is far longer than at the backup.
        if str(error).startswith("Excessive work"):
            raise BackupFailed(
                _(
                    "this machine is too slow or too busy to derive the key from the passphrase now; "
                    "try again when it does less"
                )
            ) from error
        raise BackupFailed(
            _("the passphrase is wrong, or the backup's key.age is damaged")
        ) from error
    signer = text.partition("\n")[0].removeprefix(_SIGNED_BY)
    return parse_identity(text), signer


def parse_identity(text: str) -> x25519.Identity:
    """Return an identity from the text of an age key file.

    Raises:
        BackupFailed: It contains no secret key.
    """
    lines = [line.strip() for line in text.splitlines() if not line.startswith("#")]
    try:
        return x25519.Identity.from_str(next(filter(None, lines), ""))
    except pyrage.IdentityError as error:
        raise BackupFailed(_("this is no secret key of age (AGE-SECRET-KEY-1...)")) from error


def encrypt(write: Callable[[BufferedIOBase], object], out: BufferedIOBase, key: BackupKey) -> None:
    """Encrypt what ``write`` writes.

    Raises:
        BackupFailed: The encryption failed.
        Exception: As ``write`` raises.
    """
    _join(
        write,
        lambda source: pyrage.encrypt_io(source, out, list(key.recipients)),
        (pyrage.EncryptError,),
    )


def decrypt(
    source: BufferedIOBase, read: Callable[[BufferedIOBase], object], identity: x25519.Identity
) -> None:
    """Decrypt a file, and have ``read`` read it.

    Raises:
        BackupFailed: The key is another one, or the file is damaged.
        Exception: As ``read`` raises.
    """
    _join(
        lambda out: pyrage.decrypt_io(source, out, [identity]),
        read,
        (pyrage.DecryptError,),
    )


def _join(
    write: Callable[[BufferedIOBase], object],
    read: Callable[[BufferedIOBase], object],
    failures: tuple[type[Exception], ...],
) -> None:
    """Run a writer in a thread and a reader here, joined by a pipe."""
    ends = pipe()
    raised: list[BaseException] = []

    def run() -> None:
        try:
            with fdopen(ends[1], "wb") as out:
                write(out)
        except BaseException as error:  # noqa: BLE001 (raised again by the reader's thread)
            raised.append(error)

    worker = threading.Thread(target=run, name="backup")
    worker.start()
    try:
        with fdopen(ends[0], "rb") as source:
            read(source)
            # The writer's last words are checked, too: age signs the end of a file.
            while source.read(1 << 20):
                pass
    except BaseException as error:
        worker.join()
        cause = raised[0] if raised and not isinstance(raised[0], BrokenPipeError) else error
        raise _failure(cause, failures) from error
    worker.join()
    if raised:
        raise _failure(raised[0], failures) from raised[0]


def _failure(error: BaseException, failures: tuple[type[Exception], ...]) -> BaseException:
    # The library reports a damaged stream as an OSError of no number.
    if isinstance(error, failures) or (isinstance(error, OSError) and error.errno is None):
        return BackupFailed(
            _("the key does not fit, or the backup is damaged ({error})", error=error)
        )
    return error
