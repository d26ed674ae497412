"""Fold a session's tape into its state: window, turns, zone, facts. Pure.

Rule 1: the same entries in the same order give the same state.
Rule 2: the prompt's memory block is the zone as of the last boundary or consolidation (``frozen``),
    so that the prompt's prefix stays the same in between. Cleared memory leaves the prompt at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from bot.memory.records.compartments import Compartments
from bot.memory.records.conversation_entries import TURN_START
from bot.memory.records.event_names import IMPORT_READING, MODEL_CHOSEN
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.pending_calls import PendingCalls
from bot.memory.records.record_json import parse_utc_time
from bot.memory.records.refusals import Refusals
from bot.memory.records.schedules import ScheduleFold
from bot.memory.records.turn_marks import unfold
from bot.memory.session.state.context_window import (
    WindowFold,
)
from bot.memory.session.state.outside_fold import OutsideFold
from bot.memory.session.state.turn_fold import (
    TurnFold,
)
from bot.memory.session.state.zone_snapshot import MemorySnapshot, ZoneFold
from bot.tape.entries import MEMORY_CONSOLIDATED, TapeEntry

CONSOLIDATION_FAILED_EVENT = "consolidation.failed"
SCOPE_EVENT = "memory.scope"
"""Name of the event that sets the scope of a session's facts: ``{home, parting}``."""


@dataclass(slots=True)
class SessionFold:
    """The state of one session.

    Attributes:
        window: Entries in view, and unconsolidated counts.
        turns: The open turn, unanswered messages, undelivered answers, and usage.
        zone: The current memory zone.
        prompt_snapshot: The zone as shown in the prompt.
        boundary: The last boundary anchor.
        last_consolidation: The last ``memory/consolidated`` anchor.
        consolidation_failure: Event of the last failed consolidation; None once one succeeds.
        facts: Facts and compartments on this tape.
        home_scope: The scope that holds the session's facts; empty for its own tape.
        home_parting: Id of the newest parting of that scope's identities that the prompt follows.
        pending_calls: Tool calls that wait for a person's yes.
        schedules: Reminders and tasks, the time zone and quiet hours.
        version: Id of the last entry applied.
        chosen_preset: Name of the model preset that the chat chose; empty for the default.
        reads_imports: Whether this chat reads the person's imported conversations.
        outside: Where text from outside began.
        refused: What models' servers refused.
    """

    window: WindowFold = field(default_factory=WindowFold)
    turns: TurnFold = field(default_factory=TurnFold)
    zone: ZoneFold = field(default_factory=ZoneFold)
    prompt_snapshot: MemorySnapshot = field(default_factory=MemorySnapshot)
    prompt_zone_span: tuple[int, int] | None = None
    boundary: TapeEntry | None = None
    last_consolidation: TapeEntry | None = None
    consolidation_failure: TapeEntry | None = None
    facts: FactFold = field(default_factory=FactFold)
    home_scope: str = ""
    home_parting: int = 0
    pending_calls: PendingCalls = field(default_factory=PendingCalls)
    schedules: ScheduleFold = field(default_factory=ScheduleFold)
    version: int = 0
    chosen_preset: str = ""
    reads_imports: bool = False
    outside: OutsideFold = field(default_factory=OutsideFold)
    refused: Refusals = field(default_factory=Refusals)

    @property
    def compartments(self) -> Compartments:
        """The memory bus's compartments on this tape, such as problems and working sets."""
        return self.facts.compartments

    @property
    def problem(self) -> str:
        """Id of the active problem."""
        return self.facts.compartments.active_problem

    @property
    def is_private(self) -> bool:
        """Whether only private models may see the active problem."""
        return self.compartments.is_private(self.problem)

    @property
    def search_problem(self) -> str | None:
        """The problem to search in; None if there was only one, because a filter costs time."""
        alone = not self.compartments.problems and not self.facts.is_partial
        return None if alone else self.problem

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry."""
        for one in unfold(entry):
            self._apply(one)

    def _apply(self, entry: TapeEntry) -> None:
        self.window.apply(entry)
        self.turns.apply(entry)
        cleared = self.zone.cleared
        self.zone.apply(entry)
        self.facts.apply(entry)
        self.pending_calls.apply(entry)
        self.schedules.apply(entry)
        self.refused.apply(entry)
        self.outside.apply(entry)
        if entry.is_boundary:
            self.boundary = entry
            self._freeze()
        elif entry.kind == "anchor" and entry.name == MEMORY_CONSOLIDATED:
            self.last_consolidation = entry
            self.consolidation_failure = None
            self.turns.last_prompt_tokens = 0
            self._freeze()
        elif entry.kind == "event" and entry.name == CONSOLIDATION_FAILED_EVENT:
            self.consolidation_failure = entry
        elif entry.kind == "event" and entry.name == SCOPE_EVENT:
            self._move(entry.data)
        elif entry.kind == "event" and entry.name == MODEL_CHOSEN:
            self.chosen_preset = str(entry.data.get("preset") or "")
        elif entry.kind == "event" and entry.name == IMPORT_READING:
            self.reads_imports = entry.data.get("on") is True
        elif entry.kind == "event" and entry.name == TURN_START:
            self.compartments.last_used = (
                parse_utc_time(entry.meta.get("ts")) or self.compartments.last_used
            )
        elif self.zone.cleared != cleared:
            self._freeze()
        self.version = entry.id

    def without_hidden_messages(self) -> SessionFold:
        """Return a copy without messages that only their own turn may see."""
        aside = self.turns.hidden_entry_ids()
        return replace(self, window=self.window.without_messages(aside)) if aside else self

    def _move(self, told: dict[str, Any]) -> None:
        if self.home_scope:
            # Another person's memory leaves the prompt at once.
            self.prompt_snapshot, self.prompt_zone_span = MemorySnapshot(), None
        self.home_scope = str(told.get("home") or "")
        self.home_parting = told["parting"] if type(told.get("parting")) is int else 0

    def _freeze(self) -> None:
        self.prompt_snapshot, self.prompt_zone_span = self.zone.snapshot, self.zone.span
