"""Shards of the Discord server for tests, and how fast sessions may begin.

See https://discord.com/developers/docs/events/gateway#sharding.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

Shard = tuple[int, int]
"""A shard's number and how many there are."""
WHOLE: Shard = (0, 1)


def shard_of(identify: dict[str, Any]) -> Shard | None:
    """Return the shard that an IDENTIFY asks for; None for one that Discord closes with 4010."""
    asked = identify.get("shard", list(WHOLE))
    match asked:
        case [int(number), int(count)] if 0 <= number < count:
            return number, count
    return None


def belongs(guild_id: int | None, shard: Shard) -> bool:
    """Whether a shard gets what happens in a guild, or in direct conversations (None)."""
    number, count = shard
    return number == (0 if guild_id is None else (guild_id >> 22) % count)


def concerns(event: Any, shard: Shard) -> bool:
    """Whether a shard gets an event, by the guild that it names."""
    guild = event.get("guild_id")
    return belongs(None if guild is None else int(guild), shard)


@dataclass(slots=True)
class Beginnings:
    """How fast sessions may begin.

    Attributes:
        apart: Seconds between two of one bucket; Discord's are 5, and 0 lets all begin.
        concurrency: ``max_concurrency``: how many buckets there are.
        recommended: How many shards ``/gateway/bot`` recommends.
    """

    apart: float = 0.0
    concurrency: int = 1
    recommended: int = 1
    _begun: dict[int, float] = field(default_factory=dict)

    def too_soon(self, shard: Shard) -> bool:
        """Count one; say whether it comes too soon."""
        now, bucket = time.monotonic(), shard[0] % self.concurrency
        if now - self._begun.get(bucket, -self.apart) < self.apart:
            return True
        self._begun[bucket] = now
        return False
