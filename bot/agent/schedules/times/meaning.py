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
from bot.core.errors import InvalidRecurrence
from bot.core.recurrence import Cron, Every, Once, Rule, moment_of, next_occurrence

Why = Literal["", "unclear", "two_days", "no_day", "past"]
_NINE = time(9)
_LEAP_YEAR = 2000
_ELAPSED = {"minutes": timedelta(minutes=1), "hours": timedelta(hours=1)}
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
    except (OverflowError, ValueError, InvalidRecurrence):  # a day that the calendar does not have
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
        phrase, local = self._phrase, self._local
        months, days, seconds = phrase.distance or (0, 0, 0)
        timed = phrase.kinds & {"clock", "part"}
        beside = phrase.kinds - {"distance", "clock", "part", "zone"} and phrase.days != 0
        if beside or (seconds and (timed or months or days)):
            return "unclear"
        if not months and not days:
            return Once(self._now + timedelta(seconds=seconds)) if seconds > 0 else "unclear"
        day = _day_in(local.year * 12 + local.month - 1 + months, local.day) + timedelta(days=days)
        return self._once(day, self._time() if timed else local.time())

    def one_day(self) -> Rule | Why:
        phrase = self._phrase
        if not phrase.kinds - {"zone"} or len(phrase.weekdays or "1") > 1 or self._time() is None:
            return "unclear"  # "on the weekend"
        sure = phrase.days is not None or (phrase.date or (None,))[0] is not None
        why: Why = "past" if sure else "no_day"
        for day in (self._today + timedelta(days=ahead) for ahead in range(_AHEAD)):
            if not self._is_named(day):
                continue
            if phrase.weekdays is None or day.weekday() in phrase.weekdays:
                once = self._once(day, self._time(today=day == self._today))
                if sure or not isinstance(once, str):
                    return once
                why = "past"
            elif sure or phrase.date is not None:
                return "no_day"  # "on Monday 3 March", which is a Tuesday
        return why

    def _is_named(self, day: date) -> bool:
        """Return whether a day is what the phrase says of it, but for its weekday."""
        phrase = self._phrase
        year, month, number = phrase.date or (None, day.month, day.day)
        last = phrase.month_day == -1 and (day + timedelta(days=1)).day == 1
        ahead = (day - self._today).days
        return (
            (year or day.year, month, number) == (day.year, day.month, day.day)
            and (phrase.month_day in (None, day.day) or last)
            and phrase.days in (None, ahead)
            and (not phrase.next_week or 7 <= ahead + self._today.weekday() < 14)
        )

    def repetition(self, count: int, unit: str) -> Rule | Why:
        phrase, clock = self._phrase, self._time()
        if unit in _ELAPSED:
            start = self._now + count * _ELAPSED[unit]
            alone = phrase.kinds <= {"every", "zone"}
            return Every(count, unit, start) if alone else "unclear"  # type: ignore[arg-type]
        if clock is None or phrase.next_week:
            return "unclear"
        kinds = phrase.kinds - {"every", "clock", "part", "zone"}
        if unit == "days" and kinds == {"weekday"} and (count == 1 or count % 7 == 0):
            count, unit = max(count // 7, 1), "weeks"  # "every 14 days on Friday"
        days = sorted((day + 1) % 7 for day in phrase.weekdays or ())
        match unit, sorted(kinds):
            case "days", []:
                return self._every(count, unit, range(2), clock)
            case "weeks", ["weekday"] if len(days) == 1:
                ahead = (days[0] - self._today.isoweekday()) % 7
                return self._every(count, unit, range(ahead, ahead + 8, 7), clock)
            case "years", ["date"] if phrase.date and not phrase.date[0]:
                return self._counted_from(count, 12, phrase.date[2], clock, phrase.date[1])
            case "months", ["month_day"] if phrase.month_day != -1:
                return self._counted_from(count, 1, phrase.month_day or 1, clock)
        cron = _cron_of(phrase, unit, sorted(kinds), days) if count == 1 else ""
        return Cron(f"{clock.minute} {clock.hour} {cron}") if cron else "unclear"

    def _every(self, count: int, unit: str, days: range, clock: time) -> Rule | Why:
        starts = (datetime.combine(self._today + timedelta(days=ahead), clock) for ahead in days)
        start = next(one for one in starts if moment_of(one, self._zone) > self._now)
        return Every(count, unit, start)  # type: ignore[arg-type]

    def _counted_from(self, count: int, each: int, day: int, clock: time, month: int = 0) -> Rule:
        """Return the rule of a day of months, or of one month of the years, from a month that has the day.

        So its first occurrence is found as the next ones are: on the last day of a shorter month.
        """
        at = self._today.year * 12 + (month or self._today.month) - 1
        while moment_of(datetime.combine(_day_in(at, day), clock), self._zone) <= self._now:
            at += each
        earlier = range(at, max(at - 50 * count * each, 12), -count * each)
        start = next((one for one in earlier if _day_in(one, day).day == day), at)
        unit: Literal["years", "months"] = "years" if month else "months"
        return Every(count, unit, datetime.combine(_day_in(start, day), clock))

    def _once(self, day: date, clock: time | None) -> Rule | Why:
        if clock is None:
            return "unclear"
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


def _cron_of(phrase: TimePhrase, unit: str, kinds: list[str], days: list[int]) -> str:
    """Return the days of a repetition as a cron expression has them; empty if it cannot."""
    if unit == "weeks" and kinds == ["weekday"]:
        return "* * 1-5" if days == [1, 2, 3, 4, 5] else f"* * {','.join(map(str, days))}"
    if unit == "months" and kinds == ["nth", "weekday"]:
        return f"* * {days[0]}" + ("L" if phrase.nth == -1 else f"#{phrase.nth}")
    return "L * *" if unit == "months" and kinds == ["month_day"] else ""


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
