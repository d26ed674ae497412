"""Simple sums with dates: how old somebody is, how long until a day. Pure."""

from __future__ import annotations

import re
from datetime import date

_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if len(name) > 3 else name for name in _MONTHS)
_DAY_FIRST = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th|\.)? (?:of )?({_MONTH})\b(?:,? (\d{{4}}))?", re.IGNORECASE
)
_MONTH_FIRST = re.compile(
    rf"\b({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d)(?:,? (\d{{4}}))?", re.IGNORECASE
)
_MONTH_YEAR = re.compile(rf"\b({_MONTH}),? (\d{{4}})\b", re.IGNORECASE)
_ISO = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")
_YEAR = re.compile(r"\b(?:born|since) (?:\w+ ){0,2}?(\d{4})\b", re.IGNORECASE)
_HOW_OLD = re.compile(r"\bhow old\b", re.IGNORECASE)
_UNTIL = re.compile(
    r"\bhow (?:many (days|weeks)|long)\b.{0,60}\b(?:until|till|to|before)\b", re.IGNORECASE
)
_BORN = re.compile(r"\bborn\b|\bdate of birth\b", re.IGNORECASE)
_TURNED = re.compile(r"\b(\d{1,3})(?:st|nd|rd|th) birthday\b|\bturned (\d{1,3})\b", re.IGNORECASE)
_FOR_HOW_LONG = re.compile(r"\bhow (?:many years|long) (?:have|has)\b", re.IGNORECASE)


def reckoned(question: str, known: str, today: date) -> str:
    """Return what a question that asks for a sum comes to by what is known; empty where it asks for none.

    Args:
        question: What is asked.
        known: A sentence that has a date.
        today: The day of the question.
    """
    if _HOW_OLD.search(question):
        turned = _TURNED.search(known)
        if turned or _BORN.search(known):
            return _years(known, today, int(turned[1] or turned[2]) if turned else 0)
    if _FOR_HOW_LONG.search(question):
        return _years(known, today, 0)
    asked = _UNTIL.search(question)
    if asked is None:
        return ""
    day = _day(known, today)
    if day is None or day < today:
        return ""
    days = (day - today).days
    if (asked[1] or "").lower() == "weeks":
        return f"{days / 7:.1f} weeks, until {day.isoformat()}.".replace(".0 ", " ")
    return f"{days} day{'s' * (days != 1)}, until {day.isoformat()}."


def _years(known: str, today: date, before: int) -> str:
    """Return the years since a day that a sentence names, and those before; empty without a day."""
    whole = next(
        (found for one in (_DAY_FIRST, _MONTH_FIRST) if (found := one.search(known))), None
    )
    if (whole and whole[3]) or _ISO.search(known):
        born = _day(known, today)
        if born is None or born > today:
            return ""
        years = today.year - born.year - ((today.month, today.day) < (born.month, born.day))
        return f"{before + years}."
    if month := _MONTH_YEAR.search(known):
        number, year = _number(month[1]), int(month[2])
        years = before + today.year - year - (today.month < number)
        return f"{years}." if number != today.month else f"{years - 1} or {years}."
    if year_only := _YEAR.search(known):
        years = before + today.year - int(year_only[1])
        return f"{years - 1} or {years}."
    return ""


def _day(known: str, today: date) -> date | None:
    """Return the day that a sentence names; without a year, the next one."""
    if iso := _ISO.search(known):
        year, month, day = map(int, iso.groups())
    elif first := _DAY_FIRST.search(known):
        year, month, day = int(first[3] or 0), _number(first[2]), int(first[1])
    elif second := _MONTH_FIRST.search(known):
        year, month, day = int(second[3] or 0), _number(second[1]), int(second[2])
    else:
        return None
    try:
        if year:
            return date(year, month, day)
        named = date(today.year, month, day)
        return named if named >= today else date(today.year + 1, month, day)
    except ValueError:
        return None


def _number(month: str) -> int:
    return next(at for at, name in enumerate(_MONTHS, 1) if name[:3] == month[:3].lower())
