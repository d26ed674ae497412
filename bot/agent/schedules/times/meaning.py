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

from bot.agent.schedules.times.phrases import TimePhrase
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
_LEAP_YEAR = 2000
_ELAPSED = {"minutes": timedelta(minutes=1), "hours": timedelta(hours=1)}
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
        if phrase.date is not None:
            date(phrase.date[0] or _LEAP_YEAR, *phrase.date[1:])
        if phrase.month_day is not None and phrase.month_day != -1:
            date(_LEAP_YEAR, 1, phrase.month_day)
        if phrase.distance is not None:
            return self._after_distance(*phrase.distance)
        if phrase.every is None:
            return self._one_day()
        count, unit = phrase.every
        if (step := _ELAPSED.get(unit)) is None:
            return self._repetition(count, unit)
        alone = phrase.kinds <= {"every", "zone"}
        return Every(count, unit, self.now + count * step) if alone else "unclear"

    def _after_distance(self, months: int, days: int, seconds: float) -> Rule | Why:
        phrase, local = self.phrase, self.local
        timed = phrase.kinds & {"clock", "part"}
        beside = phrase.kinds - {"distance", "clock", "part", "zone"} and phrase.days != 0
        if beside or (seconds and (timed or months or days)):
            return "unclear"
        if not months and not days:
            return Once(self.now + timedelta(seconds=seconds)) if seconds > 0 else "unclear"
        wall = add_months(local, months) + timedelta(days=days)
        return self._once(wall, self._time() if timed else local.time())

    def _one_day(self) -> Rule | Why:
        phrase, today = self.phrase, self.local.date()
        if not phrase.kinds - {"zone"} or len(phrase.weekdays or "1") > 1:
            return "unclear"  # "on the weekend"
        sure = phrase.days is not None or (phrase.date or (None,))[0] is not None
        for day in (today + timedelta(days=ahead) for ahead in range(_AHEAD)):
            if not self._is_named(day):
                continue
            if phrase.weekdays is None or day.weekday() in phrase.weekdays:
                once = self._once(day, self._time(today=day == today))
                if sure or once != "past":
                    return once
            elif sure or phrase.date is not None:
                return "no_day"  # "on Monday 3 March", which is a Tuesday
        return "past" if sure else "no_day"

    def _is_named(self, day: date) -> bool:
        """Return whether a day is what the phrase says of it, but for its weekday."""
        phrase, today = self.phrase, self.local.date()
        year, month, number = phrase.date or (None, day.month, day.day)
        last = phrase.month_day == -1 and (day + timedelta(days=1)).day == 1
        ahead = (day - today).days
        return (
            (year or day.year, month, number) == (day.year, day.month, day.day)
            and (phrase.month_day in (None, day.day) or last)
            and phrase.days in (None, ahead)
            and (not phrase.next_week or 7 <= ahead + today.weekday() < 14)
        )

    def _repetition(self, count: int, unit: Unit) -> Rule | Why:
        phrase, clock, today = self.phrase, self._time(), self.local.date()
        if clock is None or phrase.next_week:
            return "unclear"
        kinds = sorted(phrase.kinds - {"every", "clock", "part", "zone"})
        if unit == "days" and kinds == ["weekday"] and (count == 1 or count % 7 == 0):
            count, unit = max(count // 7, 1), "weeks"  # "every 14 days on Friday"
        days = sorted((day + 1) % 7 for day in phrase.weekdays or ())
        match unit, kinds:
            case ("days", []) | ("weeks", ["weekday"]) if len(days) < 2:
                first = today + timedelta(days=(days[0] - today.isoweekday()) % 7 if days else 0)
                start = datetime.combine(first, clock)
                if moment_of(start, self.zone) <= self.now:
                    start += timedelta(days=7 if days else 1)
                return Every(count, unit, start)
            case "years", ["date"] if phrase.date and not phrase.date[0]:
                return self._counted_from(count, 12, phrase.date[2], clock, phrase.date[1])
            case "months", ["month_day"] if phrase.month_day != -1:
                return self._counted_from(count, 1, phrase.month_day or 1, clock, today.month)
            case "weeks", ["weekday"]:
                cron = "* * 1-5" if days == [1, 2, 3, 4, 5] else f"* * {','.join(map(str, days))}"
            case "months", ["nth", "weekday"]:
                cron = f"* * {days[0]}" + ("L" if phrase.nth == -1 else f"#{phrase.nth}")
            case "months", ["month_day"]:
                cron = "L * *"
            case _:
                return "unclear"
        return Cron(f"{clock.minute} {clock.hour} {cron}") if count == 1 else "unclear"

    def _counted_from(self, count: int, each: int, day: int, clock: time, month: int) -> Rule:
        """Return the rule of a day of months, or of one month of the years, from a month that has the day.

        So its first occurrence is found as the next ones are: on the last day of a shorter month.
        """
        january = datetime.combine(date(self.local.year, 1, day), clock)
        at = month - 1
        while moment_of(add_months(january, at), self.zone) <= self.now:
            at += each
        earlier = range(at, max(at - 50 * count * each, -12 * 1000), -count * each)
        walls = (add_months(january, one) for one in earlier)
        start = next((wall for wall in walls if wall.day == day), add_months(january, at))
        return Every(count, "years" if each == 12 else "months", start)

    def _once(self, day: date, clock: time | None) -> Rule | Why:
        if clock is None:
            return "unclear"
        moment = moment_of(datetime.combine(day, clock), self.zone)
        return Once(moment) if moment > self.now else "past"

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
