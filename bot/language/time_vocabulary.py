"""The words of time in English and German, texts as words, and what a phrase of time says. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bot.language.folding import fold_text
from bot.language.lexicon import MONTHS as LEXICON_MONTHS
from bot.language.lexicon import NUMBERS, WEEKDAYS

_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+(?:[:.,]\d+)*|\S")
_SPELLED = {
    word: str(NUMBERS.get(word, 1))
    for word in (
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen"
        " nineteen twenty thirty forty fifty sixty ninety eins zwei drei vier funf sechs sieben acht neun zehn elf zwolf"
        " dreizehn vierzehn funfzehn sechzehn siebzehn achtzehn neunzehn zwanzig funfundzwanzig dreissig funfunddreissig"
        " vierzig funfundvierzig funfzig sechzig neunzig"
    ).split()
}
_TENS = frozenset(("20", "30", "40", "50"))


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text: folded, with number words as digits, and where they stand in it.

    Attributes:
        text: The text.
        folded: The words with one space between them.
        spans: Where each word begins and ends in the text.
        starts: Where each word begins in ``folded``; one more for the end.
    """

    text: str
    folded: str
    spans: list[tuple[int, int]]
    starts: list[int]

    def word(self, number: int) -> str:
        """Return a word, folded; empty if there is none."""
        if not 0 <= number < len(self.spans):
            return ""
        return self.folded[self.starts[number] : self.starts[number + 1] - 1]

    def word_at(self, place: int) -> int:
        """Return the number of the first word that begins at or after a place in ``folded``."""
        return min(bisect_left(self.starts, place), len(self.spans))

    def text_between(self, first: int, end: int) -> str:
        """Return the text from a word to before another one."""
        if first >= end:
            return ""
        return self.text[self.spans[first][0] : self.spans[end - 1][1]]

    def text_from(self, first: int) -> str:
        """Return the text from a word to the end."""
        return self.text[self.spans[first][0] :] if first < len(self.spans) else ""


def read_words(text: str) -> Words:
    """Return the words of a text."""
    spans: list[tuple[int, int]] = []
    folded: list[str] = []
    for token in _TOKEN.finditer(text):
        raw = token[0]
        word = raw.lower() if raw.isascii() else fold_text(raw).replace(" ", "")
        word = _SPELLED.get(word, word) or "?"
        begins = token.start()
        if len(word) == 1 and word.isdecimal() and word != "0" and not raw.isdecimal() and spans:
            dash = len(spans) > 1 and folded[-1] == "-"
            tens = len(spans) - (2 if dash else 1)
            if folded[tens] in _TENS and not text[spans[tens][0]].isdecimal():
                word, begins = str(int(folded[tens]) + int(word)), spans[tens][0]
                del spans[tens:], folded[tens:]
        spans.append((begins, token.end()))
        folded.append(word)
    starts = [0]
    for word in folded:
        starts.append(starts[-1] + len(word) + 1)
    return Words(text, " ".join(folded), spans, starts)


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
    vague: bool = False
    kinds: set[str] = field(default_factory=set)


PhraseReader = Callable[[re.Match[str], TimePhrase], bool]
PhrasePattern = tuple[str, re.Pattern[str], PhraseReader]
"""The kind of a part, what it looks like, and who reads it into the phrase or refuses it."""


def reader_of(
    patterns: list[PhrasePattern], kind: str, *forms: str
) -> Callable[[PhraseReader], PhraseReader]:
    """Return a decorator that adds the forms to the patterns, to be read by the decorated function."""

    def add(reader: PhraseReader) -> PhraseReader:
        compiled = (re.compile(rf"(?:{form})(?= |$)") for form in forms)
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
