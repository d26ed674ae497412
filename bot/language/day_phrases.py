"""Read the day and the time of day: "on 3 March", "next Friday", "half past six", "heute Abend". Pure."""

from __future__ import annotations

import re
from functools import partial

from bot.language.time_vocabulary import (
    ALL_DAYS,
    COUNT,
    DAYS,
    MONTH,
    MONTHS,
    NTH,
    OF_MONTH,
    ORD,
    PART,
    PARTS,
    SHORT,
    UNIT,
    WD,
    PhrasePattern,
    TimePhrase,
    read_ordinal,
    reader_of,
)

PATTERNS: list[PhrasePattern] = []
_reads = partial(reader_of, PATTERNS)


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
    r"(?P<on>on |am )?(?P<first>\d{1,2}) / (?P<second>\d{1,2})(?: / (?P<year>\d{4}|\d{2}))?(?P<timed>(?= (?:, )?(?:at|um|@|\d)))?",
)
def _slashed_date(hit: re.Match[str], phrase: TimePhrase) -> bool:
    """Read the number over twelve as the day; where none is, it is not sure."""
    first, second = int(hit["first"]), int(hit["second"])
    month, day = (first, second) if second > 12 else (second, first)
    dated = hit["on"] or hit["timed"] is not None or hit["year"] or phrase.kinds
    phrase.vague |= max(first, second) < 13 or month > 12 or not dated
    year = int(hit["year"]) if hit["year"] else None
    phrase.date = (year + 2000 if year is not None and year < 100 else year, month, day)
    return True


@_reads(
    "date",
    r"(?:at |on )?(?:the )?end of (?:the |this )?month|(?:am )?ende (?:des|dieses) monats|(?:am |zum )?(?:monatsende|monatsletzten)",
)
def _end_of_month(_: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.month_day = -1
    return True


@_reads(
    "date",
    rf"(?:on |am |den |on the |the (?=\d))?(?P<nth>{NTH}|\d{{1,2}})(?: of)? (?P<month>{MONTH})(?: \.)?(?: ,)?(?: (?P<year>20\d\d))?",
    rf"(?:on )?(?P<month>{MONTH}) (?:the )?(?P<nth>\d{{1,2}}(?: st| nd| rd| th)?|{ORD})(?! (?:uhr|people|years|{UNIT})\b)(?:(?: ,)? (?P<year>20\d\d))?",
)
def _named_date(hit: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.date = (
        int(hit["year"]) if hit["year"] else None,
        MONTHS[hit["month"]],
        read_ordinal(hit["nth"]),
    )
    return True


@_reads(
    "date",
    rf"(?:on the|am) (?P<nth>{NTH})(?P<tag> day| tag)?(?P<of>{OF_MONTH})?(?! (?:{WD}|{UNIT}|{MONTH})(?: |$))",
)
def _day_of_month(hit: re.Match[str], phrase: TimePhrase) -> bool:
    number, of_month = read_ordinal(hit["nth"]), hit["of"] or (hit["tag"] and phrase.every)
    if number == -1 and not of_month:
        return False  # "am letzten" goes on with what it is the last of
    phrase.month_day = number
    return True


@_reads(
    "near",
    r"(?:the )?day after tomorrow|ubermorgen|uebermorgen",
    r"(?:first thing )?tomorrow|tmrw|tmr|tomorow|morgen",
    rf"today|heute(?= (?:{PART})\b)|heute|(?:this)(?= (?:morning|afternoon|evening)\b)",
)
def _near_day(hit: re.Match[str], phrase: TimePhrase) -> bool:
    word = hit[0]
    phrase.days = (
        2
        if "after" in word or word.startswith("u")
        else 1
        if word.startswith(("first", "tom", "tm", "mor"))
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
    day = frozenset((ALL_DAYS[groups.get("week") or groups["day"]],))
    if phrase.weekdays is not None:
        return False
    phrase.weekdays, phrase.week = day, 1 if "week" in groups else None
    return True


@_reads(
    "weekday",
    rf"(?:on |am |der )?(?P<days>(?:{WD})(?: (?:, (?:and |und )?|and |und |u \. |[/&+] )(?:on |am )?(?:{WD})){{1,6}})(?! ?[-] )",
    r"(?P<weekend>(?:at|on|over) the weekend|am wochenende)",
)
def _weekdays(hit: re.Match[str], phrase: TimePhrase) -> bool:
    if phrase.weekdays is not None:
        return False
    named = (DAYS.get(word) for word in (hit.groupdict().get("days") or "").split())
    days = frozenset(day for day in named if day is not None)
    phrase.weekdays, phrase.listed = days or frozenset((5, 6)), True
    return True


@_reads(
    "weekday",
    rf"(?:am )?(?:(?P<next>{_NEXT})|{_COMING})? ?(?P<day>{WD})(?P<part>{PART})",
)
def _part_of_weekday(hit: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.weekdays, phrase.week = frozenset((DAYS[hit["day"]],)), 1 if hit["next"] else None
    phrase.part = PARTS[hit["part"]]
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


@_reads("end", rf"(?:for|fur|wahrend) (?:{COUNT}) (?:{UNIT})(?: lang)?")
def _ends(_: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.vague |= phrase.every is not None
    return phrase.every is not None


# Times of the day.
_GERMAN_DAYS = "montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag"
_AT = r"at like|at|um|@|around|about|gegen|ca \.|circa|punkt|at around|at about|at exactly|um punkt"
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


@_reads("clock", r"(?P<at>um |at |@ |gegen )?(?P<hour>\d{1,2}) h(?: (?P<minute>[0-5]\d))?(?! \d)")
def _hour_sign(hit: re.Match[str], phrase: TimePhrase) -> bool:
    """Read "11h" beside a day; alone it is as well how long something takes."""
    beside_day = phrase.kinds & {"date", "weekday", "near"}
    if not hit["at"] and not beside_day:
        return False
    sure = hit["at"] or hit["minute"] or "date" in beside_day or int(hit["hour"]) > 12
    phrase.vague |= not sure  # "work tomorrow 8h"
    return _set_clock(phrase, int(hit["hour"]), int(hit["minute"] or 0), None, face=False)


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
    phrase.part = PARTS[hit["part"]]
    phrase.kinds.add("part")
    return True
