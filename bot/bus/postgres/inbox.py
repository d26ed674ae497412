"""What a session's worker is given."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from bot.bus.messages import DeliveryReport, LetGo
from bot.bus.postgres.holds import Hold, PostgresDelivery


class PostgresInbox:
    """The receiving end of one session.

    Args:
        hold: Its books.
        leave: Gives it back.
    """

    def __init__(self, hold: Hold, leave: Callable[[Hold], None]) -> None:
        self.session = hold.session
        self._hold = hold
        self._leave = leave

    async def receive(self) -> PostgresDelivery | DeliveryReport | LetGo:
        """Return what comes next, waiting for it.

        Raises:
            SessionLost: The session is no longer this holder's.
        """
        hold = self._hold
        while True:
            hold.check()
            if (item := hold.next()) is not None:
                return item
            hold.arrived = anyio.Event()
            with anyio.move_on_at(hold.ends):
                await hold.arrived.wait()

    def receive_nowait(self) -> PostgresDelivery | DeliveryReport | LetGo | None:
        """Return the next one if there is one; nothing of a session that is lost."""
        return None if self._hold.lost else self._hold.next()

    def release(self, *, failed: bool = False) -> None:
        """Give the session up; the database learns of it at once, or when the lease ends."""
        if not self._hold.left:
            self._hold.leave(failed=failed)
            self._leave(self._hold)
