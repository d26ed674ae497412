"""A channel's queue of items to show.

Rule 1: a chat's answers keep their order; chats take turns.
Rule 2: of a stream's partials only the newest waits, and none once its answer does.
Rule 3: of activity only the newest waits. So a chat's queue is bounded by its answers, and those by
    the messages that its session may have waiting.
"""

from __future__ import annotations

from collections import OrderedDict

import anyio

from bot.bus.messages import Activity, Answer, Outbound, PartialAnswer


class Outbox:
    """A queue that takes chats in turn and coalesces partials and activity."""

    def __init__(self) -> None:
        self._chats: OrderedDict[str, list[Outbound]] = OrderedDict()
        self._filled = anyio.Event()

    def __bool__(self) -> bool:
        return bool(self._chats)

    @property
    def answers(self) -> int:
        """How many answers wait."""
        return sum(isinstance(item, Answer) for chat in self._chats.values() for item in chat)

    def put(self, outbound: Outbound) -> None:
        """Add an item; never blocks."""
        waiting = self._chats.setdefault(outbound.address.session, [])
        if isinstance(outbound, Activity):
            waiting[:] = [item for item in waiting if not isinstance(item, Activity)]
        elif outbound.stream is not None:
            waiting[:] = [
                item
                for item in waiting
                if not (isinstance(item, PartialAnswer) and item.stream == outbound.stream)
            ]
        waiting.append(outbound)
        self._filled.set()

    async def get(self) -> Outbound:
        """Return the next item, waiting for it."""
        while (outbound := self.get_nowait()) is None:
            self._filled = anyio.Event()
            await self._filled.wait()
        return outbound

    def get_nowait(self) -> Outbound | None:
        """Return the next item; None if there is none."""
        if not self._chats:
            return None
        session, waiting = next(iter(self._chats.items()))
        outbound = waiting.pop(0)
        if waiting:
            self._chats.move_to_end(session)
        else:
            del self._chats[session]
        return outbound
