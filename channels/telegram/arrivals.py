"""Updates that other processes received, on their way to the one that handles them."""

from __future__ import annotations

import logging

from bot.bus import BusClosed, BusError, SharedSpool
from channels.telegram.intake import Intake
from channels.telegram.timing import Pause, Timing

logger = logging.getLogger(__name__)


class Arrivals:
    """Takes updates out of the spool, in order.

    Args:
        spool: Where receivers put them.
        intake: Takes them.
        timing: Waits.
    """

    def __init__(self, spool: SharedSpool, intake: Intake, timing: Timing) -> None:
        self._spool = spool
        self._intake = intake
        self._pause = Pause(timing)

    async def run(self) -> None:
        """Take what arrives until cancelled; what is refused stays, with all behind it."""
        while True:
            batch = await self._spool.arrived()
            done: list[int] = []
            try:
                for number, raw in batch:
                    await self._intake.take(raw)
                    done.append(number)
            except BusError as error:
                if not isinstance(error, BusClosed):
                    logger.warning("an update was not taken: %s", error)
            try:
                # What waits in a lane stays until it is handled.
                await self._spool.settle(done)
            except BusError as error:
                logger.warning("updates that were taken come again: %s", error)
                done.clear()
            if len(done) == len(batch):
                self._pause.over()
            else:
                await self._pause.wait()
