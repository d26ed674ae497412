"""Fold a session's schedules: reminders and tasks, the time zone and quiet hours. Pure.

Rule 1: ``schedule.set`` and ``schedule.changed`` hold a whole definition with its next instant; the
    newest counts. A change of an ended schedule revives it.
Rule 2: ``schedule.fired`` moves the schedule to the next instant that it names; it has no words.
Rule 3: a schedule that has ended is known by its number for a while, for "snooze".
Rule 4: a schedule whose words were erased is gone. A reset ends all schedules. A child session has none of its parent's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from functools import cached_property
from typing import Any, Literal, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.core.clock import parse_time
from bot.core.recurrence import InvalidRecurrence, Once, Rule, rule_as_json, rule_from_json
from bot.memory.records.record_json import RecordJson
from bot.memory.records.tombstones import ERASED_TEXT, is_erased
from bot.tape.entries import SESSION_FORK, TapeEntry, event
from bot.tape.search import GENERAL_PROBLEM, problem_of

SCHEDULE_SET = "schedule.set"
SCHEDULE_CHANGED = "schedule.changed"
SCHEDULE_ENDED = "schedule.ended"
"""Name of the event that ends a schedule: ``{schedule, why}``; ``why`` is an ``Ending``."""
SCHEDULE_FIRED = "schedule.fired"
"""Name of the event of an occurrence: ``{schedule, instant, status, next, missed, turn}``."""
TIMEZONE_SET = "timezone.set"
"""Name of the event that sets the conversation's time zone: ``{zone}``."""
QUIET_HOURS_SET = "quiet.set"
"""Name of the event that sets quiet hours, ``{from, to}`` as ``HH:MM``, or ends them, ``{}``."""

SCHEDULE_EVENTS = frozenset(
    {SCHEDULE_SET, SCHEDULE_CHANGED, SCHEDULE_ENDED, SCHEDULE_FIRED, TIMEZONE_SET, QUIET_HOURS_SET}
)

MOST_SCHEDULES = 200
"""The most schedules of one conversation that have not ended."""

Kind = Literal["reminder", "task"]
Ending = Literal["done", "cancelled", "finished"]
FiringStatus = Literal["sent", "late", "missed", "held"]
"""How an occurrence went: told in time; told late; not told, since too old; kept for the end of
quiet hours."""

_KEPT_ENDED = 20
"""The most ended schedules that stay known by their numbers."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who set a schedule: the platform's id of the person, and the display name."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class QuietHours:
    """The part of each day in which nothing is sent; it may span midnight."""

    start: time
    end: time

    def contains(self, moment: datetime, zone: ZoneInfo) -> bool:
        """Say whether a moment lies in them, by the zone's wall time."""
        wall = moment.astimezone(zone).time().replace(tzinfo=None)
        if self.start <= self.end:
            return self.start <= wall < self.end
        return wall >= self.start or wall < self.end

    def end_after(self, moment: datetime, zone: ZoneInfo) -> datetime:
        """Return when they end next after a moment, in UTC."""
        local = moment.astimezone(zone)
        for days in (0, 1, 2):
            day = local.date() + timedelta(days=days)
            end = datetime.combine(day, self.end, zone).astimezone(UTC)
            if end > moment:
                return end
        raise AssertionError

    @property
    def text(self) -> str:
        """Both ends, as ``22:00-07:00``."""
        return f"{self.start:%H:%M}-{self.end:%H:%M}"


@dataclass(frozen=True)
class Schedule:
    """A reminder or a task, as its newest definition and its occurrences leave it.

    Attributes:
        id: Id, unique in the session; the same if setting it is repeated after a kill.
        number: Number for people; counts up per session.
        kind: ``reminder`` is text sent as it is; ``task`` is done by a model.
        text: What to remind of, or what to do.
        rule: When it comes.
        zone_name: IANA name of the zone of its wall times.
        next: The next instant, in UTC; None if there is none, or while it is paused.
        author: Who set it.
        private: Whether it was set in a private chat.
        created: When it was set.
        paused: Whether it is paused.
        held: The instant that quiet hours moved to ``next``; None if they moved none.
        ended: Why it ended; None if it has not.
        problem: The problem that it was set in; what it sends belongs to that one.
        entry: Id of the newest defining entry.
        own: The parts of the text that are a person's own words, or were approved by one.
    """

    id: str
    number: int
    kind: Kind
    text: str
    rule: Rule
    zone_name: str
    next: datetime | None
    author: Author
    private: bool
    created: datetime
    paused: bool = False
    held: datetime | None = None
    ended: Ending | None = None
    problem: str = GENERAL_PROBLEM
    entry: int = 0
    own: tuple[str, ...] = ()

    @cached_property
    def zone(self) -> ZoneInfo:
        """The zone of its wall times; UTC if this machine does not know it any more."""
        return find_zone(self.zone_name) or ZoneInfo("UTC")

    @property
    def recurs(self) -> bool:
        """Whether it comes more than once."""
        return not isinstance(self.rule, Once)

    @property
    def ignores_quiet_hours(self) -> bool:
        """Whether it comes in quiet hours, too: a reminder that is set for exactly that time."""
        return self.kind == "reminder" and not self.recurs

    def may_be_changed_by(self, sender: str, *, private: bool, owner: bool) -> bool:
        """Say whether a sender may change it: in a group only who set it, or an owner."""
        return private or owner or sender == self.author.id

    def as_json(self) -> dict[str, Any]:
        """Return the whole definition, as in its events."""
        return {**_SCHEDULES.write(self), "rule": rule_as_json(self.rule)}

    def definition(self) -> TapeEntry:
        """Return the event that sets the schedule."""
        return event(SCHEDULE_SET, self.as_json(), problem=self.problem)

    def change(self) -> TapeEntry:
        """Return the event that gives the schedule this definition."""
        return event(SCHEDULE_CHANGED, self.as_json(), problem=self.problem)

    def end(self, why: Ending) -> TapeEntry:
        """Return the event that ends the schedule."""
        return event(SCHEDULE_ENDED, {"schedule": self.id, "number": self.number, "why": why})


RecordJson(Author)
_SCHEDULES = RecordJson(
    Schedule,
    without=("rule", "held", "ended", "problem", "entry"),
    id="schedule",
    zone_name="zone",
)


def find_zone(name: str) -> ZoneInfo | None:
    """Return the zone with an IANA name; None if this machine knows none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def read_schedule(entry: TapeEntry) -> Schedule | None:
    """Return the schedule that an event defines; None if it defines none or was erased."""
    data = entry.data
    if entry.name not in (SCHEDULE_SET, SCHEDULE_CHANGED) or is_erased(entry):
        return None
    if str(data.get("text")).strip() == ERASED_TEXT:
        return None
    try:
        rule = rule_from_json(data.get("rule"))
    except (InvalidRecurrence, KeyError, TypeError, ValueError):
        return None
    return _SCHEDULES.read(data, rule=rule, problem=problem_of(entry), entry=entry.id)


@dataclass(slots=True)
class ScheduleFold:
    """The schedules of one session.

    Attributes:
        live: Schedules that have not ended, by id, in the order of their numbers.
        ended: Those that ended last, by id, oldest first.
        last_number: The highest number given so far.
        zone_name: The conversation's zone; empty for the program's.
        quiet: Quiet hours; None if there are none.
    """

    live: dict[str, Schedule] = field(default_factory=dict)
    ended: dict[str, Schedule] = field(default_factory=dict)
    last_number: int = 0
    zone_name: str = ""
    quiet: QuietHours | None = None
    _reserved: int = 0

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry; a malformed one changes nothing."""
        if entry.kind == "anchor" and (entry.is_reset or entry.name == SESSION_FORK):
            self.live, self.ended = {}, {}
        if entry.kind != "event" or entry.name not in SCHEDULE_EVENTS:
            return
        data, name = entry.data, entry.name
        if (defined := read_schedule(entry)) is not None:
            self.last_number = max(self.last_number, defined.number)
            self.ended.pop(defined.id, None)
            self.live[defined.id] = defined
        elif name == SCHEDULE_FIRED:
            self._fired(data)
        elif name == SCHEDULE_ENDED:
            self._end(str(data.get("schedule")), data.get("why"))
        elif name == TIMEZONE_SET:
            self.zone_name = str(data.get("zone") or "")
        elif name == QUIET_HOURS_SET:
            self.quiet = read_quiet_hours(data.get("from"), data.get("to"))

    def find(self, number: int) -> Schedule | None:
        """Return the schedule with a number, live or lately ended; None if there is none."""
        return next((one for one in self if one.number == number), None)

    def __iter__(self) -> Iterator[Schedule]:
        """Iterate over the live schedules, then those that ended."""
        yield from self.live.values()
        yield from self.ended.values()

    def take_number(self) -> int:
        """Return a number for a new schedule, never the same twice; one that is not used is lost."""
        self._reserved = max(self._reserved, self.last_number) + 1
        return self._reserved

    def _fired(self, data: dict[str, Any]) -> None:
        one = self.live.get(str(data.get("schedule")))
        if one is not None:
            held = parse_time(data.get("instant")) if data.get("status") == "held" else None
            moved = replace(
                one, next=parse_time(data.get("next")), held=held and (one.held or held)
            )
            self.live[one.id] = moved

    def _end(self, schedule: str, why: object) -> None:
        one = self.live.pop(schedule, None) or self.ended.pop(schedule, None)
        if one is not None:
            known = why if why in ("done", "cancelled", "finished") else "cancelled"
            self.ended[one.id] = replace(one, next=None, held=None, ended=cast("Ending", known))
            while len(self.ended) > _KEPT_ENDED:
                del self.ended[next(iter(self.ended))]


def read_quiet_hours(start: object, end: object) -> QuietHours | None:
    """Return quiet hours from two texts ``HH:MM``; None if they are none, or empty."""
    try:
        hours = QuietHours(time.fromisoformat(str(start)), time.fromisoformat(str(end)))
    except ValueError:
        return None
    return hours if hours.start != hours.end else None
