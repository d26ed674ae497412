"""Link each entry of a tape to the one before it by a salted digest. Pure.

Rule 1: ``digest = SHA-256(previous, salt, erased, id, more, content)``, cut to 12 bytes.
    ``content`` is the entry's line from its kind to its meta, as ``bot.tape.codec`` writes it, so a
    digest covers bytes.
Rule 2: each entry has its own salt of 12 random bytes, which goes when the entry is erased. From
    then on no digest can confirm a guess of the erased text.
Rule 3: a tombstone has its own digest and keeps the replaced entry's as ``erased``. The next
    entry's link refers to that one, so an erasure changes no other link.
Rule 4: a tape starts with ``CHAIN_START``. An entry after a reset refers to the last dropped entry.
"""

from __future__ import annotations

import os
from binascii import a2b_base64, b2a_base64
from dataclasses import dataclass
from hashlib import sha256

DIGEST_SIZE = 12
"""Size of a digest and of a salt, in bytes."""

CHAIN_START = bytes(DIGEST_SIZE)
"""The previous value in the link of a tape's first entry."""


@dataclass(frozen=True, slots=True)
class ChainLink:
    """The link of one entry to the entry before it.

    Attributes:
        id: The entry's id.
        more: How many entries of the same append follow this one.
        previous: The value of the link before.
        salt: Random bytes that the digest covers.
        digest: Digest of the entry and of the other fields.
        erased: Digest of the entry that a tombstone replaced; empty for other entries.
    """

    id: int
    more: int
    previous: bytes
    salt: bytes
    digest: bytes
    erased: bytes = b""

    @property
    def value(self) -> bytes:
        """The value that the next link refers to."""
        return self.erased or self.digest

    def covers(self, content: bytes) -> bool:
        """Return whether the digest matches this content."""
        before = self.previous + self.salt
        return self.digest == _digest(before, self.erased, self.id, self.more, content)

    def to_bytes(self) -> bytes:
        """Return the link without id and ``more``: 36 bytes, 48 for a tombstone."""
        return self.previous + self.salt + self.digest + self.erased

    def to_base64(self) -> bytes:
        """Return the same as base64: 48 characters, 64 for a tombstone."""
        return b2a_base64(self.to_bytes(), newline=False)


def make_link(previous: bytes, number: int, more: int, content: bytes) -> ChainLink:
    """Return the link of a new entry.

    Args:
        previous: The value of the link before it.
        number: The entry's id.
        more: How many entries of the same append follow this one.
        content: The entry's line from its kind to its meta.
    """
    salt = os.urandom(DIGEST_SIZE)
    digest = _digest(previous + salt, b"", number, more, content)
    return ChainLink(number, more, previous, salt, digest)


def tombstone_link(replaced: ChainLink, content: bytes) -> ChainLink:
    """Return the link of a tombstone that replaces an entry or another tombstone."""
    salt, erased = os.urandom(DIGEST_SIZE), replaced.value
    before = replaced.previous + salt
    digest = _digest(before, erased, replaced.id, replaced.more, content)
    return ChainLink(replaced.id, replaced.more, replaced.previous, salt, digest, erased)


def link_from_bytes(raw: bytes, number: int, more: int) -> ChainLink | None:
    """Return a link written by ``to_bytes``, or None if the bytes are malformed."""
    if len(raw) not in (3 * DIGEST_SIZE, 4 * DIGEST_SIZE):
        return None
    previous, salt = raw[:DIGEST_SIZE], raw[DIGEST_SIZE : 2 * DIGEST_SIZE]
    digest, erased = raw[2 * DIGEST_SIZE : 3 * DIGEST_SIZE], raw[3 * DIGEST_SIZE :]
    return ChainLink(number, more, previous, salt, digest, erased)


def link_from_base64(text: bytes, number: int, more: int) -> ChainLink | None:
    """Return a link written by ``to_base64``, or None if the text is malformed."""
    try:
        return link_from_bytes(a2b_base64(text, strict_mode=True), number, more)
    except ValueError:
        return None


def _digest(before: bytes, erased: bytes, number: int, more: int, content: bytes) -> bytes:
    return sha256(b"%b%b%d,%d,%b" % (before, erased, number, more, content)).digest()[:DIGEST_SIZE]
