"""What a phrase of time means at a moment in a zone. Pure.

Rule 1: a time of day without a day is its next occurrence; a day without a time of day is at nine.
Rule 2: an hour up to eleven without "am" or "pm" is one of a clock's face. Without a day, or today, it is the next of both;
        on another day one to five are in the afternoon, and the others in the morning.
Rule 3: all that a phrase says of a day must hold for it; nothing is left out to find one.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal

from bot.agent.schedules.times.phrases import TimePhrase
from bot.core.recurrence import Cron, Every, Once, Rule, moment_of, next_occurrence

Why = Literal["", "unclear", "two_days", "no_day", "past"]
_NINE = time(9)
_LEAP_YEAR = 2000
_AHEAD = 366 * 9
"""Days in which a day is looked for: 29 February may be eight years away."""


def rule_of(phrase: TimePhrase, now: datetime, zone: tzinfo) -> Rule | Why:
    """Return when a phrase is, or why it is at no time."""
    if phrase.why:
        return "unclear" if phrase.why != "two_days" else "two_days"
    if _has_no_such_day(phrase):
        return "no_day"
    meaning = _Meaning(phrase, now.astimezone(UTC), zone)
    try:
        if phrase.distance is not None:
            rule = meaning.after_distance()
        elif phrase.every is not None:
            rule = meaning.repetition(*phrase.every)
        else:
            rule = meaning.one_day()
    except (OverflowError, ValueError):  # a day or a year that the calendar does not have
        return "no_day"
    return rule if isinstance(rule, str) or next_occurrence(rule, now, zone) else "past"


def _has_no_such_day(phrase: TimePhrase) -> bool:
    if phrase.date is not None:
        year, month, day = phrase.date
        return not 1 <= month <= 12 or not 1 <= day <= monthrange(year or _LEAP_YEAR, month)[1]
    return phrase.month_day is not None and phrase.month_day not in (-1, *range(1, 32))


class _Meaning:
    def __init__(self, phrase: TimePhrase, now: datetime, zone: tzinfo) -> None:
        self._phrase = phrase
        self._now = now
        self._zone = zone
        self._local = now.astimezone(zone).replace(tzinfo=None, fold=0)
        self._today = self._local.date()

    def after_distance(self) -> Rule | Why:
        phrase = self._phrase
        months, days, seconds = phrase.distance or (0, 0, 0)
        timed = phrase.clock is not None or phrase.part is not None
        if phrase.kinds - {"distance", "clock", "part", "zone"} and phrase.days != 0:
            return "unclear"
        if not months and not days:
            later = self._now + timedelta(seconds=seconds)
            return "unclear" if timed or seconds <= 0 else Once(later)
        clock = self._time() if timed else self._local.time()
        if seconds or clock is None:
            return "unclear"
        day = _day_in(self._today.year * 12 + self._today.month - 1 + months, self._today.day)
        return self._once(day + timedelta(days=days), clock)

    def one_day(self) -> Rule | Why:
        phrase = self._phrase
        if not phrase.kinds - {"zone"} or len(phrase.weekdays or "1") > 1:
            return "unclear"  # "on the weekend"
        if self._time() is None:
            return "unclear"
        fits = False
        for day in (self._today + timedelta(days=ahead) for ahead in range(_AHEAD)):
            if self._is_named(day):
                if phrase.weekdays is not None and day.weekday() not in phrase.weekdays:
                    if phrase.date is not None or phrase.days is not None:
                        return "no_day"  # "on Monday 3 March", which is a Tuesday
                    continue
                clock = self._time(today=day == self._today)
                once = "unclear" if clock is None else self._once(day, clock)
                if (
                    not isinstance(once, str)
                    or (phrase.date or (None,))[0]
                    or phrase.days is not None
                ):
                    return once
                fits = True
        return "past" if fits or (phrase.date or (None,))[0] else "no_day"

    def _is_named(self, day: date) -> bool:
        """Return whether a day is what the phrase says of it, but for its weekday."""
        phrase = self._phrase
        year, month, number = phrase.date or (None, day.month, day.day)
        last = phrase.month_day == -1 and (day + timedelta(days=1)).day == 1
        return (
            (year or day.year, month, number) == (day.year, day.month, day.day)
            and (phrase.month_day in (None, day.day) or last)
            and phrase.days in (None, (day - self._today).days)
            and (not phrase.next_week or 0 < (day - self._monday).days - 6 <= 7)
        )

    @property
    def _monday(self) -> date:
        return self._today - timedelta(days=self._today.weekday())

    def repetition(self, count: int, unit: str) -> Rule | Why:
        phrase = self._phrase
        kinds = phrase.kinds - {"every", "clock", "part", "zone"}
        clock = self._time()
        if unit in ("minutes", "hours"):
            alone = phrase.kinds <= {"every", "zone"}
            start = self._now + timedelta(**{unit: count})
            return Every(count, unit, start) if alone else "unclear"  # type: ignore[arg-type]
        if clock is None or phrase.next_week:
            return "unclear"
        at = f"{clock.minute} {clock.hour}"
        weekdays = phrase.weekdays or frozenset()
        if unit == "months" and count == 1 and "nth" in kinds and kinds <= {"nth", "weekday"}:
            which = "L" if phrase.nth == -1 else f"#{phrase.nth}"
            return Cron(f"{at} * * {(min(weekdays) + 1) % 7}{which}")
        if unit == "months" and kinds == {"month_day"}:
            if phrase.month_day == -1:
                return Cron(f"{at} L * *") if count == 1 else "unclear"
            return self._counted_from(count, phrase.month_day or 1, clock)
        if unit == "years" and kinds == {"date"} and phrase.date and not phrase.date[0]:
            return self._counted_from(count, phrase.date[2], clock, phrase.date[1])
        if unit == "days" and kinds == {"weekday"} and count % 7 == 0:  # "every 14 days on Friday"
            count, unit = count // 7, "weeks"
        if unit == "days" and not kinds:
            return self._every(count, unit, range(2), clock)
        if unit in ("days", "weeks") and kinds == {"weekday"} and (unit == "weeks" or count == 1):
            if len(weekdays) == 1:
                ahead = (min(weekdays) - self._today.weekday()) % 7
                return self._every(count, "weeks", range(ahead, ahead + 8, 7), clock)
            days = ",".join(str(day) for day in sorted((day + 1) % 7 for day in weekdays))
            days = "1-5" if weekdays == frozenset(range(5)) else days
            return Cron(f"{at} * * {days}") if count == 1 else "unclear"
        return "unclear"

    def _every(self, count: int, unit: str, days: range, clock: time) -> Rule | Why:
        for ahead in days:
            start = datetime.combine(self._today + timedelta(days=ahead), clock)
            if moment_of(start, self._zone) > self._now:
                return Every(count, unit, start)  # type: ignore[arg-type]
        return "past"

    def _counted_from(self, count: int, day: int, clock: time, month: int = 0) -> Rule | Why:
        """Return the rule of a day of months, or of one month of the years, from a month that has the day.

        So its first occurrence is found as the next ones are: on the last day of a shorter month.
        """
        ahead, step = (12, 12 * count) if month else (1, count)
        at = self._today.year * 12 + (month or self._today.month) - 1
        while moment_of(datetime.combine(_day_in(at, day), clock), self._zone) <= self._now:
            at += ahead
        start = next(
            (one for one in range(at, at - 50 * step, -step) if _day_in(one, day).day == day), at
        )
        unit: Literal["years", "months"] = "years" if month else "months"
        return Every(count, unit, datetime.combine(_day_in(start, day), clock))

    def _once(self, day: date, clock: time) -> Rule | Why:
        moment = moment_of(datetime.combine(day, clock), self._zone)
        return Once(moment) if moment > self._now else "past"

    def _time(self, *, today: bool = False) -> time | None:
        """Return the time of day; None if its words contradict each other."""
        phrase = self._phrase
        if phrase.clock is None:
            return _NINE if phrase.part is None else time(phrase.part)
        hour, minute = phrase.clock
        if phrase.part is not None:
            return _in_part(hour, minute, phrase.part, face=phrase.face)
        if phrase.face and phrase.kinds - {"clock", "zone"} and phrase.days != 0:
            hour += 12 if hour < 6 else 0
        elif phrase.face and today and time(hour, minute) <= self._local.time():
            hour += 12
        return time(hour, minute)


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
