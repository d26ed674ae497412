"""Codes that people read to each other, and how often a wrong one may be tried. Pure but for chance."""

from __future__ import annotations

import re
import secrets
from collections import deque
from dataclasses import dataclass

PAIRING_CODE_LENGTH = 8
"""Characters of a pairing code: 39 bits, which only owners may try."""

CLAIM_CODE_LENGTH = 12
"""Characters of the claim code: 58 bits, which no crowd finds by trying."""

# Nothing that is taken for something else when read aloud or typed off a screen.
_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
# What keyboards put in the place of a hyphen, too.
_DASHES = re.compile(r"[-\s\u2010-\u2015\u2212]+")
_LONGEST = 64  # characters; nothing longer is a code
_COMMAND = re.compile(r"/(start|claim)(?:@\w+)?\s+(\S+)", re.IGNORECASE)


def new_code(length: int) -> str:
    """Return a fresh code as it is shown, ``AB12-CD34``."""
    plain = "".join(secrets.choice(_ALPHABET) for _ in range(length))
    return "-".join(plain[start : start + 4] for start in range(0, length, 4))


def same_code(given: str, code: str) -> bool:
    """Say whether somebody gave this code, whatever the case and the dashes, in constant time."""
    return secrets.compare_digest(_plain(given), _plain(code))


def is_code(text: str, length: int) -> bool:
    """Say whether a text has the form of a code with so many characters."""
    plain = _plain(text)
    return len(plain) == length and all(chr(byte) in _ALPHABET for byte in plain)


@dataclass(frozen=True, slots=True)
class ClaimAttempt:
    """What may be somebody's try at the claim.

    Attributes:
        code: As given.
        said: True where it can be nothing else: ``/claim CODE``.
    """

    code: str
    said: bool


def claim_attempt(text: str | None) -> ClaimAttempt | None:
    """Return the try at the claim that a message is: a code alone, or behind a command."""
    text = (text or "").strip()
    if len(text) > _LONGEST:
        return None
    command = _COMMAND.fullmatch(text)
    code = command[2] if command else text
    if command is not None and command[1].lower() == "claim":
        return ClaimAttempt(code, said=True)
    return ClaimAttempt(code, said=False) if is_code(code, CLAIM_CODE_LENGTH) else None


def _plain(code: str) -> bytes:
    # Text from a platform may hold halves of surrogate pairs.
    return _DASHES.sub("", code).upper().encode("utf-8", "replace")


class ClaimRateLimiter:
    """Wrong tries of the last hour.

    Each person is bounded, and nobody by what others do: a bound on all together would let
    strangers keep the owner out. Only the newest ``REMEMBERED`` are counted.
    """

    PER_PERSON = 5
    MANY = 50
    REMEMBERED = 1_000
    WITHIN = 3600.0

    def __init__(self) -> None:
        self._wrong: deque[tuple[float, str]] = deque(maxlen=self.REMEMBERED)
        self._warned = False

    def allowed(self, person: str, now: float) -> bool:
        """Say whether somebody may try; ``now`` in seconds that never run backwards."""
        while self._wrong and now - self._wrong[0][0] >= self.WITHIN:
            self._wrong.popleft()
        return sum(who == person for _, who in self._wrong) < self.PER_PERSON

    def note_wrong(self, person: str, now: float) -> bool:
        """Count a wrong try of somebody who was allowed it.

        Returns:
            True once: when ``MANY`` were made within the hour.
        """
        self._wrong.append((now, person))
        if self._warned or len(self._wrong) < self.MANY:
            return False
        self._warned = True
        return True
