"""How long the channel waits for what, in seconds."""

from __future__ import annotations

from dataclasses import dataclass

import anyio


@dataclass(frozen=True, slots=True)
class Timing:
    """Waits, which tests make shorter.

    Attributes:
        poll: A call for updates is held open by the server until there is one.
        gather: After a part of an album or of a long text, for the next part.
        first_retry: Before the second try of what failed; doubled with every try.
        longest_retry: The most between two tries.
        look: Between two looks whether the webhook is in place.
    """

    poll: int = 25
    gather: float = 0.8
    first_retry: float = 1.0
    longest_retry: float = 60.0
    look: float = 60.0


class Pause:
    """Waits between tries, each time longer.

    Args:
        timing: The first and the longest.
    """

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._next = timing.first_retry

    async def wait(self, least: float = 0.0) -> None:
        """Wait before the next try, at least as long as the platform asked for."""
        seconds, self._next = self._next, min(2 * self._next, self._timing.longest_retry)
        await anyio.sleep(max(seconds, least))

    def over(self) -> None:
        """Begin anew: the last try was good."""
        self._next = self._timing.first_retry
