"""Messages that are one: the parts of an album, a long text that Telegram's programs have split."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import anyio

from channels.telegram.reading import Event
from channels.text import utf16_length

_LONGEST_TEXT = 4_096


class Gathering:
    """Messages of somebody who was let in, one after the other in one chat; at least one.

    Args:
        first: The first part.
    """

    def __init__(self, first: Event) -> None:
        self.parts = [first]
        self._closed = False
        self._changed = anyio.Event()
        self._close_unless_more()

    def takes(self, event: Event) -> bool:
        """Return whether an event is the next part."""
        last = self.parts[-1]
        return not self._closed and event.kind == "message" and _continues(last, event)

    def add(self, part: Event) -> None:
        """Take the next part."""
        self.parts.append(part)
        self._close_unless_more()
        self._changed.set()

    def close(self) -> None:
        """Take no more: something else has come."""
        self._closed = True
        self._changed.set()

    async def complete(self, seconds: float, at_rest: Callable[[], Awaitable[None]]) -> list[Event]:
        """Return all parts, once none has come for some seconds.

        Args:
            seconds: How long.
            at_rest: Waits for what is being taken at the moment: on a slow disk, the next part.
        """
        while not self._closed:
            self._changed = anyio.Event()
            with anyio.move_on_after(seconds) as waiting:
                await self._changed.wait()
            if waiting.cancelled_caught:
                known = len(self.parts)
                await at_rest()
                if len(self.parts) == known:
                    self._closed = True
        return self.parts

    def _close_unless_more(self) -> None:
        last = self.parts[-1]
        self._closed = last.kind != "message" or not (last.album or last.long)


def joined_text(parts: Iterable[str]) -> str:
    """Return the text of parts as it was before it was split."""
    text, before = "", None
    for part in parts:
        # A text that fills a message to the last unit was cut in the middle of a word.
        whole = before is None or utf16_length(before) < _LONGEST_TEXT
        text += ("\n" if text and part and whole else "") + part
        before = part
    return text


def _continues(last: Event, event: Event) -> bool:
    if last.sender.id != event.sender.id:
        return False
    if last.album is not None or event.album is not None:
        return last.album == event.album
    return last.long and event.plain and event.quote is None and not event.text.startswith("/")
