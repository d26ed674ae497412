"""Takes what the bus has for a channel to its chats, each with a queue of its own."""

from __future__ import annotations

import logging
from typing import Generic
from weakref import WeakValueDictionary

import anyio
from anyio.abc import TaskGroup

from bot.bus import ChannelPort, Outbound
from channels.delivery.line import ChatLine
from channels.delivery.room import Room
from channels.delivery.screen import PieceT, Screen

logger = logging.getLogger(__name__)


class Courier(Generic[PieceT]):
    """Shows everything that a channel's port brings, until cancelled.

    A chat that waits (a flood, a lost network) delays no other: each has a line, made when there is
    something for it and given up when there has been nothing for a while.

    Args:
        port: The channel's two ends.
        screen: The platform.
    """

    def __init__(self, port: ChannelPort, screen: Screen[PieceT]) -> None:
        self._port = port
        self._screen = screen
        self._lines: dict[str, ChatLine[PieceT]] = {}
        # A room is remembered as long as a line of it lives.
        self._rooms: WeakValueDictionary[str, Room] = WeakValueDictionary()

    async def run(self) -> None:
        """Serve until cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                self._hand_over(await self._port.receive(), tasks)

    def statistics(self) -> dict[str, int]:
        """Return how many chats have a line."""
        return {"lines": len(self._lines)}

    def _hand_over(self, outbound: Outbound, tasks: TaskGroup) -> None:
        session = outbound.address.session
        line = self._lines.get(session)
        if line is None:
            room = self._rooms.setdefault(self._screen.room(outbound.address), Room())
            line = self._lines[session] = ChatLine(self._port, self._screen, room)
            tasks.start_soon(self._serve, session, line)
        line.put(outbound)

    async def _serve(self, session: str, line: ChatLine[PieceT]) -> None:
        try:
            await self._contained(session, line)
            # What came while it was closing its books must not be lost.
            while not line.empty:
                await self._contained(session, line)
        finally:
            del self._lines[session]

    async def _contained(self, session: str, line: ChatLine[PieceT]) -> None:
        try:
            await line.run()
        except Exception:  # whatever it is, other chats go on, and this one with what comes next
            logger.exception("showing something in %s broke down", session)
            line.calm()
