"""Waiting for what tells nobody of itself: a file, a table, a log, another process."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")

SECONDS = 60.0
"""For a machine that is busy with everything else, too."""


async def until(
    look: Callable[[], T | Awaitable[T]], within: float = SECONDS, *, every: float = 0.01
) -> T:
    """Look time and again until something is found; return it.

    Args:
        look: Returns what there is by now, at once or when awaited; what is false is nothing.
        within: Seconds.
        every: Seconds between two looks, more of them where looking costs something.

    Raises:
        TimeoutError: Nothing was found in time.
    """
    with anyio.fail_after(within):
        while True:
            found = look()
            if inspect.isawaitable(found):
                found = await found
            if found:
                return found
            await anyio.sleep(every)
