"""How long to wait before the next connection.

Discord lets a bot begin 1,000 sessions a day and takes its token away beyond that
(https://discord.com/developers/docs/events/gateway#session-start-limit-object): one in 86 s lasts.
"""

from __future__ import annotations

from dataclasses import dataclass

from channels.discord.patience import LONGEST_PAUSE

LONGEST_BETWEEN_SESSIONS = 900.0
"""The longest pause in seconds after a session."""

STEADY_SECONDS = 600.0
"""A session that lasted longer makes the next pause a short one."""


@dataclass(slots=True)
class Pauses:
    """Longer and longer pauses.

    Attributes:
        first: The first one in seconds.
    """

    first: float
    _next: float = 0.0

    def after(self, lasted: float | None) -> float:
        """Return the seconds to wait.

        Args:
            lasted: The seconds of the session that ended; None where none was begun, which costs
                nothing of what Discord allows.
        """
        if lasted is not None and lasted > STEADY_SECONDS:
            self._next = self.first
        pause = max(self._next, self.first)
        if lasted is not None:
            self._next = min(pause * 2, LONGEST_BETWEEN_SESSIONS)
            return pause
        self._next = max(pause, min(pause * 2, LONGEST_PAUSE))
        return min(pause, LONGEST_PAUSE)
