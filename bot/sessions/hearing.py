"""Messages on their way to the tape that begin no turn by themselves."""

from __future__ import annotations

from bot.bus import Delivery
from bot.memory.fold import SessionFold
from bot.memory.zone import MemoryZone
from bot.sessions.receipts import Receipts
from bot.sessions.records import learned, message_entry
from bot.tape.entries import TapeEntry


class Hearing:
    """Writes what is heard in one session: for a later turn, or for none.

    Args:
        fold: The session's state.
        zone: Its memory, and its tape.
        receipts: Learns what is done with.
        timezone: The user's, by name.
        most_overheard: Overheard messages that a turn takes in at most.
    """

    def __init__(
        self,
        fold: SessionFold,
        zone: MemoryZone,
        receipts: Receipts,
        *,
        timezone: str,
        most_overheard: int,
    ) -> None:
        self._fold = fold
        self._zone = zone
        self._receipts = receipts
        self._timezone = timezone
        self._bound = most_overheard

    def overheard(self) -> list[int]:
        """Return the ids of the overheard messages that the next turn takes in."""
        heard = self._fold.window.overheard()
        return [entry.id for entry in heard][-self._bound :] if self._bound else []

    async def queue(self, delivery: Delivery) -> None:
        """Put a message on the tape that a turn takes in at its next step, or at its beginning."""
        entry = message_entry(delivery.inbound, self._timezone, queued=True)
        await self._zone.edit(learned(delivery.inbound), lambda _, zone, __: [entry, *zone])

    async def overhear(self, delivery: Delivery) -> None:
        """Put a message on the tape that is owed no answer."""
        await self._note(delivery, message_entry(delivery.inbound, self._timezone, overheard=True))

    async def correct(self, delivery: Delivery, original: TapeEntry) -> None:
        """Put an edit on the tape that takes the place of a message not answered yet."""
        entry = message_entry(delivery.inbound, self._timezone, replaces=original)
        await self._note(delivery, entry)

    async def _note(self, delivery: Delivery, entry: TapeEntry) -> None:
        await self._zone.edit(None, lambda _, __, ___: [entry])
        await self._receipts.done(delivery)
