"""Calls that are worth waiting for."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from channels.delivery.screen import Flooded, Unreachable
from channels.discord.faults import mapped

logger = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0


async def patiently(what: str, call: Callable[[], Awaitable[T]]) -> T:
    """Make a call until Discord can be reached, with longer and longer pauses.

    Args:
        what: Names it in the log.
        call: Makes it; may be made many times.

    Raises:
        ScreenError: Discord was reached, and refused.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            with mapped():
                return await call()
        except Flooded as flood:
            wait = flood.seconds
        except Unreachable as error:
            wait, pause = pause, min(pause * 2, LONGEST_PAUSE)
            logger.info("%s waits %g s: %s", what, wait, error)
        await anyio.sleep(wait)
