"""Read the phrases in which people say times, in English and German, word by word. Pure.

Rule 1: a phrase is made of parts (a day, a time of day, a distance, a repetition), each at most once, in any order.
Rule 2: each pattern looks at a bounded number of words, so a text is read in linear time.
Rule 3: what is about time but says no moment ("next week", "soon", "yesterday") is read as a vague phrase, not as text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bot.language.folding import fold_text
from bot.language.lexicon import MONTHS, NUMBERS, WEEKDAYS

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


_Reader = Callable[[re.Match[str], TimePhrase], bool]
_PATTERNS: list[tuple[str, re.Pattern[str], _Reader]] = []


def _reads(kind: str, *patterns: str) -> Callable[[_Reader], _Reader]:
    """Let a function read what the patterns match; it may refuse by returning False."""

    def add(reader: _Reader) -> _Reader:
        compiled = (re.compile(rf"(?:{pattern})(?= |$)") for pattern in patterns)
        _PATTERNS.extend((kind, pattern, reader) for pattern in compiled)
        return reader

    return add


def read_phrase(words: Words, at: int) -> tuple[TimePhrase, int] | None:
    """Return the phrase that begins at a word, and the number of the word after it; None if none does."""
    phrase, first = TimePhrase(), at
    position = {start: number for number, start in enumerate(words.starts[at : at + 60], at)}
    while at < len(words.spans):
        start = words.starts[at]
        skipped = _BETWEEN.match(words.folded, start) if at > first else None
        for begin in (start, *([skipped.end()] if skipped else [])):
            end = _read_part(words.folded, begin, phrase)
            if end is not None:
                break
        else:
            break
        at = position.get(end + 1, len(words.spans))
    return (phrase, at) if at > first else None


_BETWEEN = re.compile(r"(?:, (?:den |the |and |und )?|- |immer |always |den |jeweils )")


def _read_part(folded: str, begin: int, phrase: TimePhrase) -> int | None:
    """Read the longest part that begins at a place, and return where it ends; None if none does."""
    hits = []
    for kind, pattern, reader in _PATTERNS:
        hit = None if kind in phrase.kinds else pattern.match(folded, begin)
        if hit:
            hits.append((hit, kind, reader))
    for hit, kind, reader in sorted(hits, key=lambda one: -one[0].end()):
        if reader(hit, phrase):
            phrase.kinds.add(kind)
            return hit.end()
    return None


def _names(table: dict[str, int], names: str) -> dict[str, int]:
    return {name: table[name] for name in names.split()}


_DAYS = _names(
    WEEKDAYS,
    "monday tuesday wednesday thursday friday saturday sunday"
    " montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag",
)
_SHORT_DAYS = _names(WEEKDAYS, "mon tue wed thu fri sat sun") | {"tues": 1, "thurs": 3, "weds": 2}
_ALL_DAYS = _DAYS | _SHORT_DAYS | {name + "s": day for name, day in _DAYS.items()}
_MONTHS = _names(
    MONTHS,
    "january jan february feb march mar april apr may june jun july jul august aug september sep sept october oct november nov"
    " december dec januar janner februar marz mai juni juli oktober okt dezember dez",
)
_ORDINALS = {
    form: number
    for number, forms in {
        1: "first ersten erste erster erstes", 2: "second zweiten zweite zweites", 3: "third dritten dritte drittes",
        4: "fourth vierten vierte viertes", 5: "fifth funften funfte", 10: "tenth zehnten", 15: "fifteenth funfzehnten",
        20: "twentieth zwanzigsten", -1: "last letzten letzte letzter",
    }.items()
    for form in forms.split()
}  # fmt: skip
_UNITS = {
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
_PARTS = {
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


def _any(names: Iterable[str]) -> str:
    return "|".join(sorted(names, key=len, reverse=True))


WD, UNIT, MONTH, PART, ORD = (_any(one) for one in (_DAYS, _UNITS, _MONTHS, _PARTS, _ORDINALS))
SHORT = rf"{WD}|{_any(_SHORT_DAYS)}"
NTH = rf"\d{{1,2}} (?:st|nd|rd|th)|\d{{1,2}} \.|{ORD}"
COUNT = r"\d{1,4}(?:[.,]5)?|an?|eine?[mnr]?"
OF_MONTH = r"(?: (?:of|in|im|des|eines|jedes|jeden) (?:the |every |each |jedes |jeden )?(?:months?|monats?)| each month| every month)"
EACH = r"(?:every|each|jede[nrsm]?)"


_HALVES = {
    "anderthalb": 1.5,
    "eineinhalb": 1.5,
    "zweieinhalb": 2.5,
    "dreieinhalb": 3.5,
    "viereinhalb": 4.5,
}


def _number(text: str) -> float:
    return float(text.replace(",", ".")) if text[0].isdecimal() else 1


def _nth(text: str) -> int:
    return _ORDINALS[text] if text in _ORDINALS else int(text.split(maxsplit=1)[0])


@_reads(
    "vague",
    r"(?:yesterday|gestern|vorgestern|last night|soon|bald|later|spater|sometime|irgendwann|again and again"
    r"|(?:this|next|last|past|coming|nachste[nrs]?|diese[nrsm]?|letzte[nrs]?|vergangene[nrs]?|kommende[nrs]?)"
    r" (?:weekend|wochenende|month|monat|year|jahr|quarter|quartal|summer|winter|sommer|night)"
    r"|(?:at|on|over) the weekend|am wochenende"
    rf"|(?:last|past|letzte[nrs]?|vergangene[nrs]?) (?:week|woche|{SHORT})"
    rf"|(?:in )?(?:a few|a couple of|a couple|several|some|ein paar|einigen?|mehreren) (?:{UNIT})(?: ago)?"
    rf"|(?:{COUNT}) (?:{UNIT}) ago|vor (?:{COUNT}) (?:{UNIT})"
    r"|(?:once|twice|thrice|einmal|zweimal|dreimal|\d{1,3} (?:times|mal|x)) (?:an?|per|each|every|am|pro|im|in der|jede[nrs]?)"
    rf" (?:{UNIT})|(?:zweimal|dreimal|2 mal|3 mal) (?:taglich|wochentlich|monatlich)|(?:on |am )?\d{{1,2}} / \d{{1,2}}(?: / \d{{2,4}})?)",
)
def _vague(_: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.vague = True
    return True


# Distances from now.
@_reads(
    "distance",
    rf"(?:in|within) (?:(?P<half>half an?|a half|einer halben|1 halben|a quarter of an|einer viertel|einer dreiviertel|dreiviertel of an"
    rf"|3 quarters of an) (?:hour|stunde)|(?P<one>einer viertelstunde|einer dreiviertelstunde)"
    rf"|(?P<count>{COUNT}|{_any(_HALVES)})(?P<and> and a half)? (?P<unit>{UNIT})"
    rf"(?P<more> and a half| (?:(?:and|und) )?(?P<count2>\d{{1,3}}) (?P<unit2>{UNIT}))?)(?: from now)?",
    r"(?P<half>half an) hour from now",
    rf"(?P<count>{COUNT})(?P<and> and a half)? (?P<unit>{UNIT}) from (?:now|today)",
)
def _distance(hit: re.Match[str], phrase: TimePhrase) -> bool:
    said = hit.groupdict()
    short = said.get("half") or said.get("one")
    if short:
        three, one = re.search("drei|3 q", short), re.search("quarter|viertel", short)
        phrase.distance = (0, 0, 900.0 * (3 if three else 1 if one else 2))
        return True
    count = _HALVES.get(said["count"]) or _number(said["count"])
    count += 0.5 if said["and"] or said.get("more") == " and a half" else 0
    months, days, seconds = _span(count, _UNITS[said["unit"]])
    if said.get("count2"):
        more = _span(int(said["count2"]), _UNITS[said["unit2"]])
        months, days, seconds = months + more[0], days + more[1], seconds + more[2]
    if months % 1 or days % 1:
        phrase.vague = True
    phrase.distance = (int(months), int(days), seconds)
    return True


def _span(count: float, unit: str) -> tuple[float, float, float]:
    each = {"seconds": 1, "minutes": 60, "hours": 3600}
    if unit in each:
        return 0, 0, count * each[unit]
    if unit in ("days", "weeks"):
        return 0, count * (7 if unit == "weeks" else 1), 0
    return count * (12 if unit == "years" else 1), 0, 0


# Repetitions.
@_reads(
    "every",
    rf"{EACH} (?P<nth>{NTH}) (?P<day>{WD}){OF_MONTH}",
    rf"(?:on |am )?(?:the )?(?P<nth>{NTH}) (?P<day>{WD}) (?:of|in|im|des|eines|jedes) (?:every |each |jede[sn] )(?:month|monats?)",
    rf"(?:on |am )?(?:the )?(?P<nth>{NTH}) (?P<day>{WD}) (?:jedes|jeden|eines jeden) monats?",
)
def _nth_weekday(hit: re.Match[str], phrase: TimePhrase) -> bool:
    nth = _nth(hit["nth"])
    phrase.nth, phrase.weekdays, phrase.every = nth, frozenset((_DAYS[hit["day"]],)), (1, "months")
    phrase.vague |= not (nth == -1 or 1 <= nth <= 5)
    return True


@_reads(
    "every",
    rf"{EACH} (?P<nth>{NTH}|\d{{1,2}}) (?P<month>{MONTH})",
    rf"{EACH} (?P<month>{MONTH}) (?P<nth>{NTH}|\d{{1,2}})",
)
def _yearly(hit: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.date = (None, _MONTHS[hit["month"]], _nth(hit["nth"]))
    phrase.every = (1, "years")
    return True


@_reads(
    "every",
    rf"(?:on |am )?(?:the )?(?P<nth>{NTH})(?: day| tag(?:es)?)? (?:(?:of|in|im|eines) )?(?:every|each|jede[sn]) (?:month|monats?)",
    rf"{EACH} (?P<nth>{NTH})(?: day| tag)?{OF_MONTH}",
    rf"{EACH} (?P<nth>\d{{1,2}} (?:st|nd|rd|th)|\d{{1,2}} \.)(?! (?:{UNIT}|{WD}|{MONTH})(?: |$))",
)
def _monthly(hit: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.month_day, phrase.every = _nth(hit["nth"]), (1, "months")
    return True


@_reads(
    "every",
    rf"(?:{EACH}|alle) (?P<count>other|second|zweiten?|zweites|dritten?|third|\d{{1,4}}(?: \.)?|half(?: an)?|halbe|quarter(?: of an)?|viertel)"
    rf" ?(?P<unit>{UNIT}|viertelstunde|{WD})(?: (?:on |am )?(?P<day>{SHORT}))?",
    rf"{EACH} (?P<unit>{UNIT}|viertelstunde)(?P<half> and a half)?(?: (?:on |am )?(?P<day>{WD}))?",
)
def _every_unit(hit: re.Match[str], phrase: TimePhrase) -> bool:
    said = hit.groupdict()
    count, name = said.get("count") or "1", said["unit"]
    if name in _DAYS:
        phrase.weekdays, name = frozenset((_DAYS[name],)), "week"
    number = {"other": 2}.get(count) or _ORDINALS.get(count)
    number = number or (int(count.split()[0]) if count[0].isdecimal() else 0)
    unit = "minutes" if name == "viertelstunde" else _UNITS[name]
    if name == "viertelstunde":
        number = 15
    elif not number or said.get("half"):
        phrase.vague |= unit != "hours"
        number, unit = 90 if number else 15 if count[0] in "qv" else 30, "minutes"
    phrase.vague |= unit == "seconds" or number < 1
    phrase.every = (number, unit)
    if said.get("day"):
        phrase.vague |= unit != "weeks" or phrase.weekdays is not None
        phrase.weekdays = frozenset((_ALL_DAYS[hit["day"]],))
    return True


@_reads(
    "every",
    r"(?P<unit>daily|taglich|hourly|stundlich|weekly|wochentlich|monthly|monatlich|yearly|annually|jahrlich)",
)
def _adverb(hit: re.Match[str], phrase: TimePhrase) -> bool:
    stems = {
        "da": "days",
        "ta": "days",
        "ho": "hours",
        "st": "hours",
        "we": "weeks",
        "wo": "weeks",
        "mo": "months",
    }
    phrase.every = (1, stems.get(hit["unit"][:2], "years"))
    return True


@_reads(
    "every",
    rf"(?:{EACH} (?:weekday|workday|work day|working day|werktag|arbeitstag|wochentag)|(?:on )?(?:weekdays|workdays)|werktags|wochentags"
    r"|an (?:werktagen|wochentagen|arbeitstagen)|unter der woche|(?:from )?monday (?:to|through|-) friday|montag (?:bis|-) freitag"
    r"|montags bis freitags|von montag bis freitag)",
)
def _on_weekdays(_: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.every, phrase.weekdays = (1, "weeks"), frozenset(range(5))
    return True


@_reads(
    "every",
    rf"(?:{EACH} (?:weekend|wochenende)|(?:on |at )?weekends|an wochenenden)",
)
def _on_weekends(_: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.every, phrase.weekdays = (1, "weeks"), frozenset((5, 6))
    return True


@_reads(
    "every",
    rf"{EACH} (?P<days>(?:{SHORT})(?:(?: ,)?(?: and| und| &)?(?: every| jeden)? (?:{WD})){{0,6}})",
    rf"(?:on |immer )?(?P<days>(?:(?:{WD})s)(?:(?: ,)?(?: and| und| &)?(?: on)? (?:{WD})s){{0,6}})",
)
def _every_weekday(hit: re.Match[str], phrase: TimePhrase) -> bool:
    found = (_ALL_DAYS.get(word) for word in hit["days"].split())
    phrase.every, phrase.weekdays = (1, "weeks"), frozenset(day for day in found if day is not None)
    return True


@_reads(
    "every",
    rf"{EACH} (?P<part>{PART})",
)
def _every_part(hit: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.every, phrase.part = (1, "days"), _PARTS[hit["part"]]
    phrase.kinds.add("part")
    return True


# Days.
@_reads(
    "date",
    r"(?P<iso>\d{4} - \d{2} - \d{2})(?: t(?= \d))?",
    r"(?:on |am )?(?:the |den )?(?P<dotted>\d{1,2}\.\d{1,2}(?: \.(?: \d{4})?|\.\d{4}|\.\d{2}))",
    r"am (?P<dotted>\d{1,2}\.\d{1,2})(?! uhr)",
)
def _numeric_date(hit: re.Match[str], phrase: TimePhrase) -> bool:
    if "iso" in hit.groupdict():
        year, month, day = (int(part) for part in hit["iso"].split(" - "))
    else:
        day, month, *years = (int(part) for part in re.findall(r"\d+", hit["dotted"]))
        year = years[0] + (2000 if years[0] < 100 else 0) if years else 0
    phrase.date = (year or None, month, day)
    return True


@_reads(
    "date",
    rf"(?:on |am |den |on the |the (?=\d))?(?P<nth>{NTH}|\d{{1,2}})(?: of)? (?P<month>{MONTH})(?: \.)?(?: ,)?(?: (?P<year>20\d\d))?",
    rf"(?:on )?(?P<month>{MONTH}) (?:the )?(?P<nth>\d{{1,2}}(?: st| nd| rd| th)?|{ORD})(?! (?:uhr|people|years|{UNIT})\b)(?:(?: ,)? (?P<year>20\d\d))?",
)
def _named_date(hit: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.date = (
        int(hit["year"]) if hit["year"] else None,
        _MONTHS[hit["month"]],
        _nth(hit["nth"]),
    )
    return True


@_reads(
    "date",
    rf"(?:on the|am) (?P<nth>{NTH})(?: day| tag)?(?P<of>{OF_MONTH})?(?! (?:{WD}|{UNIT}|{MONTH})(?: |$))",
)
def _day_of_month(hit: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.month_day = _nth(hit["nth"])
    # "am letzten" and "on the last" go on with what they are the last of.
    return phrase.month_day != -1 or hit["of"] is not None


@_reads(
    "near",
    r"(?:the )?day after tomorrow|ubermorgen|uebermorgen",
    r"tomorrow|tmrw|tmr|tomorow|morgen",
    rf"today|heute(?= (?:{PART})\b)|heute|(?:this)(?= (?:morning|afternoon|evening)\b)",
)
def _near_day(hit: re.Match[str], phrase: TimePhrase) -> bool:
    word = hit[0]
    phrase.days = (
        2
        if "after" in word or word.startswith("u")
        else 1
        if word[0] in "tm" and word[:3] not in ("tod", "thi")
        else 0
    )
    return True


@_reads(
    "near",
    r"(?P<part>tonight|heute nacht)",
)
def _tonight(hit: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.days, phrase.part = 0, 19 if hit["part"] == "tonight" else 21
    phrase.kinds.add("part")
    return True


_NEXT = r"next|nachste[nrs]?"
_COMING = r"coming|this|diese[nrsm]?|kommende[nrs]?"


@_reads(
    "weekday",
    rf"(?:{_NEXT}|kommende) (?:week|woche)(?: ,)? (?:on |am )?(?P<week>{SHORT})",
    rf"(?:on |am )?(?P<week>{WD}) (?:{_NEXT}|kommende|of next) (?:week|woche)",
    rf"(?:on |am |for )?(?:{_NEXT}) (?P<week>{SHORT})",
    rf"(?:on |am )?(?:the )?(?:{_COMING}) (?P<day>{SHORT})",
    rf"(?:on|am) (?P<day>{SHORT})(?! ?[-/] )",
    rf"(?P<day>{WD})(?! ?[-/] )",
)
def _weekday(hit: re.Match[str], phrase: TimePhrase) -> bool:
    groups = hit.groupdict()
    day = frozenset((_ALL_DAYS[groups.get("week") or groups["day"]],))
    if phrase.weekdays is not None:
        return False
    phrase.weekdays, phrase.week = day, 1 if "week" in groups else None
    return True


@_reads(
    "weekday",
    rf"(?:am )?(?:(?P<next>{_NEXT})|{_COMING})? ?(?P<day>{WD})(?P<part>{PART})",
)
def _part_of_weekday(hit: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.weekdays, phrase.week = frozenset((_DAYS[hit["day"]],)), 1 if hit["next"] else None
    phrase.part = _PARTS[hit["part"]]
    phrase.kinds.add("part")
    return True


@_reads(
    "vague",
    rf"(?:on |am )?(?:the )?(?:{NTH}) (?:{WD}) (?:of|in|im|des)",
    r"(?:next|nachste[nrs]?|this|diese[nrs]?|kommende) (?:week|woche)",
)
def _vague_week(_: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.vague = True
    return True


# Times of the day.
_GERMAN_DAYS = "montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag"
_AT = r"at|um|@|around|about|gegen|ca \.|circa|punkt|at around|at about|at exactly|um punkt"
_HALF_DAY = rf"(?P<half>am(?! (?:{_GERMAN_DAYS}|\d{{1,2}}(?: \.|\.)|{PART}))|pm|a \. m(?: \.)?|p \. m(?: \.)?)"
_NOT_AN_HOUR = (
    r"(?! (?:%|€|\$|percent|prozent|euros?|eur|dollars?|usd|degrees|grad|km|kg|st|nd|rd|th|street|years?|jahren?|people|leute"
    rf"|points?|punkte|times|mal|{UNIT})\b| (?:%|€|\$))"
)


def _set_clock(phrase: TimePhrase, hour: int, minute: int, half: str | None, *, face: bool) -> bool:
    if half:
        if not 1 <= hour <= 12:
            phrase.vague = True
        hour = hour % 12 + (12 if half[0] == "p" else 0)
    if hour == 24 and minute == 0:
        phrase.vague = True
    if not (0 <= hour <= 23 and 0 <= minute <= 59):
        phrase.vague = True
    phrase.clock, phrase.face = (hour, minute), face and not half and 1 <= hour < 12
    return True


@_reads(
    "clock",
    rf"(?:(?P<at>{_AT}) )?(?P<hour>\d{{1,2}}):(?P<minute>\d{{2}})(?:(?::\d\d)?)(?: ?{_HALF_DAY})?(?: uhr| h)?",
    rf"(?:(?P<at>{_AT}) )?(?P<hour>\d{{1,2}})[.](?P<minute>\d{{2}})(?: {_HALF_DAY}| uhr)",
    rf"(?P<at>at|um) (?P<hour>\d{{1,2}})[.](?P<minute>\d{{2}}){_NOT_AN_HOUR}",
)
def _digital(hit: re.Match[str], phrase: TimePhrase) -> bool:
    english = bool(hit["at"]) and hit["at"].startswith("at") and hit["hour"][0] != "0"
    half = hit.groupdict().get("half")
    return _set_clock(phrase, int(hit["hour"]), int(hit["minute"]), half, face=english)


@_reads(
    "clock",
    rf"(?:(?:{_AT}) )?(?P<amount>half|quarter|a quarter|viertel|\d{{1,2}})(?: (?:minutes|minuten|min))? (?P<way>past|to|after|nach|vor)"
    rf" (?P<halb>halb )?(?P<hour>\d{{1,2}})(?: (?:o'clock|uhr))?(?: {_HALF_DAY})?{_NOT_AN_HOUR}",
)
def _beside_the_hour(hit: re.Match[str], phrase: TimePhrase) -> bool:
    amount = hit["amount"]
    minutes = 30 if amount == "half" else int(amount) if amount.isdecimal() else 15
    hour = int(hit["hour"])
    if minutes >= 60 or not 1 <= hour <= 24:
        return False
    whole = hour * 60 - (30 if hit["halb"] else 0)
    whole += -minutes if hit["way"] in ("to", "vor") else minutes
    if hour <= 12:
        whole = whole % 720 or 720
        whole += 720 if whole < 60 else 0
    return _set_clock(phrase, whole // 60, whole % 60, hit["half"], face=hour <= 12)


@_reads(
    "clock",
    rf"(?:(?:{_AT}) )?(?P<amount>halb|dreiviertel|viertel) (?P<hour>\d{{1,2}})(?: uhr)?{_NOT_AN_HOUR}",
)
def _toward_the_hour(hit: re.Match[str], phrase: TimePhrase) -> bool:
    hour = int(hit["hour"])
    minutes = {"halb": 30, "dreiviertel": 45, "viertel": 15}[hit["amount"]]
    before = hour - 1 or 12
    return 1 <= hour <= 12 and _set_clock(phrase, before, minutes, None, face=True)


@_reads(
    "clock",
    rf"(?:(?:{_AT}) )?(?P<hour>\d{{1,2}})(?: o'clock)? {_HALF_DAY}",
    r"(?:(?:"
    + _AT
    + r") )?(?P<hour>\d{1,2}) (?:o'clock|uhr)(?: (?P<minute>[0-5]\d)(?! (?:-|uhr|minuten|[a-z]*euro)))?",
    rf"(?:at|um|@|gegen|punkt|at around|at about|at exactly|um punkt) (?P<hour>\d{{1,2}}){_NOT_AN_HOUR}",
)
def _hour(hit: re.Match[str], phrase: TimePhrase) -> bool:
    said = hit.groupdict()
    minute = int(said.get("minute") or 0)
    return _set_clock(
        phrase, int(said["hour"]), minute, said.get("half"), face=said["hour"][0] != "0"
    )


@_reads(
    "clock",
    r"(?:at |um |zu )?(?P<name>noon|midday|midnight|mitternacht)|(?:zu )(?P<lunch>mittag)",
)
def _named_clock(hit: re.Match[str], phrase: TimePhrase) -> bool:
    return _set_clock(
        phrase, 0 if hit["name"] in ("midnight", "mitternacht") else 12, 0, None, face=False
    )


# Parts of the day, beside a day or with a word that makes them a time.
@_reads("part", r"(?:in the |at |am |in der |zu )(?P<part>" + PART + r")")
@_reads("part", r"(?P<part>morgens|vormittags|mittags|nachmittags|abends|nachts)")
@_reads("beside", r"(?P<part>" + PART + r")")
def _part(hit: re.Match[str], phrase: TimePhrase) -> bool:
    if phrase.part is not None or (hit[0] in ("morning", "evening", "night") and not phrase.kinds):
        return False
    if not phrase.kinds - {"distance", "vague"} and hit[0] == hit["part"] and hit[0][-1] != "s":
        return False
    phrase.part = _PARTS[hit["part"]]
    phrase.kinds.add("part")
    return True
