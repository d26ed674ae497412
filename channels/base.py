"""The channel contract: an adapter between one platform and the bus."""

from __future__ import annotations

from typing import Protocol

from bot.bus import ChannelPort


class Channel(Protocol):
    """Turns a platform's events into ``Inbound`` and ``Outbound`` into platform calls.

    A channel acknowledges the platform only after ``ChannelPort.publish`` has returned, and reports
    every ``Answer`` exactly once per time it receives it.
    """

    @property
    def name(self) -> str:
        """The first part of its sessions' keys."""
        ...

    async def run(self, port: ChannelPort) -> None:
        """Serve until the platform ends (the console's end of input) or it is cancelled."""
        ...
