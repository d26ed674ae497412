"""The queue of a session's loop: what the session's own tasks post, then what the bus delivers."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

import anyio

from bot.bus import DeliveryReport, ReceivedMessage, ReleaseRequest, SessionInbox

Callback = Callable[[], Awaitable[None]]
LoopItem = ReceivedMessage | DeliveryReport | ReleaseRequest | Callback


class LoopQueue:
    """A session loop's queue; what the session's own tasks post comes before what the bus delivers.

    An item of the bus stays in the inbox until the loop takes it, so the bus sees what waits, and whoever holds the
    session next gets what is left.

    Args:
        inbox: The session's inbox.
    """

    def __init__(self, inbox: SessionInbox) -> None:
        self._inbox = inbox
        self._posted: deque[LoopItem] = deque()

    def post(self, item: LoopItem) -> None:
        """Have the loop handle an item, after what it handles now."""
        self._posted.append(item)
        self._inbox.wake()

    def next_nowait(self) -> LoopItem | None:
        """Return the next item; None if there is none."""
        return self._posted.popleft() if self._posted else self._inbox.receive_nowait()

    async def next(self, seconds: float) -> LoopItem | None:
        """Return the next item; None if there is none for so many seconds.

        Raises:
            SessionLost: The bus has given the session to another holder.
        """
        item: LoopItem | None = None
        with anyio.move_on_after(seconds):
            while item is None:
                item = self._posted.popleft() if self._posted else await self._inbox.receive()
        return item
