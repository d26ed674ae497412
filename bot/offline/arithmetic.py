"""Calculate ages, days or weeks until or since a date, and totals of amounts. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from bot.core.i18n import _, format_date, format_number, ngettext
from bot.core.patterns import LazyPattern
from bot.language.fact_terms import fact_term

_MONTHS = (
    "january february march april may june july august september october november december".split()
)
MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if len(name) > 3 else name for name in _MONTHS)
_DAY_FIRST = LazyPattern(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th|\.)? (?:of )?({MONTH})\b(?:,? (\d{{4}}))?", re.IGNORECASE
)
_MONTH_FIRST = LazyPattern(
    rf"\b({MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d)(?:,? (\d{{4}}))?", re.IGNORECASE
)
_MONTH_YEAR = LazyPattern(rf"\b({MONTH}),? (\d{{4}})\b", re.IGNORECASE)
_ISO = LazyPattern(r"\b(\d{4})-(\d\d)-(\d\d)\b")
_YEAR = LazyPattern(r"\b(?:born|since|in|from) (?:\w+ ){0,2}?((?:19|20)\d\d)\b", re.IGNORECASE)
_DATES = (
    (_ISO, (1, 2, 3)),
    (_DAY_FIRST, (3, 2, 1)),
    (_MONTH_FIRST, (3, 1, 2)),
    (_MONTH_YEAR, (2, 1, 0)),
    (_YEAR, (1, 0, 0)),
)
"""Date patterns, each with its groups of year, month and day; 0 for none."""
_AMOUNT = LazyPattern(
    r"(?<![\d.,:€£$])(?P<n>\d{1,9}(?:[.,]\d{1,2})?) ?(?P<unit>[^\W\d_]{1,20}|[€£$%])(?![:\d])"
    r"|(?P<sign>[€£$]) ?(?P<sum>\d{1,9}(?:[.,]\d{1,2})?)(?![.,:]?\d)"
)
_TOGETHER = LazyPattern(
    r"\bhow (?:much|many)\b.{0,200}\b(?:together|altogether|in total|in all|combined)\b",
    re.IGNORECASE,
)
_LEFT = LazyPattern(
    r"\bhow (?:much|many)\b.{0,100}\b(?:still owe|left over|more .{0,40}need)\b", re.IGNORECASE
)
_HOW_OLD = LazyPattern(r"\bhow old\b", re.IGNORECASE)
_YEARS_AGO = LazyPattern(r"\bhow many years (?:ago|is it|has it)\b", re.IGNORECASE)
_AGO = LazyPattern(
    r"\bhow (?:many (days|weeks)\b.{0,60}\b(?:ago|since)\b|long ago\b)", re.IGNORECASE
)
_UNTIL = LazyPattern(
    r"\bhow (?:many (days|weeks)\b.{0,60}\b(?:until|till|to|before|left|remain)|long\b.{0,60}\b(?:until|till))\b",
    re.IGNORECASE,
)
_BORN = LazyPattern(r"\bborn\b|\bdate of birth\b", re.IGNORECASE)
_TURNED = LazyPattern(r"\b(\d{1,3})(?:st|nd|rd|th) birthday\b|\bturned (\d{1,3})\b", re.IGNORECASE)
_FOR_HOW_LONG = LazyPattern(r"\bhow (?:many years|long) (?:have|has)\b", re.IGNORECASE)
_BEGAN = LazyPattern(
    r"\b(?:since|moved|started|began|joined|married|met|bought|came|got together)\b", re.IGNORECASE
)
_ENDS = LazyPattern(r"\b(?:born|until|till|expires?|ends?|left|stopped)\b", re.IGNORECASE)

_Found = tuple[int, int, int]
"""Year, month and day; 0 if unknown."""


def calculate_answer(question: str, known: str, today: date, said: date | None = None) -> str:
    """Return the answer to a question for an age or a span of time; empty if it is not certain.

    Args:
        question: The question.
        known: A fact with exactly one date.
        today: Day of the question.
        said: Day of the fact; a date without a year is the next one after it.
    """
    dates = _dates(known)
    if len(dates) != 1:
        return ""
    [known_date] = dates
    if _HOW_OLD.search(question):
        turned, born = _TURNED.search(known), _BORN.search(known)
        if bool(turned) == bool(born):
            return ""
        return _years(known_date, today, int(turned[1] or turned[2]) if turned else 0)
    if _FOR_HOW_LONG.search(question):
        began = _BEGAN.search(known) and not _ENDS.search(known)
        return _years(known_date, today, 0) if began else ""
    if _YEARS_AGO.search(question):
        return _years(known_date, today, 0)
    until, ago = _UNTIL.search(question), _AGO.search(question)
    asked = until or ago
    day = _next(known_date, said or today) if until else _last(known_date, said or today)
    if asked is None or day is None or (day < today if until else day > today):
        return ""
    days, shown = abs((day - today).days), format_date(day)
    if (asked[1] or "").lower() == "weeks":
        number = format_number(round(days / 7, 1) if days % 7 else days // 7)
        if until:
            return _("{number} weeks, until {date}.", number=number, date=shown)
        return _("{number} weeks, since {date}.", number=number, date=shown)
    if until:
        return ngettext("{n} day, until {date}.", "{n} days, until {date}.", days, date=shown)
    return ngettext("{n} day, since {date}.", "{n} days, since {date}.", days, date=shown)


def asks_total(question: str) -> bool:
    """Return whether a question asks for the total of several amounts."""
    return bool(_TOGETHER.search(question))


def asks_sum(question: str) -> bool:
    """Return whether a question asks for a total or a remainder, which no one statement gives."""
    return asks_total(question) or bool(_LEFT.search(question))


def sum_amounts(known: Sequence[str]) -> str:
    """Return the sum of the amounts in two or more facts.

    Empty unless the facts share exactly one unit and each has one amount of it.
    """
    amounts_by_fact = [
        [(hit["n"] or hit["sum"], hit["unit"] or hit["sign"]) for hit in _AMOUNT.finditer(part)]
        for part in known
    ]
    units = (
        set.intersection(
            *({fact_term(unit.lower()) for _, unit in part} for part in amounts_by_fact)
        )
        if amounts_by_fact
        else set()
    )
    if len(amounts_by_fact) < 2 or len(units) != 1:
        return ""
    [unit] = units
    amounts = [
        [(n, name) for n, name in part if fact_term(name.lower()) == unit]
        for part in amounts_by_fact
    ]
    if any(len(part) != 1 for part in amounts):
        return ""
    parts = [Decimal(part[0][0].replace(",", ".")) for part in amounts]
    return _(
        "{sum} {unit}, which is {parts}.",
        sum=f"{sum(parts):f}",
        unit=amounts[0][0][1],
        parts=" + ".join(f"{part:f}" for part in parts),
    )


def _years(since: _Found, today: date, before: int) -> str:
    """Return the years since a date plus ``before``; empty without a year or for a future date."""
    year, month, day = since
    if not year or (year, month, day) > (today.year, today.month, today.day):
        return ""
    years = before + today.year - year
    if not month or (month == today.month and not day):
        return _("{first} or {second}.", first=max(0, years - 1), second=years)
    return f"{years - ((today.month, today.day) < (month, day))}."


def _dates(text: str) -> set[_Found]:
    """Return the dates in a text, without those that are part of another."""
    dates = {
        (_number(hit, year), _number(hit, month), _number(hit, day))
        for pattern, (year, month, day) in _DATES
        for hit in pattern.finditer(text)
    }
    # "3 May 2017" also matches as "May 2017".
    return {
        shorter
        for shorter in dates
        if not any(shorter != longer and _within(shorter, longer) for longer in dates)
    }


def _within(shorter: _Found, longer: _Found) -> bool:
    return all(part in (0, whole) for part, whole in zip(shorter, longer, strict=True))


def _next(known_date: _Found, since: date) -> date | None:
    """Return a date; without a year, the next such day; None if it is invalid."""
    year, month, day = known_date
    try:
        if year:
            return date(year, month, day)
        named = date(since.year, month, day)
        return named if named >= since else date(since.year + 1, month, day)
    except ValueError:
        return None


def _last(known_date: _Found, until: date) -> date | None:
    """Return a date; without a year, the last such day; None if it is invalid."""
    year, month, day = known_date
    try:
        if year:
            return date(year, month, day)
        named = date(until.year, month, day)
        return named if named <= until else date(until.year - 1, month, day)
    except ValueError:
        return None


def _number(hit: re.Match[str], group: int) -> int:
    """Return a year, month or day as a number; 0 if the pattern has none."""
    written = hit[group] if group else None
    if not written:
        return 0
    if written.isdecimal():
        return int(written)
    return next((at for at, name in enumerate(_MONTHS, 1) if name[:3] == written[:3].lower()), 0)
