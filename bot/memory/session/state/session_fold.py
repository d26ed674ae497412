"""Fold a session's tape into its state: window, turns, zone, facts, pointers. Pure.

Rule 1: the same entries in the same order give the same state.
Rule 2: ``pointers`` is a shortcut: a fold over the whole tape gives the same state.
Rule 3: the prompt's memory block is the zone as of the last boundary or consolidation (``frozen``),
    so that the prompt's prefix stays the same in between. Cleared memory leaves the prompt at once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pydantic import BaseModel, ConfigDict

from bot.core.clock import format_time
from bot.llm.base import Usage
from bot.memory.records.compartments import Compartments
from bot.memory.records.conversation_entries import TURN_START, switched_problem
from bot.memory.records.event_names import IMPORT_READING, MODEL_CHOSEN
from bot.memory.records.fact_fold import FactFold, fold_entries
from bot.memory.records.pending_calls import PendingCalls
from bot.memory.records.record_json import parse_utc_time
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
    parse_usage,
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


class Pointers(BaseModel):
    """Position of a fold, stored in a ``turn.end`` now and then: opening a tape reads what is newer.

    Attributes:
        at: Id of the last entry applied.
        boundary: Id of the boundary anchor.
        used: When the last turn started, ISO 8601; empty if none did.
        cursor: ``through`` of the last consolidation.
        consolidated: Id of the last consolidation's anchor; 0 if there is none.
        failure: Id of the last failed consolidation's event; 0 if one succeeded since.
        zone: Ids of the zone's open and seal anchors.
        frozen: Ids of the open and seal anchors of the zone in the prompt.
        cleared: Id of the seal that last cleared memory; 0 if there is none.
        window: ``cut``, ``reads_from``, unconsolidated messages, their tokens.
        usage: Total usage.
        turns: Number of turns that ended.
        prompt: Hash and entry id of the last system prompt.
        prompt_tokens: The provider's token count of the last turn's prompt.
        open: The open turn.
        unsettled: Entry ids of messages that no ``turn.end`` lists yet, by platform id.
        commands: Entry ids of commands that no ``turn.end`` lists yet, by platform id.
        home: Home scope of the session's facts; empty for its own tape.
        parting: As ``SessionFold.home_parting``.
        facts: Id of the last entry of the fact chain on this tape; 0 if there is none.
        undelivered: Turn, entry, reply-to and inbound ids of answers without a delivery receipt.
        split: Messages that each wait for a turn of their own.
        interrupted: Messages of interrupted turns.
        shown: Platform messages that carry a part of an undelivered answer, by turn.
        spans: Id ranges in view, if they are sparse.
        calls: Ids of the entries of calls that wait for a decision or a result.
        schedules: Defining entry and next instant of each schedule; see ``ScheduleFold.pointers``.
        preset: Name of the model preset that the chat chose; empty for none.
        reading: Whether this chat reads the person's imported conversations.
        outside: Where text from outside began; see ``OutsideFold.pointers``.
        instructions: Id of the newest instructions of a client program; 0 if there are none.
        refused: What models' servers refused; see ``Refusals.pointers``.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    at: int
    boundary: int
    cursor: int
    consolidated: int
    failure: int
    zone: list[int]
    frozen: list[int]
    cleared: int
    window: list[int]
    usage: dict[str, Any]
    turns: int
    prompt: list[Any]
    prompt_tokens: int
    open: dict[str, Any] | None = None
    unsettled: dict[str, int] = {}
    commands: dict[str, int] = {}
    home: str = ""
    parting: int = 0
    facts: int = 0
    used: str = ""
    undelivered: list[list[Any]] = []
    split: dict[str, int] = {}
    interrupted: dict[str, int] = {}
    shown: dict[str, list[str]] = {}
    spans: list[list[int]] = []
    calls: list[int] = []
    schedules: dict[str, Any] = {}
    preset: str = ""
    reading: bool = False
    outside: list[Any] | None = None
    instructions: int = 0
    refused: dict[str, Any] = {}


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
        pointers: dict[str, Any] = {
            "at": self.version,
            "boundary": self.boundary.id if self.boundary else 0,
            "cursor": self.window.consolidated_through,
            "consolidated": self.last_consolidation.id if self.last_consolidation else 0,
            "failure": self.consolidation_failure.id if self.consolidation_failure else 0,
            "zone": list(self.zone.span or ()),
            "frozen": list(self.prompt_zone_span or ()),
            "cleared": self.zone.cleared,
            "window": [
                mark.cut,
                mark.reads_from,
                mark.unconsolidated,
                mark.unconsolidated_tokens,
            ],
            "usage": turns.usage.as_json(),
            "turns": turns.turn_count,
            "prompt": list(turns.last_prompt),
            "prompt_tokens": turns.last_prompt_tokens,
            "outside": self.outside.pointers(),
            **self.refused.pointers(),
            **_owed(turns),
        }
        if turns.instructions is not None:
            pointers["instructions"] = turns.instructions.id
        if self.home_scope:
            pointers["home"] = self.home_scope
            pointers["parting"] = self.home_parting
        if self.chosen_preset:
            pointers["preset"] = self.chosen_preset
        if self.reads_imports:
            pointers["reading"] = True
        if self.facts.last_entry_id:
            pointers["facts"] = self.facts.last_entry_id
        if scheduled := self.schedules.pointers():
            pointers["schedules"] = scheduled
        if (used := self.compartments.last_used) is not None:
            pointers["used"] = format_time(used)
        if self.pending_calls.calls:
            pointers["calls"] = self.pending_calls.entry_ids()
        if self.version - mark.reads_from > _SPARSE * (len(self.window.entries) + _SPARSE):
            pointers["spans"] = self.window.spans()
        return pointers

    def restore(self, pointers: Pointers, found: dict[int, TapeEntry]) -> None:
        """Restore the fold from pointers.

        Args:
            pointers: Pointers of a ``turn.end``.
            found: The entries that they name, by id: anchors, zones, failure, answers, the
                schedules' definitions, the range from ``window[1]`` to ``at``, and the fact chain.

        Raises:
            KeyError: A named entry is missing.
            ValueError: The entries do not fit the pointers.
        """
        cut, reads_from, messages, tokens = pointers.window
        self.boundary = found[pointers.boundary] if pointers.boundary else None
        self.last_consolidation = found[pointers.consolidated] if pointers.consolidated else None
        self.consolidation_failure = found[pointers.failure] if pointers.failure else None
        self.zone = _zone(pointers.zone, found)
        self.zone.cleared = pointers.cleared
        frozen = _zone(pointers.frozen, found)
        self.prompt_snapshot, self.prompt_zone_span = frozen.snapshot, frozen.span
        if pointers.facts and pointers.facts not in found:
            raise KeyError(pointers.facts)
        self.facts = fold_entries(found[i] for i in sorted(found) if i <= pointers.facts)
        self.facts.version = pointers.at
        self.compartments.last_used = parse_utc_time(pointers.used)
        self.window.problem = self.problem
        if (
            self.boundary is not None
            and self.boundary.id == cut
            and switched_problem(self.boundary)
        ):
            self.window.resume_plan = ResumedEntries.from_json(self.boundary.data.get("returns"))
        viewed = [found[i] for i in sorted(found) if reads_from <= i <= pointers.at]
        self.window.restore(
            WindowPosition(cut, reads_from, messages, tokens), pointers.cursor, viewed
        )
        self.turns = _turns(pointers, found)
        self.home_scope, self.home_parting = pointers.home, pointers.parting
        self.pending_calls = PendingCalls.of_entries(found[one] for one in pointers.calls)
        self.schedules = ScheduleFold.restored(pointers.schedules, found)
        self.chosen_preset = pointers.preset
        self.reads_imports = pointers.reading
        self.outside = OutsideFold.restored(pointers.outside, pointers.at)
        self.refused.restore(pointers.refused)
        self.version = self.pointers_at = pointers.at


def _turns(pointers: Pointers, found: dict[int, TapeEntry]) -> TurnFold:
    """Return the turns that pointers describe."""
    opened = pointers.open
    return TurnFold(
        open_turn=OpenTurn(**{**opened, "spent": parse_usage(opened["spent"])}) if opened else None,
        unanswered=dict(pointers.unsettled),
        unanswered_commands=dict(pointers.commands),
        undelivered={
            turn: UndeliveredAnswer.from_entry(turn, found[entry], reply_to, tuple(inbound))
            for turn, entry, reply_to, inbound in pointers.undelivered
        },
        delivered_parts={turn: tuple(ids) for turn, ids in pointers.shown.items()},
        usage=parse_usage(pointers.usage) if pointers.usage else Usage(),
        turn_count=pointers.turns,
        last_prompt=(str(pointers.prompt[0]), int(pointers.prompt[1])),
        last_prompt_tokens=pointers.prompt_tokens,
        instructions=found[pointers.instructions] if pointers.instructions else None,
        split_messages=dict(pointers.split),
        interrupted_messages=dict(pointers.interrupted),
    )


def _owed(turns: TurnFold) -> dict[str, Any]:
    """Return open, unanswered and undelivered items as JSON, without empty ones."""
    owed: dict[str, Any] = {
        "unsettled": dict(turns.unanswered),
        "commands": dict(turns.unanswered_commands),
        "undelivered": [
            [
                undelivered_answer.turn,
                undelivered_answer.entry,
                undelivered_answer.reply_to,
                list(undelivered_answer.inbound),
            ]
            for undelivered_answer in turns.undelivered.values()
        ],
        "split": dict(turns.split_messages),
        "interrupted": dict(turns.interrupted_messages),
        "shown": {turn: list(ids) for turn, ids in turns.delivered_parts.items()},
    }
    if turns.open_turn is not None:
        owed["open"] = {**asdict(turns.open_turn), "spent": turns.open_turn.spent.as_json()}
        # The tape has it. Pointers stay small, and are not searched for words to erase.
        del owed["open"]["client"], owed["open"]["calls"]
        for name in ("retries", "task", "preset"):
            if not owed["open"][name]:
                del owed["open"][name]
    return {name: value for name, value in owed.items() if value}


def _zone(span: list[int], found: dict[int, TapeEntry]) -> ZoneFold:
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
