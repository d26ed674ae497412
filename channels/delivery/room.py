"""What a platform counts together: a chat, whose topics share its limits."""

from __future__ import annotations

from dataclasses import dataclass

import anyio


@dataclass(slots=True, weakref_slot=True)
class Room:
    """The limits of one chat, by the event loop's clock.

    Attributes:
        edits_after: No streamed text is shown before.
        flooded_until: The platform asked to be left alone until then; asking again makes it longer.
    """

    edits_after: float = 0.0
    flooded_until: float = 0.0

    def flood(self, seconds: float) -> None:
        """Note that the platform asks to wait."""
        self.flooded_until = max(self.flooded_until, anyio.current_time() + seconds)

    async def calm(self) -> None:
        """Wait until the platform may be asked again."""
        await anyio.sleep_until(self.flooded_until)
