"""Handing messages to the bus, and telling their senders where that fails."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from bot.bus import BusClosed, BusError, ChannelPort, Inbound, InvalidInbound, SessionFull
from channels.telegram.reading import Event
from channels.telegram.telling import Teller
from channels.telegram.timing import Pause, Timing

logger = logging.getLogger(__name__)

_MOST_TOLD = 200

ResultT = TypeVar("ResultT")


class Publisher:
    """Publishes what people did.

    Args:
        port: The bus's end.
        teller: Tells senders what became of their messages.
        timing: Waits between tries.
    """

    def __init__(self, port: ChannelPort, teller: Teller, timing: Timing) -> None:
        self._port = port
        self._teller = teller
        self._timing = timing
        self._told: deque[int] = deque(maxlen=_MOST_TOLD)

    async def publish(self, event: Event, inbound: Inbound) -> None:
        """Publish a message; one that the bus will never take is told of and given up.

        Raises:
            BusError: Another try may succeed; the sender was told.
        """
        try:
            await self.told_of(event, partial(self._port.publish, inbound), asks=inbound.asks)
        except SessionFull as full:
            # What nobody said to the bot is nobody's loss.
            if inbound.asks:
                self._teller.refuse(event, str(full))
            logger.info("a message of %s is left out: %s", inbound.session, full)
        except InvalidInbound as invalid:
            logger.warning("a message of %s is left out: %s", inbound.session, invalid)

    async def told_of(
        self, event: Event, act: Callable[[], Awaitable[ResultT]], *, asks: bool
    ) -> ResultT:
        """Do something; where it fails, tell whoever asked once before the error goes on.

        Raises:
            BusError: It failed.
        """
        try:
            return await act()
        except (BusClosed, SessionFull, InvalidInbound):
            raise
        except BusError as error:
            if asks and event.update not in self._told:
                self._told.append(event.update)
                self._teller.tell(event.address, f"{error} (I try again until it works.)")
            raise

    async def insist(self, event: Event, act: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Do something until it works.

        Raises:
            BusClosed: The program is stopping.
        """
        pause = Pause(self._timing)
        while True:
            try:
                return await act()
            except BusClosed:
                raise
            except BusError as error:
                logger.warning("an update of %s waits: %s", event.address.session, error)
            await pause.wait()
