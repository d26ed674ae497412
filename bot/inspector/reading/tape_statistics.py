"""Count tokens, cost, turns and memory of one tape by day. Pure.

Rule 1: days are those of the user's time zone.
Rule 2: entries that a fork copied from its parent count for the parent.
Rule 3: a step's usage counts for the step's model; what the end of the turn has beyond its steps
    counts for the last one.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import date, tzinfo
from functools import lru_cache
from math import ceil

from bot.core.clock import parse_time
from bot.llm.base import Usage
from bot.memory.records.conversation_entries import LOOP_STEP, NO_TURNS, TURN_END, TURN_START
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.turn_marks import unfold
from bot.memory.session.state.turn_fold import parse_usage
from bot.memory.session.state.zone_snapshot import MemorySnapshot, ZoneFold
from bot.tape.entries import SESSION_FORK, TapeEntry

UNKNOWN = "unknown"
"""Name for a model that the tape does not name."""

NEVER = float("-inf")

_WAITING = 200
"""The most messages that are remembered until a turn takes them in."""


@dataclass(frozen=True, slots=True)
class TapeTotals:
    """The sizes of memory and tape: active facts, bytes of the memory zone, entries."""

    facts: int = 0
    zone: int = 0
    entries: int = 0

    def __add__(self, other: TapeTotals) -> TapeTotals:
        """Return the sum."""
        return TapeTotals(
            self.facts + other.facts, self.zone + other.zone, self.entries + other.entries
        )

    def __sub__(self, other: TapeTotals) -> TapeTotals:
        """Return the difference."""
        return TapeTotals(
            self.facts - other.facts, self.zone - other.zone, self.entries - other.entries
        )


@dataclass(slots=True)
class DayStatistics:
    """The statistics of one day.

    Attributes:
        usage: Usage by the model's name.
        ms: Duration of each turn in milliseconds.
        waits_ms: Milliseconds from when the platform says a message was sent until its turn began.
        turns: Turns that ended.
        failed: Turns that failed, of those.
        totals: Sizes at the end of the day.
    """

    usage: dict[str, Usage] = field(default_factory=dict)
    ms: array[float] = field(default_factory=lambda: array("d"))
    waits_ms: array[float] = field(default_factory=lambda: array("d"))
    turns: int = 0
    failed: int = 0
    totals: TapeTotals = field(default_factory=TapeTotals)

    def spend(self, model: str, usage: Usage) -> None:
        """Add usage of a model."""
        if usage.calls or usage.prompt_tokens or usage.completion_tokens:
            name = model or UNKNOWN
            self.usage[name] = self.usage.get(name, Usage()) + usage


@dataclass(slots=True)
class TapeStatistics:
    """The statistics of one tape, as far as it was read.

    Attributes:
        since: The first day that is counted.
        timezone: The user's time zone, which defines the days.
        at: Id of the last entry read.
        erasures: The store's count of erasures when the tape was first read.
        checked: Monotonic time at which it was last known to be read to its end.
        before: Sizes at the start of the first day.
        days: The statistics of each day on which entries were written.
        facts: The fold of the tape's facts.
        zone: The fold of the tape's memory zone.
    """

    since: date
    timezone: tzinfo
    at: int = 0
    erasures: int = 0
    checked: float = NEVER
    before: TapeTotals = field(default_factory=TapeTotals)
    days: dict[date, DayStatistics] = field(default_factory=dict)
    facts: FactFold = field(default_factory=FactFold)
    zone: ZoneFold = field(default_factory=ZoneFold)
    _copied: int = 0
    _level: TapeTotals = field(default_factory=TapeTotals)
    _steps: dict[str, Usage] = field(default_factory=dict)
    _model: str = ""
    _sent: OrderedDict[str, str] = field(default_factory=OrderedDict)

    def begin(self, at: int, facts: FactFold, zone: ZoneFold, *, copied: int = 0) -> None:
        """Start after an entry that is older than the first day.

        Args:
            at: Id of that entry.
            facts: The fold of the tape's facts up to it.
            zone: The fold of the tape's memory zone up to it.
            copied: Id of the last entry that a fork copied from its parent; 0 for none.
        """
        self.at, self.facts, self.zone, self._copied = at, facts, zone, copied
        self.before = self._level = TapeTotals(
            len(facts.active()), size_of(zone.snapshot), at - copied
        )

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry."""
        self.at = entry.id
        facts, zone = self._level.facts, self._level.zone
        last = self.facts.last_entry_id
        self.facts.apply(entry)
        if self.facts.last_entry_id != last:
            facts = len(self.facts.active())
        if self.zone.apply(entry):
            zone = size_of(self.zone.snapshot)
        if entry.kind == "anchor" and entry.name == SESSION_FORK:
            self._leave_to_parent(entry.id)
        self._level = TapeTotals(facts, zone, entry.id - self._copied)
        day = day_of(str(entry.meta.get("ts", "")), self.timezone)
        if day is None or day < self.since:
            self.before = self._level if not self.days else self.before
            return
        day_statistics = self.days.setdefault(day, DayStatistics())
        day_statistics.totals = self._level
        for one in unfold(entry):
            if one.kind == "message":
                self._hear(one)
            elif one.kind == "event":
                self._count(one, day_statistics)

    def _leave_to_parent(self, at: int) -> None:
        self.days.clear()
        self._copied = at
        self.before = TapeTotals()
        self._steps.clear()

    def _hear(self, entry: TapeEntry) -> None:
        inbound, sent = entry.meta.get("inbound"), entry.meta.get("sent")
        if isinstance(inbound, str) and isinstance(sent, str):
            self._sent[inbound] = sent
            while len(self._sent) > _WAITING:
                self._sent.popitem(last=False)

    def _count(self, entry: TapeEntry, day: DayStatistics) -> None:
        data = entry.data
        if entry.name == TURN_START:
            self._steps, self._model = {}, ""
            self._start(entry, day)
        elif entry.name == LOOP_STEP and isinstance(model := data.get("model"), str):
            self._model = model
            self._steps[model] = self._steps.get(model, Usage()) + parse_usage(data.get("spent"))
        elif entry.name == TURN_END:
            self._end(entry, day)
        elif isinstance(data.get("usage"), dict):
            day.spend(str(data.get("model") or ""), parse_usage(data["usage"]))

    def _start(self, entry: TapeEntry, day: DayStatistics) -> None:
        inbound = entry.data.get("inbound")
        known = [self._sent.pop(one, "") for one in inbound] if isinstance(inbound, list) else []
        sent = [moment for one in known if (moment := parse_time(one)) is not None]
        began = parse_time(str(entry.meta.get("ts", "")))
        if sent and began is not None:
            # The platform's clock may be ahead.
            day.waits_ms.append(max(0.0, (began - min(sent)).total_seconds() * 1000))

    def _end(self, entry: TapeEntry, day: DayStatistics) -> None:
        data = entry.data
        if data.get("status") in NO_TURNS:
            return
        day.turns += 1
        day.failed += data.get("status") == "error"
        if isinstance(ms := data.get("ms"), (int, float)):
            day.ms.append(ms)
        whole = parse_usage(data.get("usage"))
        last = str(data.get("model") or self._model)
        for model, usage in self._steps.items():
            day.spend(model, usage)
            whole = _less(whole, usage)
        # Sub-tasks, summaries and unanswered calls are only in the total.
        day.spend(last, whole)
        self._steps = {}


def percentile(samples: array[float], share: float) -> float | None:
    """Return the value that this share of the samples does not exceed; None without samples."""
    if not samples:
        return None
    return sorted(samples)[max(0, ceil(len(samples) * share) - 1)]


def size_of(snapshot: MemorySnapshot) -> int:
    """Return the bytes of text in a memory zone."""
    texts = [snapshot.long_term, snapshot.shared, snapshot.reference]
    texts += [note.content for note in snapshot.dailies]
    return sum(len(text.encode("utf-8", "replace")) for text in texts)


def _less(whole: Usage, part: Usage) -> Usage:
    """Subtract usage; a cost unknown in the part leaves none, since it was counted there."""
    cost: float | None = 0.0
    if part.cost is not None:
        cost = None if whole.cost is None else max(0.0, whole.cost - part.cost)
    return Usage(
        max(0, whole.prompt_tokens - part.prompt_tokens),
        max(0, whole.cached_tokens - part.cached_tokens),
        max(0, whole.completion_tokens - part.completion_tokens),
        cost,
        max(0, whole.calls - part.calls),
    )


def day_of(ts: str, timezone: tzinfo) -> date | None:
    """Return the day of a timestamp in a time zone; None if it is no timestamp."""
    # Cached by minute: many entries share one.
    return _day_of_minute(ts[:16], timezone) if len(ts) > 16 else None


@lru_cache(maxsize=4_096)
def _day_of_minute(minute: str, timezone: tzinfo) -> date | None:
    moment = parse_time(f"{minute}:00+00:00")
    try:
        return moment.astimezone(timezone).date() if moment is not None else None
    except OverflowError:
        return None
