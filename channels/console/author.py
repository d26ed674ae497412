"""The one person at the console, as the bus sees them."""

from __future__ import annotations

import itertools
import time
from datetime import UTC, datetime

from bot.bus import Address, Inbound, Sender


class Author:
    """Turns what the person wrote into inbounds of one conversation.

    Args:
        address: The conversation.
        sender: The person.
    """

    def __init__(self, address: Address, sender: Sender) -> None:
        self._address = address
        self._sender = sender
        # The start's nanoseconds keep ids apart over restarts, the count within a run.
        self._run = time.time_ns()
        self._count = itertools.count(1)

    def write(self, text: str) -> Inbound:
        """Return a new message of the person's, sent now."""
        return Inbound(
            address=self._address,
            id=f"{self._run}-{next(self._count)}",
            sender=self._sender,
            text=text,
            sent_at=datetime.now(UTC),
            role="owner",
        )
