"""Rate limits of requests per user, and of wrong login codes. In memory, and bounded.

Rule 1: a code has 58 bits, so the right one is accepted however many were wrong: a limit on all
    attempts would let strangers keep the owner out.
Rule 2: each wrong code costs a second; after a few, further wrong ones are refused at once.
"""

from __future__ import annotations

from collections import OrderedDict, deque

READS = 600
"""Requests per minute and user that only read; scrolling a timeline makes many small ones."""

CHANGES = 300
"""Requests per minute and user that change something."""

MOST_WRONG = 5
WRONG_WITHIN = 900.0
"""Seconds for which a wrong code counts."""

_VISITORS = 2_000
"""Users that are counted at once; the least recently seen is dropped first."""


class RateLimiter:
    """A token bucket per user: a minute's requests at once, refilled as time passes."""

    def __init__(self) -> None:
        self._left: OrderedDict[tuple[str, bool], tuple[float, float]] = OrderedDict()

    def take(self, visitor: str, now: float, *, changes: bool) -> float:
        """Count a request.

        Returns:
            Seconds to wait; 0 if the request may be answered.
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
    """Count the wrong codes of the last quarter of an hour."""

    def __init__(self) -> None:
        self._wrong: deque[float] = deque(maxlen=MOST_WRONG)

    def wait(self, now: float) -> float:
        """Return the seconds until a wrong code is handled again; 0 after few of them."""
        while self._wrong and now - self._wrong[0] >= WRONG_WITHIN:
            self._wrong.popleft()
        return 0.0 if len(self._wrong) < MOST_WRONG else WRONG_WITHIN - (now - self._wrong[0])

    def note(self, now: float) -> None:
        """Count a wrong code; ``now`` is seconds of a monotonic clock."""
        self._wrong.append(now)
