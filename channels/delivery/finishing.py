"""Calls that a stop must not break off: a message that was shown must be known to have been."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

GRACE = 5.0
"""Seconds that a stop waits for a call that has begun."""


async def finish(call: Callable[[], Awaitable[None]]) -> None:
    """Await a call; a cancellation meanwhile waits until it is done, for a few seconds at most.

    Raises:
        Exception: What the call raised.
    """
    scope, done = anyio.CancelScope(shield=True), anyio.Event()
    failures: list[Exception] = []

    async def shielded() -> None:
        with scope:
            try:
                await call()
            except Exception as error:  # noqa: BLE001 (raised again where the call was asked for)
                failures.append(error)
        done.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shielded)
        try:
            await done.wait()
        except BaseException:
            scope.deadline = anyio.current_time() + GRACE
            raise
    if failures:
        raise failures[0]
