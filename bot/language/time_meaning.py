"""What a phrase of time means at a moment in a zone. Pure.

Rule 1: a time of day without a day is its next occurrence; a day without a time of day is at nine.
Rule 2: an hour up to eleven without "am" or "pm" is one of a clock's face. Without a day, or today, it is the next of both;
        on another day one to five are in the afternoon, and the others in the morning.
Rule 3: "next Friday" is the Friday of the next calendar week; "Friday" is the nearest one.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal

from bot.core.recurrence import Cron, Every, Once, Rule, moment_of, next_occurrence
from bot.language.time_vocabulary import TimePhrase

_NINE = (9, 0)
_LEAP_YEAR = 2000


def rule_of(phrase: TimePhrase, now: datetime, zone: tzinfo) -> Rule | None:
    """Return when a phrase is; None if it is not sure, impossible or past."""
    if phrase.vague:
        return None
    meaning = _Meaning(phrase, now.astimezone(UTC), zone)
    try:
        if phrase.distance is not None:
            rule: Rule | None = meaning.after_distance()
        elif phrase.every is not None:
            rule = meaning.repetition(*phrase.every)
        else:
            rule = meaning.one_day()
    except (OverflowError, ValueError):  # a day or a year that the calendar does not have
        return None
    return rule if rule and next_occurrence(rule, now, zone) is not None else None


class _Meaning:
    """What a phrase means at a moment in a zone."""

    def __init__(self, phrase: TimePhrase, now: datetime, zone: tzinfo) -> None:
        self._phrase = phrase
        self._now = now
        self._zone = zone
        self._local = now.astimezone(zone).replace(tzinfo=None, fold=0)
        self._today = self._local.date()

    def after_distance(self) -> Once | None:
        phrase = self._phrase
        months, days, seconds = phrase.distance or (0, 0, 0)
        if phrase.kinds - {"distance", "clock", "part", "beside"} and phrase.days != 0:
            return None
        if not months and not days:
            timed = phrase.clock is not None or phrase.part is not None
            return None if timed or seconds <= 0 else Once(self._now + timedelta(seconds=seconds))
        if seconds:
            return None
        total = self._today.year * 12 + self._today.month - 1 + months
        year, month = total // 12, total % 12 + 1
        day = date(year, month, min(self._today.day, monthrange(year, month)[1]))
        timed = phrase.clock is not None or phrase.part is not None
        clock = self._time(later_today=False) if timed else self._local.time()
        return None if clock is None else self._once(day + timedelta(days=days), clock)

    def one_day(self) -> Once | None:
        phrase = self._phrase
        if phrase.days is not None and phrase.kinds & {"date"}:
            return None
        if phrase.month_day == -1:
            return self._next_of(self._ends_of_months())
        if phrase.date is not None:
            return self._next_of(self._dates(), named=phrase.date[0] is not None)
        if phrase.month_day is not None:
            return self._next_of(self._days_of_months())
        if phrase.days is not None:
            day = self._today + timedelta(days=phrase.days)
            fits = phrase.weekdays is None or day.weekday() in phrase.weekdays
            return self._on(day) if fits else None
        if phrase.weekdays is not None:
            return self._next_of(self._weekdays())
        if phrase.clock is None and phrase.part is None:
            return None
        return self._next_of(self._today + timedelta(days=day) for day in range(3))

    def repetition(self, count: int, unit: str) -> Rule | None:
        phrase = self._phrase
        if phrase.days is not None or phrase.week is not None:
            return None
        if unit in ("minutes", "hours"):
            alone = phrase.kinds <= {"every"}
            step = timedelta(**{unit: count})
            return Every(count, unit, self._now + step) if alone else None  # type: ignore[arg-type]
        clock = self._time(later_today=False)
        if clock is None:
            return None
        if phrase.nth is not None or (phrase.month_day == -1 and unit == "months"):
            return self._monthly_cron(clock) if count == 1 else None
        weekdays = phrase.weekdays
        if unit == "days" and weekdays is None and phrase.date is None and phrase.month_day is None:
            return self._every(count, unit, (self._today + timedelta(days=day) for day in range(3)))
        if unit == "weeks" and weekdays is not None and phrase.date is None:
            if len(weekdays) == 1:
                return self._every(count, unit, self._weekdays())
            days = ",".join(str(day) for day in sorted((day + 1) % 7 for day in weekdays))
            days = "1-5" if weekdays == frozenset(range(5)) else days
            return Cron(f"{clock.minute} {clock.hour} * * {days}") if count == 1 else None
        if unit == "months" and phrase.month_day is not None and weekdays is None:
            return self._counted_from(count, phrase.month_day, clock)
        if unit == "years" and phrase.date is not None and weekdays is None:
            year, month, day = phrase.date
            return None if year else self._counted_from(count, day, clock, month)
        return None

    def _counted_from(self, count: int, day: int, clock: time, month: int = 0) -> Every | None:
        """Return the rule of a day of months, or of one month of the years, from a month that has the day.

        So its first occurrence is found as the next ones are: on the last day of a shorter month.
        """
        ahead, step = (12, 12 * count) if month else (1, count)
        at = self._today.year * 12 + (month or self._today.month) - 1
        if not 1 <= day <= monthrange(_LEAP_YEAR, month or 1)[1]:
            return None
        while moment_of(datetime.combine(_day_in(at, day), clock), self._zone) <= self._now:
            at += ahead
        start = next(
            (one for one in range(at, at - 50 * step, -step) if _day_in(one, day).day == day), at
        )
        unit: Literal["years", "months"] = "years" if month else "months"
        return Every(count, unit, datetime.combine(_day_in(start, day), clock))

    def _monthly_cron(self, clock: time) -> Cron | None:
        phrase = self._phrase
        if phrase.nth is None:
            return Cron(f"{clock.minute} {clock.hour} L * *")
        (weekday,) = phrase.weekdays or frozenset((0,))
        which = "L" if phrase.nth == -1 else f"#{phrase.nth}"
        return Cron(f"{clock.minute} {clock.hour} * * {(weekday + 1) % 7}{which}")

    def _every(self, count: int, unit: str, days: Iterator[date]) -> Every | None:
        clock = self._time(later_today=False)
        for day in days:
            start = datetime.combine(day, clock or time(9))
            if moment_of(start, self._zone) > self._now:
                return Every(count, unit, start)  # type: ignore[arg-type]
        return None

    def _next_of(self, days: Iterator[date], *, named: bool = False) -> Once | None:
        for day in days:
            once = self._on(day)
            if once is not None or named:
                return once
        return None

    def _on(self, day: date) -> Once | None:
        clock = self._time(later_today=day == self._today)
        return None if clock is None else self._once(day, clock)

    def _once(self, day: date, clock: time) -> Once | None:
        moment = moment_of(datetime.combine(day, clock), self._zone)
        return Once(moment) if moment > self._now else None

    def _dates(self) -> Iterator[date]:
        """Yield the days of a date: of its year, else of this and the next ones that have it."""
        year, month, day = self._phrase.date or (None, 1, 1)
        weekdays = self._phrase.weekdays
        for one in [year] if year else range(self._today.year, self._today.year + 9):
            if (month, day) == (2, 29) and not year and monthrange(one, 2)[1] < 29:
                continue
            found = date(one, month, day)
            if weekdays is None or found.weekday() in weekdays:
                yield found
            elif found >= self._today:
                return

    def _ends_of_months(self) -> Iterator[date]:
        year, month = self._today.year, self._today.month
        for one_year, one_month in ((year, month), (year + month // 12, month % 12 + 1)):
            yield date(one_year, one_month, monthrange(one_year, one_month)[1])

    def _days_of_months(self) -> Iterator[date]:
        number = self._phrase.month_day or 0
        weekdays = self._phrase.weekdays
        for ahead in range(14):
            months = self._today.year * 12 + self._today.month - 1 + ahead
            year, month = months // 12, months % 12 + 1
            if 1 <= number <= monthrange(year, month)[1]:
                found = date(year, month, number)
                if weekdays is None or found.weekday() in weekdays:
                    yield found
                elif found >= self._today:
                    return

    def _weekdays(self) -> Iterator[date]:
        (weekday,) = self._phrase.weekdays or frozenset((0,))
        if self._phrase.week:
            monday = self._today - timedelta(days=self._today.weekday())
            yield monday + timedelta(days=7 + weekday)
            return
        ahead = (weekday - self._today.weekday()) % 7
        yield self._today + timedelta(days=ahead)
        yield self._today + timedelta(days=ahead + 7)

    def _time(self, *, later_today: bool) -> time | None:
        """Return the time of day; None if its words contradict each other."""
        phrase = self._phrase
        if phrase.clock is None:
            return time(*_NINE) if phrase.part is None else time(phrase.part)
        hour, minute = phrase.clock
        if phrase.part is not None:
            return _in_part(hour, minute, phrase.part, face=phrase.face)
        if not phrase.face:
            return time(hour, minute)
        if self._has_day():
            return time(hour + 12 if hour < 6 else hour, minute)
        morning, evening = time(hour, minute), time(hour + 12, minute)
        return evening if later_today and morning <= self._local.time() else morning

    def _has_day(self) -> bool:
        phrase = self._phrase
        named = (
            phrase.date or phrase.month_day or phrase.weekdays or phrase.every or phrase.distance
        )
        return bool(named) or (phrase.days or 0) > 0


def _day_in(month: int, day: int) -> date:
    """Return a day of a month, counted from the year 0; the last one if the month does not have it."""
    year, number = month // 12, month % 12 + 1
    return date(year, number, min(day, monthrange(year, number)[1]))


def _in_part(hour: int, minute: int, part: int, *, face: bool) -> time | None:
    """Return an hour of a part of the day: eight in the evening is 20:00."""
    if face:
        in_afternoon = part in (15, 19) or (part == 21 and hour >= 6) or (part == 12 and hour < 6)
        return time(hour + 12 if in_afternoon else hour, minute)
    if hour == 12 and part in (19, 21):
        return None  # midnight of which day?
    fits = {9: range(12), 12: range(10, 16), 15: range(12, 20), 19: range(15, 24)}
    return time(hour, minute) if hour in fits.get(part, range(24)) else None
