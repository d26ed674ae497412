"""When something happens once or again and again: rules, their next occurrence and JSON. Pure.

Rule 1: days, weeks, months, years and cron expressions are wall time in a zone; minutes and hours are elapsed time.
Rule 2: a change of clocks neither skips nor doubles an occurrence. A wall time that the clocks jump over is the moment
right after the jump; a wall time that comes twice is the first of the two. Only a cron expression for every hour ("*")
goes on through the hour that comes twice.
Rule 3: a day that a month does not have is that month's last day: a rule from 31 January comes on 28 February, and one
from 29 February comes on 28 February in common years. (A day of a cron expression is only that day, as always with cron.)
"""

from __future__ import annotations

import math
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, datetime, timedelta, tzinfo
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
_DAY = timedelta(days=1)
_SOME_YEAR = datetime(2000, 1, 1)  # noqa: DTZ001 - wall time of no zone


@dataclass(frozen=True, slots=True)
class Once:
    """A single moment.

    Attributes:
        at: The moment, aware, in UTC.
    """

    at: datetime

    def __post_init__(self) -> None:
        if not _is_utc(self.at):
            raise InvalidRecurrence(f"a moment is a time in UTC, not {self.at!r}")


@dataclass(frozen=True, slots=True)
class Cron:
    """The wall times that a cron expression matches.

    Attributes:
        expression: Minute, hour, day of the month, month and weekday, as "0 8 * * 1-5".
    """

    expression: str

    def __post_init__(self) -> None:
        expression: object = self.expression
        if not isinstance(expression, str) or len(expression) > _LONGEST_EXPRESSION:
            raise InvalidRecurrence(
                f"a cron expression is a text of at most {_LONGEST_EXPRESSION} characters"
            )
        fields = len(self.expression.split())
        if fields != 5:
            raise InvalidRecurrence(
                "a cron expression has five fields (minute, hour, day of the month, month, weekday), "
                f"not {fields}: {self.expression!r}"
            )
        if _next_match(self.expression, _SOME_YEAR) is None:
            raise InvalidRecurrence(f"the cron expression {self.expression!r} never matches a day")


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
            raise InvalidRecurrence(
                f"a unit is one of {', '.join(get_args(Unit))}, not {self.unit!r}"
            )
        if type(self.count) is not int or not 1 <= self.count <= _MOST:
            raise InvalidRecurrence(
                f"an interval is a whole number of {self.unit} from 1 to {_MOST}, not {self.count!r}"
            )
        if self.unit in _ELAPSED:
            if not _is_utc(self.start):
                raise InvalidRecurrence(f"{self.unit} start at a time in UTC, not {self.start!r}")
        elif not _is_local(self.start):
            raise InvalidRecurrence(
                f"{self.unit} start at a local time without a zone, not {self.start!r}"
            )


Rule = Once | Cron | Every


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
    moments = [after, after]
    for _step in range(_COMPARED):
        ahead = [
            next_occurrence(rule, moment, zone)
            for (rule, zone), moment in zip((first, second), moments, strict=True)
        ]
        one, other = ahead
        if one is None or other is None:
            return one is other and _step > 0
        if abs(one - other) >= timedelta(minutes=1):
            return False
        moments = [one, other]
    return True


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
    months = rule.start.year * 12 + rule.start.month - 1 + at * rule.count * _MONTHS[rule.unit]
    year, month = months // 12, months % 12 + 1
    if year > MAXYEAR:
        raise OverflowError
    return rule.start.replace(
        year=year, month=month, day=min(rule.start.day, monthrange(year, month)[1])
    )


def _next_of_cron(expression: str, after: datetime, zone: tzinfo) -> datetime | None:
    matches = CronSim(expression, _wall_time(after, zone))
    wall = next(matches, None)
    # Behind ``after``, in the second pass of an hour that comes twice, are the first passes of its times.
    while wall is not None and moment_of(wall, zone) <= after:
        wall = next(matches, None)
    moment = None if wall is None else moment_of(wall, zone)
    if len(matches.hours) == 24 and after < datetime.max.replace(tzinfo=UTC) - 2 * _DAY:
        for offset in {_offset(after, zone), _offset(after + _DAY, zone)}:
            wall = _next_match(expression, after.replace(tzinfo=None) + offset)
            second = None if wall is None else (wall - offset).replace(tzinfo=UTC)
            if second and _offset(second, zone) == offset and (moment is None or second < moment):
                moment = second
    return moment


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
    local = wall.replace(tzinfo=zone, fold=0)
    moment = local.astimezone(UTC)
    if _wall_time(moment, zone) == wall.replace(fold=0):
        return moment
    # With fold=0 the offset is the one before the jump, so the moment lies after it.
    early = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    before = _offset(early, zone)
    low, high = 0, math.ceil((moment - early).total_seconds())
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(early + timedelta(seconds=middle), zone) == before:
            low = middle
        else:
            high = middle
    return (early + timedelta(seconds=high)).replace(microsecond=0)


def _is_utc(moment: object) -> bool:
    return isinstance(moment, datetime) and moment.utcoffset() == timedelta(0)


def _is_local(moment: object) -> bool:
    return isinstance(moment, datetime) and moment.tzinfo is None


def rule_as_json(rule: Rule) -> dict[str, Any]:
    """Return a rule as JSON values."""
    if isinstance(rule, Once):
        return {"kind": "once", "at": rule.at.isoformat()}
    if isinstance(rule, Cron):
        return {"kind": "cron", "expression": rule.expression}
    return {
        "kind": "every",
        "count": rule.count,
        "unit": rule.unit,
        "start": rule.start.isoformat(),
    }


def rule_from_json(values: object) -> Rule:
    """Return the rule that ``rule_as_json`` wrote.

    Raises:
        InvalidRecurrence: The values are no rule.
    """
    if not isinstance(values, Mapping):
        raise InvalidRecurrence(f"a rule is an object, not {values!r}")
    fields = {"once": {"at"}, "cron": {"expression"}, "every": {"count", "unit", "start"}}
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in fields or set(values) != fields[kind] | {"kind"}:
        raise InvalidRecurrence(
            f"a rule is of kind once, cron or every with its fields: {values!r}"
        )
    if kind == "once":
        return Once(_read_time(values["at"]))
    if kind == "cron":
        return Cron(values["expression"])
    return Every(values["count"], values["unit"], _read_time(values["start"]))


def _read_time(text: object) -> datetime:
    try:
        moment = datetime.fromisoformat(cast(str, text))
    except (TypeError, ValueError):
        raise InvalidRecurrence(f"a time is written as 2026-03-03T09:00, not {text!r}") from None
    return moment.astimezone(UTC) if moment.tzinfo is not None else moment
