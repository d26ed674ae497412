"""When something happens once or again and again: rules, their next occurrence and JSON. Pure.

Rule 1: days, weeks, months, years and cron expressions are wall time in a zone; minutes and hours are elapsed time.
Rule 2: a change of clocks neither skips nor doubles an occurrence. A wall time that the clocks jump over is the moment
right after the jump; a wall time that comes twice is the first of the two. Only a cron expression for every hour ("*")
goes on through the hour that comes twice.
Rule 3: a day that a month does not have is that month's last day: a rule from 31 January comes on 28 February, and one
from 29 February comes on 28 February in common years. (A day of a cron expression is only that day, as always with cron.)
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import MAXYEAR, UTC, datetime, timedelta, tzinfo
from itertools import islice, zip_longest
from typing import Any, Literal, cast, get_args

from cronsim import CronSim, CronSimError

from bot.core.errors import InvalidRecurrence

__all__ = [
    "Cron",
    "Every",
    "InvalidRecurrence",
    "Once",
    "Rule",
    "Unit",
    "add_months",
    "moment_of",
    "next_occurrence",
    "rule_as_json",
    "rule_from_json",
    "same_occurrences",
]

Unit = Literal["minutes", "hours", "days", "weeks", "months", "years"]
_ELAPSED = {"minutes": timedelta(minutes=1), "hours": timedelta(hours=1)}
_DAYS = {"days": 1, "weeks": 7}
_MONTHS = {"months": 1, "years": 12}
_LONGEST_EXPRESSION = 200
_MOST = 1_000_000
_COMPARED = 100
"""Occurrences by which two rules are compared."""
_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)
_SOME_YEAR = datetime(2000, 1, 1)  # noqa: DTZ001 - wall time of no zone


@dataclass(frozen=True, slots=True)
class Once:
    """A single moment: ``at``, aware, in UTC."""

    at: datetime

    def __post_init__(self) -> None:
        _check_time(self.at, timedelta(0))


@dataclass(frozen=True, slots=True)
class Cron:
    """The wall times of a cron expression: minute, hour, day of the month, month and weekday, as "0 8 * * 1-5"."""

    expression: str

    def __post_init__(self) -> None:
        expression: object = self.expression
        if not isinstance(expression, str) or len(expression) > _LONGEST_EXPRESSION:
            raise InvalidRecurrence(
                f"a cron expression is a text of at most {_LONGEST_EXPRESSION} characters"
            )
        if (count := len(expression.split())) != 5:
            raise InvalidRecurrence(
                "a cron expression has five fields (minute, hour, day of the month, month, weekday), "
                f"not {count}: {expression!r}"
            )
        if _next_match(expression, _SOME_YEAR) is None:
            raise InvalidRecurrence(f"the cron expression {expression!r} never matches a day")


@dataclass(frozen=True, slots=True)
class Every:
    """A start, and later moments at equal distances from it.

    Attributes:
        count: How many units lie between two occurrences; at least 1.
        unit: Minutes and hours are elapsed time; the longer ones are wall time.
        start: The occurrence that others are counted from, which may be long past: aware in UTC for minutes and hours,
            else a local time without a zone.
    """

    count: int
    unit: Unit
    start: datetime

    def __post_init__(self) -> None:
        if self.unit not in get_args(Unit):
            raise InvalidRecurrence(f"a unit is one of {get_args(Unit)}, not {self.unit!r}")
        if type(self.count) is not int or not 1 <= self.count <= _MOST:
            raise InvalidRecurrence(f"a count is from 1 to {_MOST}, not {self.count!r}")
        _check_time(self.start, timedelta(0) if self.unit in _ELAPSED else None)


Rule = Once | Cron | Every
_KINDS: dict[str, type[Once | Cron | Every]] = {"once": Once, "cron": Cron, "every": Every}


def next_occurrence(rule: Rule, after: datetime, zone: tzinfo) -> datetime | None:
    """Return a rule's first occurrence after a moment, in UTC; None if there is none.

    The time that it takes is bounded, however far away the occurrence is.

    Args:
        rule: The rule.
        after: An aware time; the occurrence is strictly later.
        zone: The zone of wall times.
    """
    after = after.astimezone(UTC)
    try:
        if isinstance(rule, Once):
            return rule.at if rule.at > after else None
        if isinstance(rule, Cron):
            return _next_of_cron(rule.expression, after, zone)
        if rule.unit in _ELAPSED:
            step = rule.count * _ELAPSED[rule.unit]
            return rule.start + max(0, (after - rule.start) // step + 1) * step
        return _next_of_calendar(rule, after, zone)
    except OverflowError:  # after the last year of Python's calendar
        return None


def same_occurrences(
    first: tuple[Rule, tzinfo], second: tuple[Rule, tzinfo], after: datetime
) -> bool:
    """Return whether two rules, each in its zone, come at the same minutes from a moment on, as far as is looked ahead."""

    def moments(rule: Rule, zone: tzinfo) -> Iterator[datetime]:
        moment: datetime | None = after
        while moment is not None and (moment := next_occurrence(rule, moment, zone)):
            yield moment

    pairs = list(islice(zip_longest(moments(*first), moments(*second)), _COMPARED))
    alike = (one and other and abs(one - other) < _MINUTE for one, other in pairs)
    return bool(pairs) and all(alike)


def _next_of_calendar(rule: Every, after: datetime, zone: tzinfo) -> datetime:
    wall = _wall_time(after, zone)
    if rule.unit in _DAYS:
        at = (wall - rule.start) // timedelta(days=rule.count * _DAYS[rule.unit])
    else:
        months = (wall.year - rule.start.year) * 12 + wall.month - rule.start.month
        at = months // (rule.count * _MONTHS[rule.unit])
    at = max(0, at - 1)
    while (moment := moment_of(_nth_wall_time(rule, at), zone)) <= after:
        at += 1
    return moment


def _nth_wall_time(rule: Every, at: int) -> datetime:
    if rule.unit in _DAYS:
        return rule.start + timedelta(days=at * rule.count * _DAYS[rule.unit])
    return add_months(rule.start, at * rule.count * _MONTHS[rule.unit])


def add_months(wall: datetime, months: int) -> datetime:
    """Return a wall time so many months later, on the last day of a month that is too short; it may raise OverflowError."""
    year, month = divmod(wall.year * 12 + wall.month - 1 + months, 12)
    if year > MAXYEAR:
        raise OverflowError
    day = min(wall.day, monthrange(year, month + 1)[1])
    return wall.replace(year=year, month=month + 1, day=day)


def _next_of_cron(expression: str, after: datetime, zone: tzinfo) -> datetime | None:
    matches = CronSim(expression, _wall_time(after, zone))
    # Behind ``after``, in the second pass of an hour that comes twice, are the first passes of its times.
    walls = (moment_of(wall, zone) for wall in matches)
    found = [next((moment for moment in walls if moment > after), None)]
    if len(matches.hours) == 24 and after < datetime.max.replace(tzinfo=UTC) - 2 * _DAY:
        for offset in {_offset(after, zone), _offset(after + _DAY, zone)}:
            wall = _next_match(expression, after.replace(tzinfo=None) + offset)
            second = None if wall is None else (wall - offset).replace(tzinfo=UTC)
            if second and _offset(second, zone) == offset:
                found.append(second)
    return min(filter(None, found), default=None)


def _next_match(expression: str, wall: datetime) -> datetime | None:
    try:
        return next(CronSim(expression, wall), None)
    except CronSimError as wrong:
        reason = str(wrong).replace("Bad ", "wrong ")
        raise InvalidRecurrence(f"the cron expression {expression!r} has a {reason}") from wrong


def _wall_time(moment: datetime, zone: tzinfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _offset(moment: datetime, zone: tzinfo) -> timedelta:
    return cast(timedelta, moment.astimezone(zone).utcoffset())


def moment_of(wall: datetime, zone: tzinfo) -> datetime:
    """Return when a wall time is, in UTC: the first time if it comes twice, right after a jump over it."""
    wall = wall.replace(fold=0)
    while _wall_time(moment := wall.replace(tzinfo=zone).astimezone(UTC), zone) != wall:
        wall = wall.replace(second=0, microsecond=0) + _MINUTE
    return moment


def _check_time(moment: object, offset: timedelta | None) -> None:
    if not isinstance(moment, datetime) or moment.utcoffset() != offset:
        raise InvalidRecurrence(f"a time is in UTC, or local without a zone, not {moment!r}")


def rule_as_json(rule: Rule) -> dict[str, Any]:
    """Return a rule as JSON values."""
    values = {field.name: getattr(rule, field.name) for field in fields(rule)}
    told = {k: v.isoformat() if isinstance(v, datetime) else v for k, v in values.items()}
    return {"kind": type(rule).__name__.lower(), **told}


def rule_from_json(values: object) -> Rule:
    """Return the rule that ``rule_as_json`` wrote.

    Raises:
        InvalidRecurrence: The values are no rule.
    """
    try:
        read = dict(cast(dict[str, Any], values))
        kind = _KINDS[read.pop("kind")]
        for name in {"at", "start"} & set(read):
            read[name] = datetime.fromisoformat(read[name])
        return kind(**read)
    except (KeyError, TypeError, ValueError) as wrong:
        raise InvalidRecurrence(f"it is no rule of kind once, cron or every: {values!r}") from wrong
