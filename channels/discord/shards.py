"""Which servers a process takes: https://discord.com/developers/docs/events/gateway#sharding. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of all servers that the bot is on.

    Attributes:
        number: Which one, from 0 on.
        count: How many there are.
    """

    number: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether it has what there is once: direct conversations, the list of commands."""
        return self.number == 0

    @property
    def alone(self) -> bool:
        """Whether it has everything."""
        return self.count == 1

    @property
    def label(self) -> str:
        """What follows the platform's name in what people read; nothing where it is alone."""
        return "" if self.alone else f", shard {self.number} of {self.count}"

    def has(self, guild_id: int | None) -> bool:
        """Whether it has a server; None stands for direct conversations."""
        home = 0 if guild_id is None else (guild_id >> 22) % self.count
        return home == self.number


WHOLE = Shard()
"""The only shard of a bot that is not divided."""
