"""Protocols of the spool, which stores platform updates until they are handled.

Rule 1: an update is durable when ``store_claimed`` or ``store_pending`` returns.
Rule 2: a handled update leaves no words behind.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol


class Spool(Protocol):
    """The updates that one channel claimed, by the platform's update numbers."""

    async def store_claimed(self, number: int, raw: Any) -> None:
        """Store an update as claimed by this process; it is durable when this returns.

        Raises:
            BusError: It could not be written; the text explains it to people.
        """
        ...

    async def remove(self, number: int) -> None:
        """Delete a handled update; one that cannot be removed is handled again later."""
        ...

    async def load(self) -> list[tuple[int, Any]]:
        """Return the updates that an earlier run claimed and did not handle, in order.

        Damaged updates are set aside. It waits for unreachable storage.
        """
        ...


class SharedSpool(Spool, Protocol):
    """A spool that many processes share: any of them receives updates, and one handles them."""

    async def store_pending(self, number: int, raw: Any, *, known: bool) -> None:
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

    async def fetch_pending(self, *, wait: bool = True) -> list[tuple[int, Any]]:
        """Return a batch of pending updates: neither claimed nor handled, in order.

        It waits for unreachable storage.

        Args:
            wait: Whether to return only once there is an update.
        """
        ...

    async def delete_pending(self, numbers: Collection[int]) -> None:
        """Delete those of these updates that were not ``store_claimed`` meanwhile.

        Raises:
            BusError: They could not be deleted, and are returned again.
        """
        ...
