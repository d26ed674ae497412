"""The chain of digests through a tape: each entry's digest covers the entry and the digest before it. Pure.

Rule 1: ``digest = SHA-256(previous, salt, erased, id, more, content)``, its first 12 bytes. ``content`` is the
    entry's line from its kind to its meta, as ``bot.tape.codec`` writes it, so a digest is of bytes.
Rule 2: each entry has a salt of its own, 12 random bytes. It goes when the entry is erased: from then on
    no digest tells whether a guess at the erased words is right.
Rule 3: a tombstone has a digest of its own, and keeps that of what it replaced as ``erased``. The entry
    behind it refers to that one, so an erasure changes no other link.
Rule 4: a tape begins with ``START``. What comes after a reset refers to the last entry that was dropped.
"""

from __future__ import annotations

import os
from binascii import a2b_base64, b2a_base64
from dataclasses import dataclass
from hashlib import sha256

DIGEST_SIZE = 12
"""Bytes of a digest, and of a salt."""

CHAIN_START = bytes(DIGEST_SIZE)
"""What a tape's first entry refers to."""


@dataclass(frozen=True, slots=True)
class ChainLink:
    """What ties an entry to the one before it.

    Attributes:
        id: The entry's id.
        more: How many entries of its append follow it.
        previous: The value of the link before.
        salt: Random bytes that are in the digest.
        digest: Of the entry, and of all of this.
        erased: The digest of the entry that a tombstone replaced; empty for all others.
    """

    id: int
    more: int
    previous: bytes
    salt: bytes
    digest: bytes
    erased: bytes = b""

    @property
    def value(self) -> bytes:
        """What the next link refers to."""
        return self.erased or self.digest

    def covers(self, content: bytes) -> bool:
        """Say whether the digest is that of an entry."""
        before = self.previous + self.salt
        return self.digest == _digest(before, self.erased, self.id, self.more, content)

    def to_bytes(self) -> bytes:
        """Return the link but for id and ``more``: 36 bytes, of a tombstone 48."""
        return self.previous + self.salt + self.digest + self.erased

    def to_base64(self) -> bytes:
        """Return the same as text: 48 characters, of a tombstone 64."""
        return b2a_base64(self.to_bytes(), newline=False)


def make_link(previous: bytes, number: int, more: int, content: bytes) -> ChainLink:
    """Return the link of a new entry.

    Args:
        previous: The value of the link before it.
        number: The entry's id.
        more: How many entries of its append follow it.
        content: Its line from its kind to its meta.
    """
    salt = os.urandom(DIGEST_SIZE)
    digest = _digest(previous + salt, b"", number, more, content)
    return ChainLink(number, more, previous, salt, digest)


def tombstone_link(replaced: ChainLink, content: bytes) -> ChainLink:
    """Return the link of the tombstone that takes the place of an entry, or of another tombstone."""
    salt, erased = os.urandom(DIGEST_SIZE), replaced.value
    before = replaced.previous + salt
    digest = _digest(before, erased, replaced.id, replaced.more, content)
    return ChainLink(replaced.id, replaced.more, replaced.previous, salt, digest, erased)


def link_from_bytes(raw: bytes, number: int, more: int) -> ChainLink | None:
    """Return a link that ``to_bytes`` wrote; None where the bytes are none."""
    if len(raw) not in (3 * DIGEST_SIZE, 4 * DIGEST_SIZE):
        return None
    cut = [raw[at : at + DIGEST_SIZE] for at in range(0, len(raw), DIGEST_SIZE)]
    return ChainLink(number, more, *cut)


def link_from_base64(text: bytes, number: int, more: int) -> ChainLink | None:
    """Return a link that ``to_base64`` wrote; None where the text is none."""
    try:
        return link_from_bytes(a2b_base64(text, strict_mode=True), number, more)
    except ValueError:
        return None


def _digest(before: bytes, erased: bytes, number: int, more: int, content: bytes) -> bytes:
    return sha256(b"%b%b%d,%d,%b" % (before, erased, number, more, content)).digest()[:DIGEST_SIZE]
