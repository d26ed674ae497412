"""What stands between Discord's events and the bus: who may, and that what was taken is durable."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio

from bot.bus import (
    Access,
    BusClosed,
    BusError,
    ChannelPort,
    Inbound,
    InvalidInbound,
    Knock,
    SessionFull,
    Verdict,
)
from channels.discord.patience import FIRST_PAUSE, LONGEST_PAUSE

logger = logging.getLogger(__name__)

Tell = Callable[[str], Awaitable[None]]
"""Tells the person something, if that is possible."""


class Gate:
    """Admission and publishing, tried until they are done.

    Args:
        access: Says who may.
        port: The channel's end of the bus.
    """

    def __init__(self, access: Access, port: ChannelPort) -> None:
        self._access = access
        self._port = port

    async def admit(self, knock: Knock) -> Verdict:
        """Return whether somebody may; what could not be recorded is tried again."""
        pause = FIRST_PAUSE
        while True:
            try:
                return await self._access.admit(knock)
            except BusClosed:
                await anyio.sleep_forever()  # the program is stopping: whoever owns this cancels it
            except BusError as error:
                logger.warning("who knocked could not be recorded: %s", error)
            await anyio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def publish(self, inbound: Inbound, tell: Tell) -> None:
        """Return once a message is durable, or was refused and its sender told so."""
        pause, told = FIRST_PAUSE, False
        while True:
            try:
                await self._port.publish(inbound)
            except BusClosed:
                await anyio.sleep_forever()
            except (SessionFull, InvalidInbound) as refusal:
                logger.info("a message for %s was refused: %s", inbound.session, refusal)
                if inbound.asks:
                    await tell(str(refusal))
                return
            except BusError as error:
                logger.warning("a message for %s could not be taken: %s", inbound.session, error)
                if inbound.asks and not told:
                    told = True
                    await tell(f"{error} I will try again.")
            else:
                return
            await anyio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
