"""Read how far away a time is, and how it repeats: "in two hours", "every Monday". Pure."""

from __future__ import annotations

import re
from functools import partial

from bot.language.time_vocabulary import (
    ADVERB,
    ALL_DAYS,
    COUNT,
    DAYS,
    EACH,
    HALVES,
    MONTH,
    MONTHS,
    NTH,
    OF_MONTH,
    ORDINALS,
    PART,
    PARTS,
    SHORT,
    UNIT,
    UNITS,
    WD,
    PhrasePattern,
    TimePhrase,
    any_of,
    read_count,
    read_ordinal,
    reader_of,
)

PATTERNS: list[PhrasePattern] = []
_reads = partial(reader_of, PATTERNS)


@_reads(
    "vague",
    r"(?:yesterday|gestern|vorgestern|last night|soon|bald|later|spater|sometime|irgendwann|again and again"
    r"|(?:this|next|last|past|coming|nachste[nrs]?|diese[nrsm]?|letzte[nrs]?|vergangene[nrs]?|kommende[nrs]?)"
    r" (?:weekend|wochenende|month|monat|year|jahr|quarter|quartal|summer|winter|sommer|night)"
    r"|(?:(?:at |on |by )?(?:the )?(?:beginning|start|middle) of|(?:toward|towards|around|about|near) the end of"
    r"|(?:at |on )?(?:the )?end of(?! (?:the |this )?month(?: |$))|anfang|mitte|ende(?! (?:des|dieses) monats(?: |$))|gegen (?:anfang|mitte|ende))(?: (?:the|this|next|der|des|dieser|dieses|nachster|nachsten|kommenden))?"
    rf" (?:week|year|quarter|day|month|woche|jahres|quartals|tages|monats|{MONTH})"
    rf"|(?:last|past|letzte[nrs]?|vergangene[nrs]?) (?:week|woche|{SHORT})"
    rf"|(?:in )?(?:a few|a couple of|a couple|several|some|ein paar|einigen?|mehreren) (?:{UNIT})(?: ago)?"
    rf"|(?:{COUNT}) (?:{UNIT}) (?:before|after|earlier|vorher|vor|nach|danach)|in an? (?:second|sec|moment|bit|while|minute or 2)|in kurze|24 / 7"
    rf"|(?:{COUNT}) (?:{UNIT}) ago|vor (?:{COUNT}) (?:{UNIT})"
    r"|(?:once|twice|thrice|einmal|zweimal|dreimal|\d{1,3} (?:times|mal|x)) (?:an?|per|each|every|am|pro|im|in der|jede[nrs]?)"
    rf" (?:{UNIT})|(?:zweimal|dreimal|2 mal|3 mal) (?:taglich|wochentlich|monatlich))",
)
def _vague(_: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.vague = True
    return True


# Distances from now.
@_reads(
    "distance",
    rf"(?:in|within) (?:like |about |around |roughly |exactly |ca \. |circa |etwa |so |ungefahr |genau |just )?(?:(?P<half>half an?|a half|(?:ei)?ner halben|1 halben|a quarter of an|einer viertel|einer dreiviertel|dreiviertel of an"
    rf"|3 quarters of an) (?:hour|stunde)|(?P<one>(?:ei)?ner viertelstunde|(?:ei)?ner dreiviertelstunde)"
    rf"|(?P<count>{COUNT}|{any_of(HALVES)})(?P<and> and a half)? (?P<unit>{UNIT})"
    rf"(?P<more> and a half|(?: ,)? (?:(?:and|und) )?(?P<count2>\d{{1,3}}) (?P<unit2>{UNIT}))?)(?: from now|(?: ')? time)?",
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
    count = HALVES.get(said["count"]) or read_count(said["count"])
    count += 0.5 if said["and"] or said.get("more") == " and a half" else 0
    months, days, seconds = _span(count, UNITS[said["unit"]])
    if said.get("count2"):
        more = _span(int(said["count2"]), UNITS[said["unit2"]])
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
    nth = read_ordinal(hit["nth"])
    phrase.nth, phrase.weekdays, phrase.every = nth, frozenset((DAYS[hit["day"]],)), (1, "months")
    phrase.vague |= not (nth == -1 or 1 <= nth <= 5)
    return True


@_reads(
    "every",
    rf"{EACH} (?P<nth>{NTH}|\d{{1,2}}) (?P<month>{MONTH})",
    rf"{EACH} (?P<month>{MONTH}) (?P<nth>{NTH}|\d{{1,2}})",
)
def _yearly(hit: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.date = (None, MONTHS[hit["month"]], read_ordinal(hit["nth"]))
    phrase.every = (1, "years")
    return True


@_reads(
    "every",
    rf"(?:on |am )?(?:the )?(?P<nth>{NTH})(?: day| tag(?:es)?)? (?:(?:of|in|im|eines) )?(?:every|each|jede[sn]) (?:month|monats?)",
    rf"{EACH} (?P<nth>{NTH})(?: day| tag)?{OF_MONTH}",
    rf"{EACH} (?P<nth>\d{{1,2}} (?:st|nd|rd|th)|\d{{1,2}} \.)(?! (?:{UNIT}|{WD}|{MONTH})(?: |$))",
)
def _monthly(hit: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.month_day, phrase.every = read_ordinal(hit["nth"]), (1, "months")
    return True


@_reads(
    "every",
    r"(?:at |on |am |zum )?(?:the )?(?:end of (?:every|each) month|ende (?:jedes|jeden|eines jeden) monats)|(?:every|each) month (?:at the )?end|jedes monatsende",
)
def _every_end_of_month(_: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.month_day, phrase.every = -1, (1, "months")
    return True


@_reads(
    "every",
    rf"(?:{EACH}|alle) (?P<count>other|second|zweiten?|zweites|dritten?|third|\d{{1,4}}(?: \.)?|half(?: an)?|halbe|quarter(?: of an)?|viertel)"
    rf" ?(?P<unit>{UNIT}|viertelstunde|{WD})(?: (?:on |am )?(?P<day>{SHORT}|(?:{WD})s))?",
    rf"{EACH} (?P<unit>{UNIT}|viertelstunde)(?P<half> and a half)?(?: (?:on |am )?(?P<day>{WD}))?",
)
def _every_unit(hit: re.Match[str], phrase: TimePhrase) -> bool:
    said = hit.groupdict()
    count, name = said.get("count") or "1", said["unit"]
    if name in DAYS:
        phrase.weekdays, name = frozenset((DAYS[name],)), "week"
    number = {"other": 2}.get(count) or ORDINALS.get(count)
    number = number or (int(count.split()[0]) if count[0].isdecimal() else 0)
    unit = "minutes" if name == "viertelstunde" else UNITS[name]
    if name == "viertelstunde":
        number = 15
    elif not number or said.get("half"):
        phrase.vague |= unit != "hours"
        number, unit = 90 if number else 15 if count[0] in "qv" else 30, "minutes"
    phrase.vague |= unit == "seconds" or number < 1
    phrase.every = (number, unit)
    if said.get("day"):
        if unit == "days" and number % 7 == 0:
            phrase.every = (number // 7, "weeks")
        phrase.vague |= phrase.every[1] != "weeks" or phrase.weekdays is not None
        phrase.weekdays = frozenset((ALL_DAYS[hit["day"]],))
    return True


@_reads(
    "every",
    rf"(?P<unit>{ADVERB})(?: (?:reminder|erinnerung)(?: for| fur)?)?",
    r"(?P<unit>everyday)(?= (?:at|@|around|\d))",
    rf"{EACH} (?:single|einzelnen) (?P<unit>day|tag)",
)
def _adverb(hit: re.Match[str], phrase: TimePhrase) -> bool:
    stems = {
        "da": "days",
        "ev": "days",
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
    r"|an (?:werktagen|wochentagen|arbeitstagen)|unter der woche)",
)
def _on_weekdays(_: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.every, phrase.weekdays = (1, "weeks"), frozenset(range(5))
    return True


@_reads(
    "every",
    rf"(?:(?:from|von|every|jeden) )?(?P<first>{WD})s? (?P<link>to|through|thru|till|until|-|bis) (?P<last>{WD})s?",
)
def _range_of_weekdays(hit: re.Match[str], phrase: TimePhrase) -> bool:
    first, last = DAYS[hit["first"]], DAYS[hit["last"]]
    days = frozenset((first + ahead) % 7 for ahead in range((last - first) % 7 + 1))
    moves = hit["link"] in ("to", "till", "until") and (first, last) != (0, 4)
    phrase.every, phrase.weekdays = (1, "weeks"), days
    phrase.listed = not hit[0].startswith(("every", "jeden"))
    phrase.vague |= moves or len(days) < 2  # "from Monday to Tuesday" may be where something moves
    return True


@_reads("always", r"(?:immer|always|stets)(?! (?:noch|wieder|mehr|wenn)(?: |$))")
def _always(_: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.always = True
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
    found = (ALL_DAYS.get(word) for word in hit["days"].split())
    phrase.every, phrase.weekdays = (1, "weeks"), frozenset(day for day in found if day is not None)
    return True


@_reads(
    "every",
    rf"{EACH} (?P<day>{WD})?(?P<part>{PART})",
)
def _every_part(hit: re.Match[str], phrase: TimePhrase) -> bool:
    phrase.every, phrase.part = (1, "weeks" if hit["day"] else "days"), PARTS[hit["part"]]
    if hit["day"]:
        phrase.weekdays = frozenset((DAYS[hit["day"]],))
    phrase.kinds.add("part")
    return True
