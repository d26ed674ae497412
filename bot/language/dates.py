"""Resolve relative dates by the day of the message, and match partial dates. Pure.

Rule 1: "tomorrow" and "vor drei Tagen" are dates if the day of the message is known.
Rule 2: a date matches a stated one only if it is not more exact.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import product

from bot.core.patterns import LazyPattern
from bot.language.folding import UNSPACED, words
from bot.language.lexicon import WEEKDAYS
from bot.language.numerals import with_digits

_UNITS = {
    unit: kind
    for kind, forms in {
        "day": "day days tag tage tagen jour jours dia dias giorno giorni день дня дней 天",
        "week": "week weeks woche wochen semaine semaines semana semanas settimana settimane неделя недели неделю неделе недель",
        "month": "month months monat monate monaten mois mes meses mese mesi месяц месяца месяцев месяце",
        "year": "year years jahr jahre jahren an ans annee annees ano anos anno anni год года лет году",
        "summer": "summer winter spring autumn sommer herbst ete hiver verano invierno estate inverno verao",
        "weekend": "weekend wochenende week-end fim fin",
    }.items()
    for unit in forms.split()
}
_AGO = frozenset("ago vor hace fa ha назад since for seit depuis desde da уже earlier".split())
_AHEAD = frozenset("in dans en dentro tra fra em daqui через time".split())
_NEXT = tuple("next nachst prochain proxim prossim следующ viene vem coming kommend".split())
_LAST = tuple("last letzt dernier pasad scors passad ultim прошл vergangen past".split())
_THIS = tuple("this dies cett quest этот этом эту этой esta este current heuer".split())
_NEAR_DAYS = (
    (("today", "tonight", "heute", "aujourd'hui", "ce soir", "hoy", "esta noche", "oggi", "stasera", "hoje",
      "сегодня", "今天", "今日", "今晚", "오늘", "this morning", "this evening", "this afternoon", "ce matin", "cet apres-midi", "just now"), 0),
    (("tomorrow", "morgen", "demain", "manana", "domani", "amanha", "завтра", "明天", "明日", "내일"), 1),
    (("day after tomorrow", "ubermorgen", "apres-demain", "pasado manana", "dopodomani",
      "depois de amanha", "послезавтра", "后天", "後天", "明後日"), 2),
    (("yesterday", "last night", "gestern", "hier", "ayer", "anoche", "ieri", "ontem", "вчера", "昨天", "昨日", "어제"), -1),
    (("day before yesterday", "vorgestern", "avant-hier", "anteayer", "antier", "l'altro ieri",
      "anteontem", "позавчера", "前天", "一昨日"), -2),
)  # fmt: skip
_NEAR_DAY_PATTERNS = tuple(
    (
        LazyPattern(
            "|".join(w if UNSPACED.search(w) else rf"(?<!\w){re.escape(w)}(?!\w)" for w in forms)
        ),
        days,
    )
    for forms, days in _NEAR_DAYS
)
_SPANS_UNSPACED = (
    ("下周|下週|下星期|来週", "week", 1), ("上周|上週|上星期|先週", "week", -1), ("这周|本周|今週", "week", 0),
    ("下个月|下個月|来月", "month", 1), ("上个月|上個月|先月", "month", -1), ("这个月|今月", "month", 0),
    ("明年|来年", "year", 1), ("去年", "year", -1), ("今年", "year", 0), ("前年", "year", -2),
)  # fmt: skip
_COUNTED_UNSPACED = LazyPattern(r"(\d{1,4})(天|日|周|週間|个月|ヶ月|か月|年)(?:以?(前)|之?(后|後))")
_CJK_UNITS = dict(
    zip(
        "天 日 周 週間 个月 ヶ月 か月 年".split(),
        "day day week week month month month year".split(),
        strict=True,
    )
)


@dataclass(frozen=True, slots=True)
class PartialDate:
    """A date of which some parts may be unknown.

    Attributes:
        year: Four digits; None if unknown.
        month: 1 to 12; None if unknown.
        day: 1 to 31; None if unknown.
        weekday: 0 for Monday; None if unknown.
        source_text: The date as the text writes it.
    """

    year: int | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None
    source_text: str = field(default="", compare=False)


def _months_on(day: date, months: int) -> tuple[int, int]:
    at = day.year * 12 + day.month - 1 + months
    return at // 12, at % 12 + 1


def _shift(when: date, unit: str, count: int) -> list[PartialDate]:
    if abs(count) > 3000:
        return []
    if unit in ("day", "week"):
        start = when + timedelta(days=count * (7 if unit == "week" else 1))
        monday = start - timedelta(days=start.weekday())
        dates = [start] if unit == "day" else [start, monday, monday + timedelta(days=6)]
        return [_exact_date(day) for day in dates]
    if unit == "weekend":
        saturday = when + timedelta(days=(5 - when.weekday()) % 7 + 7 * count)
        return [_exact_date(saturday + timedelta(days=shift)) for shift in (-7, -6, 0, 1)]
    if unit == "month":
        year, month = _months_on(when, count)
        return [PartialDate(year, month)]
    years = {when.year + count} | ({when.year} if unit == "summer" else set())
    return [PartialDate(year) for year in years if 0 < year < 10_000]


def _exact_date(day: date) -> PartialDate:
    return PartialDate(day.year, day.month, day.day, day.weekday())


_EARLIEST, _LATEST = 100, 9_000  # years; keeps all relative dates inside Python's calendar


def relative_dates(text: str, when: date) -> list[PartialDate]:
    """Return the dates that a folded text may mean relative to the day on which it was said."""
    if not _EARLIEST < when.year < _LATEST:
        return []
    plain = with_digits(text.replace("il y a ", "vor "))
    near = [
        when + timedelta(days=days) for pattern, days in _NEAR_DAY_PATTERNS if pattern.search(plain)
    ]
    days = [*map(_exact_date, near), *_counted_from(plain, near or [when])]
    for pattern, unit, count in _SPANS_UNSPACED:
        if re.search(pattern, text):
            days += _shift(when, unit, count)
    for hit in _COUNTED_UNSPACED.finditer(plain):
        days += _shift(when, _CJK_UNITS[hit[2]], -int(hit[1]) if hit[3] else int(hit[1]))
    all_words = words(plain)
    for at, word in enumerate(all_words):
        kind = _UNITS.get(word)
        if kind:
            days += _spans_around_unit(
                all_words[max(0, at - 4) : at], all_words[at + 1 : at + 3], kind, when
            )
        elif word in WEEKDAYS:
            days += _weekdays(WEEKDAYS[word], all_words[at - 1] if at else "", when)
    days += _of_the_month(
        plain, when, [partial for partial in days if partial.month and partial.day is None]
    )
    for name, weekday in WEEKDAYS.items():
        if UNSPACED.search(name) and len(name) > 1 and name in text:
            ahead = (weekday - when.weekday()) % 7
            days += [_exact_date(when + timedelta(days=ahead + weeks)) for weeks in (-7, 0, 7)]
    return days


_END = LazyPattern(r"\b(?:end|ende|fin|final|finales|fines|fine|fim|kones|конц[еа]|конец)\b|末")
_BEGINNING = LazyPattern(
    r"\b(?:beginning|start|anfang|debut|principio|inicio|inizio|начал[ео])\b|初"
)
_MONTH = LazyPattern(r"\b(?:month|monats?|mois|mes|mese|месяца)\b|月")
_COUNTED_FROM_DAY = LazyPattern(
    r"(\d{1,3}|\ban?|\beine?r?|\bune?|\bun[ao]?|\buma?) ([^\W\d_]+) (?:from|after|ab|nach|a partir de|a contar de|da|от|после|ago|later"
    r"|zuvor|spater|auf den tag|today|heute|aujourd'hui|hoy|oggi|hoje)\b"
)
"""A span counted from a day: "three weeks from today", "five years ago today"."""
_DAY_ALONE = LazyPattern(
    r"\b(?:the |am |le |el |il |o |dia )(\d{1,2})(?:st|nd|rd|th|\.)?(?![\d:.,/]*\d)"
)


def _weekdays(weekday: int, before: str, when: date) -> list[PartialDate]:
    """Return the days that a weekday may mean: within a week, or only the "next" or "last" one."""
    ahead = (weekday - when.weekday()) % 7
    weeks: tuple[int, ...] = (-7, 0, 7)
    if before.startswith(_NEXT):
        weeks = (0, 7) if ahead else (7,)
    elif before.startswith(_LAST):
        weeks = (-7,)
    return [_exact_date(when + timedelta(days=ahead + week)) for week in weeks]


def _of_the_month(text: str, when: date, months: list[PartialDate]) -> list[PartialDate]:
    """Return days named by their number or as start or end of a month.

    A number counts in the named months, or else in the last, present and next month.
    """
    nearby_months = [_months_on(when, shift) for shift in (-1, 0, 1)]
    months_of_year = [(month_date.year, month_date.month) for month_date in months] or nearby_months
    dates = []
    this_month = [nearby_months[1]] if _MONTH.search(text) else []
    for year, month in [
        *((month_date.year, month_date.month) for month_date in months),
        *this_month,
    ]:
        if year and month and _END.search(text):
            dates.append(_exact_date(date(year, month, monthrange(year, month)[1])))
        if year and month and _BEGINNING.search(text):
            dates.append(_exact_date(date(year, month, 1)))
    for hit in _DAY_ALONE.finditer(text):
        for year, month in months_of_year:
            if year and month and 0 < int(hit[1]) <= monthrange(year, month)[1]:
                dates.append(_exact_date(date(year, month, int(hit[1]))))
    return dates


def _counted_from(text: str, days: Sequence[date]) -> list[PartialDate]:
    """Return the days that lie a counted span of time from one of the given days."""
    dates = []
    for hit, day in product(_COUNTED_FROM_DAY.finditer(text), days):
        count = int(hit[1]) if hit[1].isdecimal() else 1
        unit = _UNITS.get(hit[2], "")
        for signed in (count, -count):
            if unit in ("day", "week") and count < 1_000:
                dates.append(
                    _exact_date(day + timedelta(days=signed * (7 if unit == "week" else 1)))
                )
            elif unit in ("month", "year") and count < 100:
                year, month = _months_on(day, signed * (12 if unit == "year" else 1))
                last = monthrange(year, month)[1]
                dates.append(_exact_date(date(year, month, min(day.day, last))))
    return dates


def _spans_around_unit(
    before: list[str], after: list[str], unit: str, when: date
) -> list[PartialDate]:
    near = [*before[-2:], *after]
    days: list[PartialDate] = []
    for starts, count in ((_NEXT, 1), (_LAST, -1), (_THIS, 0)):
        if any(word.startswith(starts) for word in near):
            days += _shift(when, unit, count)
    number = next((int(w) for w in reversed(before[-2:]) if w.isdecimal() and len(w) < 5), None)
    if (
        number is None
        and before
        and before[-1] in ("a", "an", "einem", "einer", "un", "une", "una", "um", "uma")
    ):
        number = 1
    if number is None and ("назад" in after or "через" in before[-1:]):
        number = 1
    if number is not None:
        around = set(before) | set(after)
        days += _shift(when, unit, -number) if around & _AGO else []
        days += _shift(when, unit, number) if around & _AHEAD else []
    return days


def default_dates(when: date) -> list[PartialDate]:
    """Return the dates that a message without any date implies: its day and its month."""
    return [_exact_date(when), PartialDate(when.year, when.month)]


def matches_any_date(claimed: PartialDate, stated: list[PartialDate], when: date | None) -> bool:
    """Return whether a claim's date matches a stated one and is not more exact.

    Args:
        claimed: The date of the claim.
        stated: The stated dates.
        when: Day of the message; a claim may add the year if it is within a year of it.
    """
    return any(_matches(claimed, day, when) for day in stated)


def _matches(claimed: PartialDate, stated: PartialDate, when: date | None) -> bool:
    if claimed.weekday is not None:
        return claimed.weekday == stated.weekday or claimed.weekday == _weekday(stated)
    if claimed.month is not None and claimed.month != stated.month:
        return False
    if claimed.day is not None and claimed.day != stated.day:
        return False
    if claimed.year is None or claimed.year == stated.year:
        return claimed != PartialDate()
    return (
        stated.year is None
        and when is not None
        and abs(claimed.year - when.year) <= 1
        and (claimed.month is not None)
    )


def _weekday(day: PartialDate) -> int | None:
    if day.year and day.month and day.day:
        try:
            return date(day.year, day.month, day.day).weekday()
        except ValueError:
            return None
    return None
