"""Requests that wait for their answer.

Rule 1: an answer that a request waits for is reported when its client has it; one that nobody waits
    for is reported as not delivered, and the same request gets it from the tape.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio

from bot.bus import Answer, PartialAnswer


class Waiting:
    """A request that waits.

    Attributes:
        partial: The text so far.
        answer: The answer, once it is there.
    """

    def __init__(self) -> None:
        self.partial = ""
        self.answer: Answer | None = None
        self._changed = anyio.Event()

    def put_partial(self, partial: PartialAnswer) -> None:
        """Take the text so far."""
        self.partial = partial.text
        self._changed.set()

    def put_answer(self, answer: Answer) -> None:
        """Take the answer."""
        self.answer = answer
        self._changed.set()

    async def changed(self, within: float) -> bool:
        """Wait for news, or for so many seconds; return whether there is news."""
        with anyio.move_on_after(within) as waiting:
            await self._changed.wait()
        self._changed = anyio.Event()
        return not waiting.cancelled_caught


@dataclass(slots=True)
class Placed:
    """A request whose message is durable.

    Attributes:
        session: The session's key.
        inbound: The message's id.
        answer: Id of its answer, if the tape has it already.
        waiting: What waits for the answer otherwise.
        taken: Whether somebody reports the answer that came.
    """

    session: str
    inbound: str
    answer: str | None
    waiting: Waiting
    taken: bool = False


class WaitingRequests:
    """The requests that wait, by session and message."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], list[Waiting]] = {}

    @contextmanager
    def wait(self, session: str, inbound: str) -> Iterator[Waiting]:
        """Yield a request that waits for the answer to a message within the block."""
        key, one = (session, inbound), Waiting()
        self._waiting.setdefault(key, []).append(one)
        try:
            yield one
        finally:
            self._waiting[key].remove(one)
            if not self._waiting[key]:
                del self._waiting[key]

    def of(self, outbound: Answer | PartialAnswer) -> list[Waiting]:
        """Return the requests that wait for an outbound item."""
        return self._waiting.get((outbound.address.session, outbound.reply_to or ""), [])
