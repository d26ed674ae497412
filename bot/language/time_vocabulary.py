"""The words of time in English and German, and what a phrase of time says. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bot.core.patterns import LazyPattern
from bot.language.lexicon import MONTHS as LEXICON_MONTHS
from bot.language.lexicon import WEEKDAYS


@dataclass(slots=True)
class TimePhrase:
    """What a phrase says; what it does not say is None.

    Attributes:
        days: Days from today.
        date: Year (or None), month and day.
        month_day: Day of the month; -1 for the last.
        weekdays: Weekdays, 0 for Monday.
        week: 1 for the next calendar week, 0 for this one.
        nth: Which of a month's weekdays; -1 for the last.
        clock: Hour and minute.
        face: Whether the hour may be one of a clock's face: 5 or 17.
        part: Hours of the part of the day: its usual time.
        distance: Months, days and seconds from now.
        every: Count and unit of a repetition.
        always: Whether it says that it repeats, without how often: "always".
        listed: Whether it lists weekdays without a word of repetition: "Mo, Mi, Fr".
        vague: Whether it says no moment, or one that has passed.
        kinds: The kinds of its parts.
    """

    days: int | None = None
    date: tuple[int | None, int, int] | None = None
    month_day: int | None = None
    weekdays: frozenset[int] | None = None
    week: int | None = None
    nth: int | None = None
    clock: tuple[int, int] | None = None
    face: bool = False
    part: int | None = None
    distance: tuple[int, int, float] | None = None
    every: tuple[int, str] | None = None
    always: bool = False
    listed: bool = False
    vague: bool = False
    kinds: set[str] = field(default_factory=set)


PhraseReader = Callable[[re.Match[str], TimePhrase], bool]
PhrasePattern = tuple[str, LazyPattern, PhraseReader]
"""The kind of a part, what it looks like, and who reads it into the phrase or refuses it."""


def reader_of(
    patterns: list[PhrasePattern], kind: str, *forms: str
) -> Callable[[PhraseReader], PhraseReader]:
    """Return a decorator that adds the forms to the patterns, to be read by the decorated function."""

    def add(reader: PhraseReader) -> PhraseReader:
        compiled = (LazyPattern(rf"(?:{form})(?= |$)") for form in forms)
        patterns.extend((kind, pattern, reader) for pattern in compiled)
        return reader

    return add


def _names(table: dict[str, int], names: str) -> dict[str, int]:
    return {name: table[name] for name in names.split()}


DAYS = _names(
    WEEKDAYS,
    "monday tuesday wednesday thursday friday saturday sunday"
    " montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag",
)
SHORT_DAYS = _names(WEEKDAYS, "mon tue wed thu fri sat sun") | {"tues": 1, "thurs": 3, "weds": 2}
ALL_DAYS = DAYS | SHORT_DAYS | {name + "s": day for name, day in DAYS.items()}
MONTHS = _names(
    LEXICON_MONTHS,
    "january jan february feb march mar april apr may june jun july jul august aug september sep sept october oct november nov"
    " december dec januar janner februar marz mai juni juli oktober okt dezember dez",
)
ORDINALS = {
    form: number
    for number, forms in {
        1: "first ersten erste erster erstes", 2: "second zweiten zweite zweites", 3: "third dritten dritte drittes",
        4: "fourth vierten vierte viertes", 5: "fifth funften funfte", 10: "tenth zehnten", 15: "fifteenth funfzehnten",
        20: "twentieth zwanzigsten", -1: "last letzten letzte letzter",
    }.items()
    for form in forms.split()
}  # fmt: skip
UNITS = {
    form: unit
    for unit, forms in {
        "seconds": "second seconds sec secs s sekunde sekunden sek",
        "minutes": "minute minutes min mins m minuten",
        "hours": "hour hours hr hrs h stunde stunden std",
        "days": "day days d tag tage tagen",
        "weeks": "week weeks wk wks woche wochen",
        "months": "month months monat monate monaten monats",
        "years": "year years jahr jahre jahren jahres",
    }.items()
    for form in forms.split()
}
PARTS = {
    form: hour
    for hour, forms in {
        9: "morning morgen fruh morgens vormittag vormittags",
        12: "noon midday mittag mittags lunchtime",
        15: "afternoon nachmittag nachmittags",
        19: "evening abend abends",
        21: "night nacht nachts",
    }.items()
    for form in forms.split()
}


def any_of(names: Iterable[str]) -> str:
    """Return a pattern for any of the names."""
    return "|".join(sorted(names, key=len, reverse=True))


WD, UNIT, MONTH, PART, ORD = (any_of(one) for one in (DAYS, UNITS, MONTHS, PARTS, ORDINALS))
SHORT = rf"{WD}|{any_of(SHORT_DAYS)}"
NTH = rf"\d{{1,2}} (?:st|nd|rd|th)|\d{{1,2}} \.|{ORD}"
COUNT = r"\d{1,4}(?:[.,]5)?|an?|(?:ei)?ne?[mnr]?"
OF_MONTH = r"(?: (?:of|in|im|des|eines|jedes|jeden) (?:the |every |each |jedes |jeden )?(?:months?|monats?)| each month| every month)"
EACH = r"(?:every|each|jede[nrsm]?)"
ADVERB = r"daily|hourly|weekly|monthly|yearly|annually|(?:tag|stund|wochent|monat|jahr)lich(?:en?(?= erinnerung))?"


HALVES = {
    "anderthalb": 1.5,
    "eineinhalb": 1.5,
    "zweieinhalb": 2.5,
    "dreieinhalb": 3.5,
    "viereinhalb": 4.5,
}


def read_count(text: str) -> float:
    """Return the value of what ``COUNT`` matches."""
    return float(text.replace(",", ".")) if text[0].isdecimal() else 1


def read_ordinal(text: str) -> int:
    """Return the value of what ``NTH`` matches; -1 for the last."""
    return ORDINALS[text] if text in ORDINALS else int(text.split(maxsplit=1)[0])
