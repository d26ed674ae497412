"""Record messages that start no turn by themselves: queued, overheard and edited ones."""

from __future__ import annotations

from collections.abc import Sequence

from bot.bus import Delivery, Inbound
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.view.session_fold import SessionFold, session_mark_entry
from bot.runtime.sessions.delivery_tracker import DeliveryTracker
from bot.runtime.sessions.edits import is_unanswered
from bot.runtime.sessions.entries import message_entry
from bot.runtime.sessions.explicit_memories import ExplicitMemories
from bot.tape.entries import TapeEntry
from bot.tape.search import problem_of

_MOST_OTHERS = 20
_MARK_EVERY = 200
"""Overheard messages after which a session mark is written, as at the end of a turn."""


class MessageRecorder:
    """Records messages of one session.

    Args:
        fold: The session's state.
        memory: The session's long-term memory, with its tape.
        deliveries: Acknowledges recorded messages.
        timezone: The user's, by name.
        most_overheard: The most overheard messages that a turn takes in.
    """

    def __init__(
        self,
        fold: SessionFold,
        memory: LongTermMemory,
        deliveries: DeliveryTracker,
        *,
        timezone: str,
        most_overheard: int,
    ) -> None:
        self._fold = fold
        self._memory = memory
        self._tape = memory.tape
        self._learning = ExplicitMemories(memory)
        self._deliveries = deliveries
        self._timezone = timezone
        self._bound = most_overheard
        self._unmarked = 0

    def overheard(self) -> list[int]:
        """Return the ids of the overheard messages that the next turn takes in.

        Edits and private messages are included whatever the limit on group messages.
        """
        heard = self._fold.window.overheard_messages()
        chatter = [entry.id for entry in heard if _is_chatter(entry)]
        others = [entry.id for entry in heard if not _is_chatter(entry)]
        return sorted([*chatter[max(0, len(chatter) - self._bound) :], *others[-_MOST_OTHERS:]])

    async def record_queued(self, delivery: Delivery) -> list[str]:
        """Record a message that a turn takes in at its next step or its start.

        Returns:
            One sentence for that turn about each fact that was not saved.
        """
        entry = self.entry(delivery.inbound, queued=True)
        heard = await self._tape.append(entry)
        return await self._learning.save([heard])

    async def record_overheard(
        self, delivery: Delivery, elsewhere: TapeEntry | None = None
    ) -> None:
        """Record a message that gets no answer.

        Args:
            delivery: The message.
            elsewhere: The message that it edits, if that belongs to another problem than the
                current one; the edit is assigned to that problem.
        """
        entry = self.entry(delivery.inbound, overheard=True, replaces=elsewhere)
        if elsewhere is not None:
            entry = entry.with_meta(problem=problem_of(elsewhere))
        self._unmarked = (self._unmarked + 1) % _MARK_EVERY
        marks = self._unmarked == 0

        def compose(version: int) -> list[TapeEntry]:
            problems = self._memory.bus.problems
            amended = (
                problems.resume_for_edit(elsewhere, version + 1) if elsewhere is not None else []
            )
            return [entry, *amended, *([session_mark_entry(self._fold)] if marks else [])]

        await self._tape.append_composed(compose)
        await self._deliveries.acknowledge(delivery)

    async def record_edit(self, delivery: Delivery, original: TapeEntry) -> bool:
        """Record an edit; it replaces its message in view if that is still unanswered.

        Returns:
            Whether it was: the answer may have come while the edit waited for the tape.
        """
        inbound, fold = delivery.inbound, self._fold
        in_time = False

        def compose(_: int) -> list[TapeEntry]:
            nonlocal in_time
            in_time = is_unanswered(fold, original)
            if in_time:
                return [self.entry(inbound, replaces=original)]
            return [self.entry(inbound, overheard=True)]

        heard = (await self._tape.append_composed(compose))[0]
        if in_time:
            await self._learning.replace(heard, original)
        await self._deliveries.acknowledge(delivery)
        return in_time

    async def learn(self, entries: Sequence[TapeEntry]) -> list[str]:
        """Save what messages ask to remember; return a sentence for each fact not saved."""
        return await self._learning.save(entries)

    def entry(
        self,
        inbound: Inbound,
        *,
        queued: bool = False,
        overheard: bool = False,
        replaces: TapeEntry | None = None,
    ) -> TapeEntry:
        """Return a message as an entry; see ``entries.message_entry``."""
        return message_entry(
            inbound,
            self._timezone,
            queued=queued,
            overheard=overheard,
            replaces=replaces,
            paused=self._memory.paused,
        )


def _is_chatter(entry: TapeEntry) -> bool:
    return entry.meta.get("private") is False and "edits" not in entry.meta
