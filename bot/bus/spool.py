"""Where a channel keeps a platform's updates that it took and has not handled yet.

Rule 1: what ``put`` and ``arrive`` have returned is durable.
Rule 2: an update that was handled leaves no words behind.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol


class Spool(Protocol):
    """What one channel took, by the numbers that the platform gives updates."""

    async def put(self, number: int, raw: Any) -> None:
        """Keep an update that was taken; when this returns it is durable.

        Raises:
            BusError: It could not be written; the text says so to a person.
        """
        ...

    async def remove(self, number: int) -> None:
        """Forget an update that was handled; one that cannot be removed comes again later."""
        ...

    async def load(self) -> list[tuple[int, Any]]:
        """Return what a run before this one took and did not handle, in order.

        What is damaged is set aside. Storage that cannot be reached is waited for.
        """
        ...


class SharedSpool(Spool, Protocol):
    """One that many processes share: any of them receives, and one handles."""

    async def enqueue(self, number: int, raw: Any, *, known: bool) -> None:
        """Keep an update for whichever process handles them; when this returns it is durable.

        One that was there before, or was handled lately, is not kept again.

        Args:
            number: The update's.
            raw: What it says, as JSON has it.
            known: Whether its sender was let in: what strangers can keep here is bounded more tightly.

        Raises:
            BusError: It could not be written, or as many wait as may; it has to be sent again.
        """
        ...

    async def fetch_untaken(self, *, wait: bool = True) -> list[tuple[int, Any]]:
        """Return what arrived and is neither taken nor settled, in order, and not too much at once.

        Storage that cannot be reached is waited for.

        Args:
            wait: Return only once there is something.
        """
        ...

    async def discard_untaken(self, numbers: Collection[int]) -> None:
        """Forget which of these were not ``put`` meanwhile: they are done with.

        Raises:
            BusError: They could not be forgotten, and arrive again.
        """
        ...
