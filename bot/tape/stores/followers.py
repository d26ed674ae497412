"""Notify followers of new entries in this process: ``TapeStore.follow`` of local stores."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable

import anyio

from bot.tape.entries import TapeEntry

_PAGE = 500


class TapeFollowers:
    """Wake the followers of tapes, and yield new entries to them."""

    def __init__(self) -> None:
        self._events: dict[str, anyio.Event] = {}

    def notify(self, tape: str) -> None:
        """Wake the followers of this tape."""
        if (event := self._events.pop(tape, None)) is not None:
            event.set()

    async def follow(
        self,
        tape: str,
        after: int | None,
        version: Callable[[str], Awaitable[int]],
        read: Callable[[str, int, int], Awaitable[list[TapeEntry]]],
    ) -> AsyncGenerator[TapeEntry, None]:
        """Yield new entries after an id; see ``TapeStore.follow``. ``version`` is that of what is durable."""
        last = await version(tape) if after is None else after
        while True:
            # Created before reading, so that an append from now on wakes it again.
            grown = self._events.setdefault(tape, anyio.Event())
            newest = await version(tape)
            while last < newest:
                upto = min(newest, last + _PAGE)
                for entry in await read(tape, last + 1, upto):
                    yield entry
                last = upto
            await grown.wait()
