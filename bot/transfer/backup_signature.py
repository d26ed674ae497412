"""Sign backups with a key of the home: whoever can encrypt for its owner cannot sign. Blocking."""

from __future__ import annotations

import base64
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from bot.core.files import replace_file

SIGNING_KEY = "backup-signing.key"
"""The home's key; it is in its backups, so that a restored home signs with it, too."""

_PREFIX = "ed25519:"


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
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True
