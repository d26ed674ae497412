"""What a phrase of time means at a moment in a zone. Pure.

Rule 1: a time of day without a day is its next occurrence; a day without a time of day is at nine.
Rule 2: an hour up to eleven without "am" or "pm" is one of a clock's face. Without a day, or today, it is the next of both;
        on another day one to five are in the afternoon, and the others in the morning.
Rule 3: all that a phrase says of a day must hold for it; nothing is left out to find one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal

from bot.agent.schedules.times.phrases import SIZES, TimePhrase
from bot.core.errors import InvalidRecurrence
from bot.core.recurrence import (
    Cron,
    Every,
    Once,
    Rule,
    Unit,
    add_months,
    moment_of,
    next_occurrence,
)

Why = Literal["", "unclear", "two_days", "no_day", "past"]
_COUNTED = {"days": set[str](), "weeks": {"weekday"}, "months": {"month_day"}, "years": {"date"}}
"""What a repetition in each unit of the calendar says besides its time of day."""
_AHEAD = 366 * 9
"""Days in which a day is looked for: 29 February may be eight years away."""
_HOURS = {
    9: (range(0), range(12)), 12: (range(6), range(10, 16)), 15: (range(12), range(12, 20)),
    19: (range(12), range(15, 24)), 21: (range(6, 12), {*range(24)} - {12}),
}  # fmt: skip
"""By the usual hour of a part of the day: hours of a clock's face that are after noon in it, and hours of 24 that are in it."""


def rule_of(phrase: TimePhrase, now: datetime, zone: tzinfo) -> Rule | Why:
    """Return when a phrase is, or why it is at no time."""
    meaning = _Meaning(phrase, now.astimezone(UTC), zone, now.astimezone(zone).replace(tzinfo=None))
    try:
        rule = phrase.why or meaning.rule()
    except (OverflowError, ValueError, InvalidRecurrence):  # a day that the calendar does not have
        return "no_day"
    return rule if isinstance(rule, str) or next_occurrence(rule, now, zone) else "past"


@dataclass(frozen=True, slots=True)
class _Meaning:
    phrase: TimePhrase
    now: datetime
    zone: tzinfo
    local: datetime

    def rule(self) -> Rule | Why:
        """Return when the phrase is, or why it is at no time; a day that is none is a ValueError."""
        phrase = self.phrase
        if phrase.distance is not None:
            return self._after_distance(*phrase.distance)
        if phrase.every is not None:
            count, unit = phrase.every
            if not (seconds := SIZES[unit][2]):
                return self._repetition(count, unit)
            start = self.now + timedelta(seconds=count * seconds)
            return Every(count, unit, start) if phrase.kinds <= {"every", "zone"} else "unclear"
        if not phrase.kinds - {"zone"} or len(phrase.weekdays or "1") > 1:
            return "unclear"  # "on the weekend"
        first = self._first()
        return first if isinstance(first, str) else Once(moment_of(first, self.zone))

    def _after_distance(self, months: int, days: int, seconds: float) -> Rule | Why:
        phrase, local = self.phrase, self.local
        timed = phrase.kinds & {"clock", "part"}
        beside = phrase.kinds - {"distance", "clock", "part", "zone"} and phrase.days != 0
        if beside or (seconds and (timed or months or days)):
            return "unclear"
        if not months and not days:
            return Once(self.now + timedelta(seconds=seconds)) if seconds > 0 else "unclear"
        clock = self._time() if timed else local.time()
        day = add_months(local, months) + timedelta(days=days)
        if clock is None:
            return "unclear"
        return Once(moment_of(datetime.combine(day, clock), self.zone))

    def _first(self) -> datetime | Why:
        """Return the first wall time to come of which all holds that the phrase says, or why there is none."""
        phrase, today = self.phrase, self.local.date()
        year, month, number = phrase.date or (None, 1, 1)
        sure = phrase.days is not None or year is not None
        ahead = (today + timedelta(days=days) for days in range(_AHEAD))
        for day in [date(year, month, number)] if year else ahead:
            if not self._is_named(day):
                continue
            if phrase.weekdays is None or day.weekday() in phrase.weekdays:
                if (clock := self._time(today=day == today)) is None:
                    return "unclear"
                if moment_of(wall := datetime.combine(day, clock), self.zone) > self.now:
                    return wall
                if sure:
                    return "past"
            elif sure or phrase.date is not None:
                return "no_day"  # "on Monday 3 March", which is a Tuesday
        return "no_day"

    def _is_named(self, day: date) -> bool:
        """Return whether a day is what the phrase says of it, but for its weekday."""
        phrase, today = self.phrase, self.local.date()
        last = phrase.month_day == -1 and (day + timedelta(days=1)).day == 1
        ahead = (day - today).days
        return (
            (phrase.date is None or phrase.date[1:] == (day.month, day.day))
            and (phrase.month_day in (None, day.day) or last)
            and phrase.days in (None, ahead)
            and (not phrase.next_week or 7 <= ahead + today.weekday() < 14)
        )

    def _repetition(self, count: int, unit: Unit) -> Rule | Why:
        phrase, kinds = self.phrase, self.phrase.kinds - {"every", "clock", "part", "zone"}
        if unit == "days" and kinds == {"weekday"} and (count == 1 or count % 7 == 0):
            count, unit = max(count // 7, 1), "weeks"  # "every 14 days on Friday"
        days = sorted((day + 1) % 7 for day in phrase.weekdays or ())
        first = "unclear" if phrase.next_week else self._first()
        if isinstance(first, str):
            return first
        if kinds != _COUNTED[unit] or (phrase.date and phrase.date[0]):
            return "unclear"
        if phrase.month_day == -1:
            cron = "L * *"
        elif len(days) > 1:
            cron = "* * 1-5" if days == [1, 2, 3, 4, 5] else f"* * {','.join(map(str, days))}"
        else:
            return Every(count, unit, self._start(first, count * SIZES[unit][0]))
        return Cron(f"{first.minute} {first.hour} {cron}") if count == 1 else "unclear"

    def _start(self, first: datetime, step: int) -> datetime:
        """Return a start from which shorter months before the first one that has its day are not left out."""
        if not step or moment_of(add_months(first, -step), self.zone) <= self.now:
            return first
        earlier = (add_months(first, -step * at) for at in range(2, 12 * first.year // step))
        return next((wall for wall in earlier if wall.day == first.day), first)

    def _time(self, *, today: bool = False) -> time | None:
        """Return the time of day; None if its words contradict each other."""
        phrase = self.phrase
        if phrase.clock is None:
            return time(phrase.part or 9)
        hour, minute = phrase.clock
        if phrase.part is not None:
            after_noon, fits = _HOURS[phrase.part]
            if not phrase.face and hour not in fits:
                return None
            hour += 12 if phrase.face and hour in after_noon else 0
        elif phrase.face and phrase.kinds - {"clock", "zone"} and phrase.days != 0:
            hour += 12 if hour < 6 else 0
        elif phrase.face and today and time(hour, minute) <= self.local.time():
            hour += 12
        return time(hour, minute)
