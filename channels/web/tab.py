"""What waits to be sent to one open page.

Rule 1: lines go out in order and whole; a page that does not take them in time is closed, and reads them
    from the tape when it comes back.
Rule 2: of what an answer is so far, and of what the bot is doing, only the newest waits.
"""

from __future__ import annotations

from collections import deque

import anyio

MOST_WAITING = 64
"""Frames that one page may have waiting."""

MOST_CHARACTERS = 16_000_000
"""Characters of them beyond which none is added: lines are long at times, and a page is free to ask for many."""


class Tab:
    """One page's queue. Frames are texts, encoded once for all pages."""

    def __init__(self) -> None:
        self._frames: deque[str] = deque()
        self._characters = 0
        self._newest: dict[str, str] = {}
        self._filled = anyio.Event()
        self.slow = anyio.Event()

    def put(self, frame: str) -> None:
        """Add a frame; returns at once."""
        if len(self._frames) >= MOST_WAITING or self._characters >= MOST_CHARACTERS:
            self.slow.set()
            return
        self._frames.append(frame)
        self._characters += len(frame)
        self._filled.set()

    def put_newest(self, kind: str, frame: str) -> None:
        """Add a frame that takes the place of an earlier one of its kind; returns at once."""
        self._newest.pop(kind, None)
        self._newest[kind] = frame
        self._filled.set()

    def drop(self, kind: str) -> None:
        """Forget the frame of a kind, if it waits."""
        self._newest.pop(kind, None)

    async def get(self) -> str:
        """Return the next frame, waiting for it."""
        while not self._frames and not self._newest:
            self._filled = anyio.Event()
            await self._filled.wait()
        if self._frames:
            frame = self._frames.popleft()
            self._characters -= len(frame)
            return frame
        return self._newest.pop(next(iter(self._newest)))
