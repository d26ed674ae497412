"""Fold a session's tape into its state: window, turns, zone, facts, pointers. Pure.

Rule 1: the same entries in the same order give the same state.
Rule 2: ``pointers`` is a shortcut: a fold over the whole tape gives the same state.
Rule 3: the prompt's memory block is the zone as of the last boundary or consolidation (``frozen``),
    so that the prompt's prefix stays the same in between. Cleared memory leaves the prompt at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from bot.llm.base import Usage
from bot.memory.records.compartments import Compartments
from bot.memory.records.conversation_entries import TURN_START, switched_problem
from bot.memory.records.event_names import IMPORT_READING, MODEL_CHOSEN
from bot.memory.records.fact_fold import FactFold, fold_entries
from bot.memory.records.pending_calls import PendingCalls
from bot.memory.records.record_json import RecordJson, parse_utc_time
from bot.memory.records.refusals import Refusals
from bot.memory.records.schedules import ScheduleFold
from bot.memory.records.turn_marks import unfold
from bot.memory.session.state.context_window import (
    ResumedEntries,
    WindowFold,
    WindowPosition,
)
from bot.memory.session.state.outside_fold import OutsideFold
from bot.memory.session.state.turn_fold import (
    OpenTurn,
    TurnFold,
    UndeliveredAnswer,
)
from bot.memory.session.state.zone_snapshot import MemorySnapshot, ZoneFold
from bot.tape.entries import MEMORY_CONSOLIDATED, TapeEntry, event

CONSOLIDATION_FAILED_EVENT = "consolidation.failed"
SCOPE_EVENT = "memory.scope"
"""Name of the event that sets the scope of a session's facts: ``{home, parting}``."""
SESSION_MARK_EVENT = "session.mark"
"""Name of the event that stores pointers without a turn, such as in a busy group."""

_SPARSE = 8
_POINT_EVERY = 48
"""Entries after which the end of a turn has pointers again: what opening the tape reads at most."""


@dataclass(frozen=True, slots=True)
class Pointers:
    """Position of a fold, stored in a ``turn.end`` now and then: opening a tape reads what is newer.

    It has ids of entries, 0 for none, and no words: those are read from the tape. ``undelivered`` has the
    turn, entry, reply-to and inbound ids of each answer, and ``spans`` the id ranges in view if they are
    sparse. The rest is as in ``SessionFold``.
    """

    at: int
    window: WindowPosition
    turns: TurnFold
    outside: OutsideFold
    refused: Refusals
    boundary: int = 0
    last_consolidation: int = 0
    consolidation_failure: int = 0
    zone: tuple[int, ...] = ()
    prompt_zone: tuple[int, ...] = ()
    cleared: int = 0
    home_scope: str = ""
    home_parting: int = 0
    facts: int = 0
    used: datetime | None = None
    undelivered: tuple[list[Any], ...] = ()
    instructions: int = 0
    spans: tuple[list[int], ...] = ()
    calls: tuple[int, ...] = ()
    schedules: dict[str, Any] = field(default_factory=dict)
    chosen_preset: str = ""
    reads_imports: bool = False


for _kind in (OutsideFold, Refusals, Usage, WindowPosition):
    RecordJson(_kind)
# The tape has what a client asks and calls. Pointers are not searched for words to erase.
RecordJson(OpenTurn, without=("client", "calls"))
RecordJson(TurnFold, without=("undelivered", "instructions", "_said"))
POINTERS = RecordJson(Pointers)


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
        pointers_at: Id of the newest entry that has pointers; 0 if there is none.
    """

    window: WindowFold
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
    pointers_at: int = 0

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
        if entry.kind == "event" and "pointers" in entry.data:
            self.pointers_at = entry.id
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

    def due_pointers(self) -> dict[str, Any]:
        """Return ``{"pointers": ...}`` if many entries came since the newest ones; else nothing."""
        due = self.version - self.pointers_at >= _POINT_EVERY
        return {"pointers": self.pointers()} if due else {}

    def pointers(self) -> dict[str, Any]:
        """Return the fold's position as JSON; see ``Pointers``."""
        turns, mark = self.turns, self.window.position()
        sparse = self.version - mark.reads_from > _SPARSE * (len(self.window.entries) + _SPARSE)
        answers = turns.undelivered.values()
        return POINTERS.write(
            Pointers(
                self.version,
                mark,
                turns,
                self.outside,
                self.refused,
                _id(self.boundary),
                _id(self.last_consolidation),
                _id(self.consolidation_failure),
                self.zone.span or (),
                self.prompt_zone_span or (),
                self.zone.cleared,
                self.home_scope,
                self.home_parting,
                self.facts.last_entry_id,
                self.compartments.last_used,
                tuple([one.turn, one.entry, one.reply_to, list(one.inbound)] for one in answers),
                _id(turns.instructions),
                tuple(self.window.spans()) if sparse else (),
                tuple(self.pending_calls.entry_ids()),
                self.schedules.pointers(),
                self.chosen_preset,
                self.reads_imports,
            )
        )

    def restore(self, pointers: Pointers, found: dict[int, TapeEntry]) -> None:
        """Restore the fold from pointers and the entries that they name, by id, with the chain of facts.

        Raises:
            KeyError: A named entry is missing.
            ValueError: The entries do not fit the pointers.
            TypeError: Likewise.
        """

        def named(entry: int) -> TapeEntry | None:
            return found[entry] if entry else None

        mark, known = pointers.window, sorted(found)
        self.boundary = named(pointers.boundary)
        self.last_consolidation = named(pointers.last_consolidation)
        self.consolidation_failure = named(pointers.consolidation_failure)
        self.zone = _zone(pointers.zone, found)
        self.zone.cleared = pointers.cleared
        frozen = _zone(pointers.prompt_zone, found)
        self.prompt_snapshot, self.prompt_zone_span = frozen.snapshot, frozen.span
        named(pointers.facts)  # must be there
        self.facts = fold_entries(found[i] for i in known if i <= pointers.facts)
        self.facts.version = pointers.at
        self.compartments.last_used = pointers.used
        self.window.problem = self.problem
        begun = self.boundary if self.boundary and self.boundary.id == mark.cut else None
        if begun is not None and switched_problem(begun):
            self.window.resume_plan = ResumedEntries.from_json(begun.data.get("returns"))
        viewed = (found[i] for i in known if mark.reads_from <= i <= pointers.at)
        self.window.restore(mark, viewed)
        self.turns = pointers.turns
        self.turns.instructions = named(pointers.instructions)
        self.turns.undelivered = {
            turn: UndeliveredAnswer.from_entry(turn, found[entry], reply_to, tuple(inbound))
            for turn, entry, reply_to, inbound in pointers.undelivered
        }
        self.pending_calls = PendingCalls.of_entries(found[one] for one in pointers.calls)
        self.schedules = ScheduleFold.restored(pointers.schedules, found)
        self.outside, self.refused = pointers.outside, pointers.refused
        for name in ("home_scope", "home_parting", "chosen_preset", "reads_imports"):
            setattr(self, name, getattr(pointers, name))
        self.version = self.pointers_at = pointers.at


def _id(entry: TapeEntry | None) -> int:
    return entry.id if entry is not None else 0


def _zone(span: Sequence[int], found: dict[int, TapeEntry]) -> ZoneFold:
    zone = ZoneFold()
    if span:
        first, last = span
        for entry_id in range(first, last + 1):
            if entry_id in found:
                zone.apply(found[entry_id])
        if zone.span != (first, last):
            raise ValueError(f"there is no zone at {first} to {last}")
    return zone


def session_mark_entry(fold: SessionFold) -> TapeEntry:
    """Return an event with the fold's pointers, as in the end of a turn."""
    return event(SESSION_MARK_EVENT, {"pointers": fold.pointers()})
