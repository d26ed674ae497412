"""Pairing and claim codes, and rate limits on wrong guesses. Pure but for randomness."""

from __future__ import annotations

import re
import secrets
from collections import deque
from dataclasses import dataclass

from bot.core.patterns import LazyPattern

PAIRING_CODE_LENGTH = 8
"""Characters of a pairing code: 39 bits; only owners can try codes."""

CLAIM_CODE_LENGTH = 12
"""Characters of the claim code: 58 bits, too many to guess."""

# No characters that are easily confused, such as 0 and O or 1 and I.
_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
# Hyphens and what keyboards insert instead.
_DASHES = LazyPattern(r"[-\s\u2010-\u2015\u2212]+")
_LONGEST = 64  # characters; longer texts are no codes
_COMMAND = LazyPattern(r"/(start|claim)(?:@\w+)?\s+(\S+)", re.IGNORECASE)


def new_code(length: int) -> str:
    """Return a new code in display form, such as ``AB12-CD34``."""
    plain = "".join(secrets.choice(_ALPHABET) for _ in range(length))
    return "-".join(plain[start : start + 4] for start in range(0, length, 4))


def same_code(given: str, code: str) -> bool:
    """Compare two codes in constant time, ignoring case and dashes."""
    return secrets.compare_digest(_plain(given), _plain(code))


def is_code(text: str, length: int) -> bool:
    """Return whether a text has the form of a code of this length."""
    plain = _plain(text)
    return len(plain) == length and all(chr(byte) in _ALPHABET for byte in plain)


@dataclass(frozen=True, slots=True)
class ClaimAttempt:
    """A message that may be an attempt to claim the bot.

    Attributes:
        code: The code, as typed.
        said: Whether the message is unambiguous: ``/claim CODE``.
    """

    code: str
    said: bool


def claim_attempt(text: str | None) -> ClaimAttempt | None:
    """Return the claim attempt in a message, a code alone or after a command; None otherwise."""
    text = (text or "").strip()
    if len(text) > _LONGEST:
        return None
    command = _COMMAND.fullmatch(text)
    code = command[2] if command else text
    if command is not None and command[1].lower() == "claim":
        return ClaimAttempt(code, said=True)
    return ClaimAttempt(code, said=False) if is_code(code, CLAIM_CODE_LENGTH) else None


def _plain(code: str) -> bytes:
    # Platform text may contain lone surrogates.
    return _DASHES.sub("", code).upper().encode("utf-8", "replace")


class ClaimRateLimiter:
    """Counts wrong claim codes of the last hour.

    The limit is per person: a shared limit would let strangers lock the owner out. Only the newest
    ``REMEMBERED`` attempts count.
    """

    PER_PERSON = 5
    MANY = 50
    REMEMBERED = 1_000
    WITHIN = 3600.0

    def __init__(self) -> None:
        self._wrong: deque[tuple[float, str]] = deque(maxlen=self.REMEMBERED)
        self._warned = False

    def allowed(self, person: str, now: float) -> bool:
        """Return whether a person may try now; ``now`` is in monotonic seconds."""
        while self._wrong and now - self._wrong[0][0] >= self.WITHIN:
            self._wrong.popleft()
        return sum(who == person for _, who in self._wrong) < self.PER_PERSON

    def note_wrong(self, person: str, now: float) -> bool:
        """Count a wrong code.

        Returns:
            True once: when ``MANY`` wrong codes came within the hour.
        """
        self._wrong.append((now, person))
        if self._warned or len(self._wrong) < self.MANY:
            return False
        self._warned = True
        return True
