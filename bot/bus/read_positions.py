"""How far a channel has read, where a platform keeps the history for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

ReadPosition = tuple[int, int, int | None]
"""Channel id, id of the last handled message, and server id (None for direct messages)."""


class ReadPositionStore(Protocol):
    """Persistent storage of read positions, for any process that takes over a shard."""

    async def read(self) -> Iterable[ReadPosition]:
        """Return the positions of all shards, whatever their number was; the newest per channel.

        Raises:
            BusError: They cannot be read now.
        """
        ...

    async def write(self, moved: Sequence[ReadPosition], dropped: Sequence[int]) -> None:
        """Store changed positions and remove channels; a position never decreases.

        Raises:
            BusError: They could not be stored now; the caller retries.
            OSError: Likewise.
        """
        ...
