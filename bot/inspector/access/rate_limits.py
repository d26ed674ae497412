"""How much one visitor may ask, and how many wrong codes there may be. Kept in memory, and bounded.

Rule 1: a code is 58 bits, so the right one is taken however many were wrong: a bound on all together
    would let strangers keep the owner out.
Rule 2: a wrong one costs a second, and after a few of them nothing but a refusal.
"""

from __future__ import annotations

from collections import OrderedDict, deque

READS = 600
"""Requests a minute of one visitor that only read: a timeline that is scrolled makes many small ones."""

CHANGES = 300
"""Requests a minute of one visitor that change something."""

MOST_WRONG = 5
WRONG_WITHIN = 900.0
"""Seconds for which a wrong code counts."""

_VISITORS = 2_000
"""Visitors that are counted at once; who came least lately is forgotten first."""


class RateLimiter:
    """Requests of visitors: each may make a minute's worth at once, and goes on as time passes."""

    def __init__(self) -> None:
        self._left: OrderedDict[tuple[str, bool], tuple[float, float]] = OrderedDict()

    def take(self, visitor: str, now: float, *, changes: bool) -> float:
        """Count a request.

        Args:
            visitor: Whose.
            now: Seconds that never run backwards.
            changes: It changes something.

        Returns:
            Seconds to wait; 0 where it may be answered.
        """
        limit = CHANGES if changes else READS
        left, since = self._left.pop((visitor, changes), (float(limit), now))
        left = min(float(limit), left + (now - since) * limit / 60)
        wait = 0.0 if left >= 1 else (1 - left) * 60 / limit
        self._left[visitor, changes] = (left if wait else left - 1, now)
        while len(self._left) > _VISITORS:
            self._left.popitem(last=False)
        return wait


class WrongCodes:
    """Wrong codes of the last quarter of an hour."""

    def __init__(self) -> None:
        self._wrong: deque[float] = deque(maxlen=MOST_WRONG)

    def wait(self, now: float) -> float:
        """Return the seconds until a wrong code is looked at again; 0 where there were few."""
        while self._wrong and now - self._wrong[0] >= WRONG_WITHIN:
            self._wrong.popleft()
        return 0.0 if len(self._wrong) < MOST_WRONG else WRONG_WITHIN - (now - self._wrong[0])

    def note(self, now: float) -> None:
        """Count one; ``now`` in seconds that never run backwards."""
        self._wrong.append(now)
