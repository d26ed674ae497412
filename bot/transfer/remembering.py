"""What is believed in a session, read from its tapes alone: also beside a running bot."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

from bot.core.errors import TapeNotFound
from bot.memory.bus.records import time_from
from bot.memory.facts.fold import FactFold, folded
from bot.memory.fold import SCOPE
from bot.memory.scope import last_facts
from bot.memory.snapshot import DailyNote, MemorySnapshot, ZoneFold
from bot.memory.spoken import TURN_START
from bot.tape.portions import portions
from bot.tape.service import TapeService
from bot.tape.store import TapeStore
from bot.transfer.memory_files import memory_md


@dataclass(frozen=True, slots=True)
class Remembering:
    """A session's memory.

    Attributes:
        session: Its key.
        home: The tape that its facts are on.
        facts: Those facts.
        zone: Its memory zone.
        own: What its own tape holds: facts of its own, problems, working sets.
    """

    session: str
    home: str
    facts: FactFold
    zone: MemorySnapshot
    own: FactFold

    @property
    def notes(self) -> Sequence[DailyNote]:
        """Notes of days, oldest first."""
        return self.zone.dailies

    def memory_md(self) -> str:
        """Return ``MEMORY.md``."""
        # No session that was opened since there are facts has anything else in its zone.
        before = "" if self.facts.last else self.zone.long_term
        return memory_md(self.facts.active(), before)


async def remembering(store: TapeStore, session: str) -> Remembering:
    """Read a session's memory, all of its tape; writes nothing, and costs the memory of a portion.

    Raises:
        TapeNotFound: There is no such session.
    """
    zone, facts, home = ZoneFold(), FactFold(), session
    async with aclosing(portions(store, session)) as parts:
        async for entries in parts:
            for entry in entries:
                zone.apply(entry)
                facts.apply(entry)
                if entry.kind == "event" and entry.name == TURN_START:
                    # A working set lives on while its problem is worked on.
                    held = facts.compartments
                    held.used = time_from(entry.meta.get("ts")) or held.used
                if entry.kind == "event" and entry.name == SCOPE:
                    home = str(entry.data.get("home") or session)
    own = facts
    if home != session:
        try:
            facts = folded(await last_facts(TapeService(store, home)))
        except TapeNotFound:
            facts = FactFold()
    return Remembering(session, home, facts, zone.snapshot, own)
