"""Messages on their way to the tape that begin no turn by themselves."""

from __future__ import annotations

from bot.bus import Delivery
from bot.memory.fold import SessionFold, mark_entry
from bot.memory.snapshot import MemorySnapshot
from bot.memory.zone import MemoryZone
from bot.sessions.edits import is_unanswered
from bot.sessions.receipts import Receipts
from bot.sessions.records import learned, message_entry, relearned
from bot.tape.entries import TapeEntry

_MOST_OTHERS = 20
_MARK_EVERY = 200
"""Overheard messages after which the tape notes how to open it, as the end of a turn does."""


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
        self._unmarked = 0

    def overheard(self) -> list[int]:
        """Return the ids of the overheard messages that the next turn takes in.

        Corrections and what was said to the bot alone are taken in whatever is kept of groups.
        """
        heard = self._fold.window.overheard()
        chatter = [entry.id for entry in heard if _is_chatter(entry)]
        others = [entry.id for entry in heard if not _is_chatter(entry)]
        return sorted([*chatter[max(0, len(chatter) - self._bound) :], *others[-_MOST_OTHERS:]])

    async def queue(self, delivery: Delivery) -> None:
        """Put a message on the tape that a turn takes in at its next step, or at its beginning."""
        entry = message_entry(delivery.inbound, self._timezone, queued=True)
        await self._zone.edit(learned(delivery.inbound), lambda _, zone, __: [entry, *zone])

    async def overhear(self, delivery: Delivery) -> None:
        """Put a message on the tape that is owed no answer."""
        entry = message_entry(delivery.inbound, self._timezone, overheard=True)
        self._unmarked = (self._unmarked + 1) % _MARK_EVERY
        marks = self._unmarked == 0
        await self._zone.edit(
            None, lambda _, __, ___: [entry, *([mark_entry(self._fold)] if marks else [])]
        )
        await self._receipts.done(delivery)

    async def correct(self, delivery: Delivery, original: TapeEntry) -> bool:
        """Put an edit on the tape, in the place of its message where that is not answered yet.

        Returns:
            Whether it was not: the answer may have come while the edit waited for the tape.
        """
        inbound, fold = delivery.inbound, self._fold
        learn = relearned(inbound, original)
        in_time = False

        def change(snapshot: MemorySnapshot) -> MemorySnapshot:
            wanted = learn is not None and is_unanswered(fold, original)
            return learn(snapshot) if learn is not None and wanted else snapshot

        def compose(_: MemorySnapshot, zone: list[TapeEntry], __: int) -> list[TapeEntry]:
            nonlocal in_time
            in_time = is_unanswered(fold, original)
            if in_time:
                return [message_entry(inbound, self._timezone, replaces=original), *zone]
            return [message_entry(inbound, self._timezone, overheard=True)]

        await self._zone.edit(change, compose)
        await self._receipts.done(delivery)
        return in_time


def _is_chatter(entry: TapeEntry) -> bool:
    return entry.meta.get("private") is False and "edits" not in entry.meta
