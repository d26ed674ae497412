"""Read a session's facts, zone and working sets from its tapes, without a running bot."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

from bot.core.errors import TapeNotFound
from bot.memory.records.fact_fold import FactFold, fold_entries
from bot.memory.records.record_json import parse_utc_time
from bot.memory.records.turn_marks import turn_start
from bot.memory.session.scope.scope_memory import load_fact_entries
from bot.memory.session.state.session_fold import SCOPE_EVENT
from bot.memory.session.state.zone_snapshot import DailyNote, MemorySnapshot, ZoneFold
from bot.tape.batches import read_batches
from bot.tape.service import TapeService
from bot.tape.store import TapeStore
from bot.transfer.memory_markdown import memory_md


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """A session's memory.

    Attributes:
        session: The session's key.
        home: The tape of its facts.
        facts: The facts on that tape.
        zone: Its memory zone.
        own: The fold of its own tape: its own facts, problems, working sets.
    """

    session: str
    home: str
    facts: FactFold
    zone: MemorySnapshot
    own: FactFold

    @property
    def notes(self) -> Sequence[DailyNote]:
        """Daily notes, oldest first."""
        return self.zone.dailies

    def memory_md(self) -> str:
        """Render ``MEMORY.md``."""
        # The zone's long-term memory counts only for sessions from before there were facts.
        before = "" if self.facts.last_entry_id else self.zone.long_term
        return memory_md(self.facts.active(), before)


async def read_session_memory(store: TapeStore, session: str) -> SessionMemory:
    """Read a session's memory from its whole tape in batches; writes nothing.

    Raises:
        TapeNotFound: There is no such session.
    """
    zone, facts, home = ZoneFold(), FactFold(), session
    async with aclosing(read_batches(store, session)) as parts:
        async for entries in parts:
            for entry in entries:
                zone.apply(entry)
                facts.apply(entry)
                if turn_start(entry) is not None:
                    # A working set stays valid while its problem is worked on.
                    compartments = facts.compartments
                    compartments.last_used = (
                        parse_utc_time(entry.meta.get("ts")) or compartments.last_used
                    )
                if entry.kind == "event" and entry.name == SCOPE_EVENT:
                    home = str(entry.data.get("home") or session)
    own = facts
    if home != session:
        try:
            facts = fold_entries(await load_fact_entries(TapeService(store, home)))
        except TapeNotFound:
            facts = FactFold()
    return SessionMemory(session, home, facts, zone.snapshot, own)
