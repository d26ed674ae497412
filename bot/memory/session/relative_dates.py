"""Resolve relative dates in a question: "last month", asked in November, is October. Pure.

Rule 1: the result is date words for a search; they add weight, and exclude nothing.
Rule 2: dates relative to events ("two weeks before the trip") are not resolved.
"""

from __future__ import annotations

import re
from calendar import month_name
from datetime import date, timedelta

from bot.core.patterns import LazyPattern

_DAYS = {
    "yesterday": 1,
    "gestern": 1,
    "hier": 1,
    "ayer": 1,
    "day before yesterday": 2,
    "vorgestern": 2,
    "anteayer": 2,
}
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_WORDS = LazyPattern(
    r"\b(?:(?P<day>" + "|".join(sorted(_DAYS, key=len, reverse=True)) + r")"
    r"|(?:last|letzten|vorigen) (?P<month>month|monat)|(?:last|letztes|voriges) (?P<year>year|jahr)"
    r"|last (?P<weekday>" + "|".join(_WEEKDAYS) + r")"
    r"|last (?P<season>spring|summer|autumn|fall|winter)"
    r"|(?P<count>\d{1,3}|an?|two|three|four|five|six) (?P<unit>day|week|month|year)s? ago)\b",
    # ASCII only: with Unicode case folding, letters of other scripts would match.
    re.IGNORECASE | re.ASCII,
)  # fmt: skip
_COUNTS = {"a": 1, "an": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_ENDS = {"spring": 6, "summer": 9, "autumn": 12, "fall": 12, "winter": 3}
"""First month in which this year's season counts as the last one."""


def resolve_relative_dates(text: str, today: date) -> str:
    """Return the dates in a question, as date words; empty if there are none.

    Args:
        text: The question.
        today: Date of the question.
    """
    found = (_meant(hit, today) for hit in _WORDS.finditer(text))
    return " ".join(dict.fromkeys(one for one in found if one))


def _meant(hit: re.Match[str], today: date) -> str:
    if hit["day"]:
        return _day(today - timedelta(days=_DAYS[hit["day"].lower()]))
    if hit["month"]:
        return _month(today.year, today.month - 1)
    if hit["year"]:
        return str(today.year - 1)
    if hit["weekday"]:
        back = (today.weekday() - _WEEKDAYS.index(hit["weekday"].lower())) % 7 or 7
        return _day(today - timedelta(days=back))
    if hit["season"]:
        # The season's name is in the question and stands for its months.
        return str(today.year - (today.month < _ENDS[hit["season"].lower()]))
    return _ago(hit, today)


def _ago(hit: re.Match[str], today: date) -> str:
    count = _COUNTS.get(hit["count"].lower()) or int(hit["count"])
    unit = hit["unit"].lower()
    if unit in ("day", "week"):
        return _day(today - timedelta(days=count * (7 if unit == "week" else 1)))
    if unit == "month":
        return _month(today.year, today.month - count)
    return str(today.year - count)


def _day(day: date) -> str:
    return f"{day.day} {month_name[day.month]} {day.year}"


def _month(year: int, month: int) -> str:
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    return f"{month_name[month]} {year}"
