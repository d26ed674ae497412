"""Simple sums: how old somebody is, how long until a day or since, amounts together. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from bot.language.terms import stem

_MONTHS = (
    "january february march april may june july august september october november december".split()
)
MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if len(name) > 3 else name for name in _MONTHS)
_DAY_FIRST = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th|\.)? (?:of )?({MONTH})\b(?:,? (\d{{4}}))?", re.IGNORECASE
)
_MONTH_FIRST = re.compile(
    rf"\b({MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d)(?:,? (\d{{4}}))?", re.IGNORECASE
)
_MONTH_YEAR = re.compile(rf"\b({MONTH}),? (\d{{4}})\b", re.IGNORECASE)
_ISO = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")
_YEAR = re.compile(r"\b(?:born|since|in|from) (?:\w+ ){0,2}?((?:19|20)\d\d)\b", re.IGNORECASE)
_DATES = (
    (_ISO, (1, 2, 3)),
    (_DAY_FIRST, (3, 2, 1)),
    (_MONTH_FIRST, (3, 1, 2)),
    (_MONTH_YEAR, (2, 1, 0)),
    (_YEAR, (1, 0, 0)),
)
"""Patterns, with the groups of year, month and day."""
_AMOUNT = re.compile(
    r"(?<![\d.,:€£$])(?P<n>\d{1,9}(?:[.,]\d{1,2})?) ?(?P<unit>[^\W\d_]{1,20}|[€£$%])(?![:\d])"
    r"|(?P<sign>[€£$]) ?(?P<sum>\d{1,9}(?:[.,]\d{1,2})?)(?![.,:]?\d)"
)
_TOGETHER = re.compile(
    r"\bhow (?:much|many)\b.{0,200}\b(?:together|altogether|in total|in all|combined)\b",
    re.IGNORECASE,
)
_LEFT = re.compile(
    r"\bhow (?:much|many)\b.{0,100}\b(?:still owe|left over|more .{0,40}need)\b", re.IGNORECASE
)
_HOW_OLD = re.compile(r"\bhow old\b", re.IGNORECASE)
_YEARS_AGO = re.compile(r"\bhow many years (?:ago|is it|has it)\b", re.IGNORECASE)
_AGO = re.compile(
    r"\bhow (?:many (days|weeks)\b.{0,60}\b(?:ago|since)\b|long ago\b)", re.IGNORECASE
)
_UNTIL = re.compile(
    r"\bhow (?:many (days|weeks)\b.{0,60}\b(?:until|till|to|before|left|remain)|long\b.{0,60}\b(?:until|till))\b",
    re.IGNORECASE,
)
_BORN = re.compile(r"\bborn\b|\bdate of birth\b", re.IGNORECASE)
_TURNED = re.compile(r"\b(\d{1,3})(?:st|nd|rd|th) birthday\b|\bturned (\d{1,3})\b", re.IGNORECASE)
_FOR_HOW_LONG = re.compile(r"\bhow (?:many years|long) (?:have|has)\b", re.IGNORECASE)
_BEGAN = re.compile(
    r"\b(?:since|moved|started|began|joined|married|met|bought|came|got together)\b", re.IGNORECASE
)
_ENDS = re.compile(r"\b(?:born|until|till|expires?|ends?|left|stopped)\b", re.IGNORECASE)

_Found = tuple[int, int, int]
"""Year, month and day; 0 for what is not told."""


def calculate_answer(question: str, known: str, today: date, said: date | None = None) -> str:
    """Return what a question that asks for a sum comes to by what is known; empty where that is not certain.

    Args:
        question: What is asked.
        known: A sentence that has one date.
        today: The day of the question.
        said: The day on which it was said: a day without a year is the next one after it.
    """
    dates = _dates(known)
    if len(dates) != 1:
        return ""
    [told] = dates
    if _HOW_OLD.search(question):
        turned, born = _TURNED.search(known), _BORN.search(known)
        if bool(turned) == bool(born):
            return ""
        return _years(told, today, int(turned[1] or turned[2]) if turned else 0)
    if _FOR_HOW_LONG.search(question):
        began = _BEGAN.search(known) and not _ENDS.search(known)
        return _years(told, today, 0) if began else ""
    if _YEARS_AGO.search(question):
        return _years(told, today, 0)
    until, ago = _UNTIL.search(question), _AGO.search(question)
    asked = until or ago
    day = _next(told, said or today) if until else _last(told, said or today)
    if asked is None or day is None or (day < today if until else day > today):
        return ""
    days, way = abs((day - today).days), "until" if until else "since"
    if (asked[1] or "").lower() == "weeks":
        return f"{days / 7:.1f} weeks, {way} {day.isoformat()}.".replace(".0 ", " ")
    return f"{days} day{'s' * (days != 1)}, {way} {day.isoformat()}."


def asks_total(question: str) -> bool:
    """Say whether a question asks for the sum of several amounts."""
    return bool(_TOGETHER.search(question))


def asks_sum(question: str) -> bool:
    """Say whether a question asks for what has to be reckoned from amounts, which no one statement says."""
    return asks_total(question) or bool(_LEFT.search(question))


def sum_amounts(known: Sequence[str]) -> str:
    """Return the sum of amounts of one unit, one a sentence; empty where they are not that."""
    found = [
        [(hit["n"] or hit["sum"], hit["unit"] or hit["sign"]) for hit in _AMOUNT.finditer(one)]
        for one in known
    ]
    units = (
        set.intersection(*({stem(unit.lower()) for _, unit in one} for one in found))
        if found
        else set()
    )
    if len(found) < 2 or len(units) != 1:
        return ""
    [unit] = units
    amounts = [[(n, name) for n, name in one if stem(name.lower()) == unit] for one in found]
    if any(len(one) != 1 for one in amounts):
        return ""
    parts = [Decimal(one[0][0].replace(",", ".")) for one in amounts]
    return f"{sum(parts):f} {amounts[0][0][1]}, which is {' + '.join(f'{one:f}' for one in parts)}."


def _years(told: _Found, today: date, before: int) -> str:
    """Return the years since a day, and those before; empty where it has no year or is to come."""
    year, month, day = told
    if not year or (year, month, day) > (today.year, today.month, today.day):
        return ""
    years = before + today.year - year
    if not month or (month == today.month and not day):
        return f"{max(0, years - 1)} or {years}."
    return f"{years - ((today.month, today.day) < (month, day))}."


def _dates(text: str) -> set[_Found]:
    """Return the dates that a text names."""
    found = {
        (_number(hit, year), _number(hit, month), _number(hit, day))
        for pattern, (year, month, day) in _DATES
        for hit in pattern.finditer(text)
    }
    # "May 2017" stands in "3 May 2017", too.
    return {
        one for one in found if not any(one != other and _within(one, other) for other in found)
    }


def _within(one: _Found, other: _Found) -> bool:
    return all(mine in (0, theirs) for mine, theirs in zip(one, other, strict=True))


def _next(told: _Found, since: date) -> date | None:
    """Return a day; without a year, the next one."""
    year, month, day = told
    try:
        if year:
            return date(year, month, day)
        named = date(since.year, month, day)
        return named if named >= since else date(since.year + 1, month, day)
    except ValueError:
        return None


def _last(told: _Found, until: date) -> date | None:
    """Return a day; without a year, the last one."""
    year, month, day = told
    try:
        if year:
            return date(year, month, day)
        named = date(until.year, month, day)
        return named if named <= until else date(until.year - 1, month, day)
    except ValueError:
        return None


def _number(hit: re.Match[str], group: int) -> int:
    """Return the number of a month, a day or a year; 0 where it is not told."""
    told = hit[group] if group else None
    if not told:
        return 0
    if told.isdecimal():
        return int(told)
    return next((at for at, name in enumerate(_MONTHS, 1) if name[:3] == told[:3].lower()), 0)
