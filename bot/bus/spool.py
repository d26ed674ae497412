"""Protocols of the spool, which stores platform updates until they are handled.

Rule 1: an update is durable when ``put`` or ``enqueue`` returns.
Rule 2: a handled update leaves no words behind.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol


class Spool(Protocol):
    """The updates that one channel took, by the platform's update numbers."""

    async def put(self, number: int, raw: Any) -> None:
        """Store an update that this process took; it is durable when this returns.

        Raises:
            BusError: It could not be written; the text explains it to people.
        """
        ...

    async def remove(self, number: int) -> None:
        """Delete a handled update; one that cannot be removed is handled again later."""
        ...

    async def load(self) -> list[tuple[int, Any]]:
        """Return the updates that an earlier run took and did not handle, in order.

        Damaged updates are set aside. It waits for unreachable storage.
        """
        ...


class SharedSpool(Spool, Protocol):
    """A spool that many processes share: any of them receives updates, and one handles them."""

    async def enqueue(self, number: int, raw: Any, *, known: bool) -> None:
        """Store an update for whichever process handles them; it is durable when this returns.

        An update that is stored already, or was handled recently, is not stored again.

        Args:
            number: The update's number.
            raw: The update as JSON values.
            known: Whether its sender has access: strangers' updates have a lower limit.

        Raises:
            BusError: It could not be written, or too many updates wait; the platform must send it
                again.
        """
        ...

    async def fetch_untaken(self, *, wait: bool = True) -> list[tuple[int, Any]]:
        """Return a batch of updates that are neither taken nor settled, in order.

        It waits for unreachable storage.

        Args:
            wait: Whether to return only once there is an update.
        """
        ...

    async def discard_untaken(self, numbers: Collection[int]) -> None:
        """Delete those of these updates that were not ``put`` meanwhile.

        Raises:
            BusError: They could not be deleted, and are returned again.
        """
        ...
