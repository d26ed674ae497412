"""Waiting for a tape to grow: what ``follow`` of a store in this process is made of."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable

import anyio

from bot.tape.entries import TapeEntry

_PAGE = 500


class TapeFollowers:
    """Tells followers that a tape has grown."""

    def __init__(self) -> None:
        self._events: dict[str, anyio.Event] = {}

    def notify(self, tape: str) -> None:
        """Wake whoever waits for this tape."""
        if (event := self._events.pop(tape, None)) is not None:
            event.set()

    async def follow(
        self,
        tape: str,
        after: int | None,
        version: Callable[[str], Awaitable[int]],
        read: Callable[[str, int, int], Awaitable[list[TapeEntry]]],
    ) -> AsyncGenerator[TapeEntry, None]:
        """Yield entries after an id as they come; see ``TapeStore.follow``.

        Args:
            tape: The session's key.
            after: The last id already known; None for the newest.
            version: Gives the id of the last entry that is durable.
            read: Reads an id range.
        """
        last = await version(tape) if after is None else after
        while True:
            # Before the look: what comes in between wakes it again.
            grown = self._events.setdefault(tape, anyio.Event())
            newest = await version(tape)
            while last < newest:
                upto = min(newest, last + _PAGE)
                for entry in await read(tape, last + 1, upto):
                    yield entry
                last = upto
            await grown.wait()
