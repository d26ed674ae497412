"""Extract the numbers, times and dates of a text. Pure.

Rule 1: a number has every reading that its form allows: 1.500 is 1500 and 1.5.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.core.patterns import LazyPattern
from bot.language.dates import PartialDate
from bot.language.folding import UNSPACED, words
from bot.language.lexicon import MONTHS, WEEKDAYS
from bot.language.numerals import CJK_NUMBER, cjk_to_digits, with_digits

_DIGITS = LazyPattern(r"\d{1,3}(?:[ ,.'\u00a0\u202f]\d{3})+(?!\d)(?:[.,]\d{1,9})?|\d+(?:[.,]\d+)*")
_CLOCK = LazyPattern(
    r"(?<![\d.,])(\d{1,2})(?:[:.h](\d\d))? ?(am\b|pm\b|a\.m\.|p\.m\.|uhr\b|h\b(?!\d)|o'clock)"
    r"|(?<![\d.,:])(\d{1,2})[:h](\d\d)(?![\d:])|(上午|下午|晚上|早上|午前|午後)?(\d{1,2})[点點時](?:(\d{1,2})分|(半))?"
)
_ISO = LazyPattern(r"(?<!\d)(\d{4})-(\d\d)(?:-(\d\d))?(?!\d)")
_DOTTED = LazyPattern(
    r"(?<![\d.,/])(\d{1,2})([./])(\d{1,2})"
    r"(?:\2(\d{4}|\d\d)(?![\d/])|(?<=\.\d)\.(?!\d)|(?<=\.\d\d)\.(?!\d)|(?<=/\d)(?![\d./,])|(?<=/\d\d)(?![\d./,]))"
)
_CJK_DATE = LazyPattern(r"(?:(\d{4})年)?(?:(\d{1,2})月(?!间))(?:(\d{1,2})[日号號])?|(\d{4})年")
_PARTS_OF_HOURS = (
    (LazyPattern(r"\bhalf past (\d{1,2})\b|\b(\d{1,2})(?: h| heures?)? et demie?\b|\b(\d{1,2}) y media\b|\b(\d{1,2}) e mezz[ao]\b|\b(\d{1,2}) e meia\b|(\d{1,2}) с половиной"), 30),
    (LazyPattern(r"\bhalb (\d{1,2})\b|\bполовин\w (\d{1,2})"), -30),
    (LazyPattern(r"\bquarter past (\d{1,2})\b|\bviertel nach (\d{1,2})\b|\b(\d{1,2})(?: h| heures?)? et quart\b|\b(\d{1,2}) y cuarto\b|\b(\d{1,2}) e un quarto\b"), 15),
    (LazyPattern(r"\bquarter to (\d{1,2})\b|\bviertel vor (\d{1,2})\b|\b(\d{1,2})(?: h| heures?)? moins le quart\b|\b(\d{1,2}) menos cuarto\b|\b(\d{1,2}) meno un quarto\b"), -15),
)  # fmt: skip
_SPELLINGS = (
    (LazyPattern(r"\ba tenner\b"), "10 pounds"), (LazyPattern(r"\ba fiver\b"), "5 pounds"), (LazyPattern(r"\bgrand\b"), "thousand"),
    (LazyPattern(r"\b(?:a )?fortnight\b"), "2 weeks"), (LazyPattern(r"\b(?:the )?twins\b"), "2 twins"), (LazyPattern(r"\ba couple of\b"), "2"),
    (LazyPattern(r"\b(?:a )?year and a half\b|\banderthalb jahre?\b|\bun an et demi\b"), "18 months 1.5 years"),
    (LazyPattern(r"\b(?:an )?hour and a half\b|\banderthalb stunden?\b"), "90 minutes 1.5 hours"),
    (LazyPattern(r"\btwice\b|\bzweimal\b|\bdeux fois\b|\bdos veces\b|\bdue volte\b|\bduas vezes\b|\bдва раза\b|\bдважды\b"), "2 times"),
    (LazyPattern(r"\bboth\b|\bbeide[ns]?\b|\ba pair of\b"), "2"), (LazyPattern(r"\bthrice\b"), "3 times"),
    (LazyPattern(r"\bmonthly\b"), "1 month"),
)  # fmt: skip
_EVERY_OTHER = LazyPattern(r"\bevery other\b|\balle zwei\b|\bun \w+ sur deux\b|\bcada dos\b")
_DUE = LazyPattern(
    r"\bdue(?= (?:in|on|at|to|by|date|from|back|next|this|tomorrow|before|after|end)\b|[.;]?$)"
)
_COUNTER = LazyPattern(
    r"(?<![一二两兩三四五六七八九十百千零〇])[一二两兩三四五六七八九十百千零〇]++(?=[个個岁歳才月日年点時号天只匹本枚冊回台名杯次件人週周支隻条])"
)
_SCALES = (
    (LazyPattern(r"(\d{1,9}(?:[.,]\d{1,3})?) ?(?:k|thousand|tausend|mille|mila|mil|тыс\w{0,4})\b"), 1000),
    (LazyPattern(r"(\d{1,9}(?:[.,]\d{1,3})?) ?(?:m|mio|mn|millions?|millionen|millones|milion\w|milhoes|миллион\w{0,2})\b"), 10**6),
    (LazyPattern(r"(\d{1,9}(?:\.\d{1,3})?) ?万"), 10**4),
)  # fmt: skip
_JOINED = LazyPattern(r"\+?\d[\d ()/.-]{4,40}\d")
_MONTH_WORDS = "|".join(sorted((re.escape(m) for m in MONTHS), key=len, reverse=True))
_DAY_MONTH = LazyPattern(
    rf"(?<!\d)(\d{{1,2}})(?:st|nd|rd|th|er|\.|º|°|o)? ?(?:of |de |di )?(?:the )?\b({_MONTH_WORDS})\b\.?,? ?(?:de |del )?(\d{{4}})?"
)
_MONTH_DAY = LazyPattern(
    rf"\b({_MONTH_WORDS})\b\.? (?:the )?(\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,? (\d{{4}}))?"
)
_SHARED_MONTH = LazyPattern(
    rf"(?<!\d)(\d{{1,2}})(?:st|nd|rd|th|\.)?(?= ?(?:and|und|et|y|e|и|&|-|to|bis|bis zum|au|al|ao|a|до|по) ?(?:the )?\d{{1,2}}(?:st|nd|rd|th|\.)? (?:of )?({_MONTH_WORDS})\b)"
)
_FEASTS = (
    (LazyPattern(r"\bnew year's day\b|\bneujahr(?:stag)?\b|\bjour de l'an\b|\bcapodanno\b|\bano nuevo\b"), "1 january"),
    (LazyPattern(r"\bnew year's eve\b|\bsilvester\b|\bnochevieja\b"), "31 december"),
    (LazyPattern(r"\bchristmas eve\b|\bheiligabend\b|\bnochebuena\b"), "24 december"),
    (LazyPattern(r"\bchristmas day\b"), "25 december"),
)  # fmt: skip
_MONTH_ONLY = LazyPattern(rf"\b({_MONTH_WORDS})\b(?:\.?,? (?:de |of )?(\d{{4}}))?")


_MONTH_CONTEXTS = {
    month: LazyPattern(
        rf"\b(?:{month.capitalize()}|(?:fin|debut|mi|de|en|pour|para|per|ab|bis|fur|im|in|since|until|last|next|this) {month})\b"
    )
    for month in MONTHS
    if len(month) <= 4
}
"""Contexts in which a month name of four or fewer letters is surely a month, not another word."""


@dataclass(frozen=True, slots=True)
class Quantities:
    """The numbers and dates of a text.

    Attributes:
        numbers: Each number as written, with its possible readings.
        days: Dates and weekdays.
        digit_runs: Long runs of digits without separators, such as phone numbers.
    """

    numbers: tuple[tuple[str, frozenset[str]], ...]
    days: tuple[PartialDate, ...]
    digit_runs: tuple[str, ...]

    @property
    def readings(self) -> frozenset[str]:
        """All readings of all numbers."""
        return frozenset(reading for _, all_of_it in self.numbers for reading in all_of_it)


def _canonical(digits: str) -> str:
    whole, _, part = digits.partition(".")
    part = part.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{part}" if part else "")


def _readings(written: str) -> frozenset[str]:
    readings = (
        {_canonical(re.sub(r"[ ',\u00a0\u202f]", "", written))}
        if written.count(".") <= 1
        else set()
    )
    if re.fullmatch(r"\d{1,3}(?:[ ,.'\u00a0\u202f]\d{3})+(?:[.,]\d+)?", written):
        head = re.match(r"\d{1,3}(?:[ ,.'\u00a0\u202f]\d{3})+", written)
        joined = re.sub(r"\D", "", head.group() if head else written)
        rest = written[head.end() :] if head else ""
        readings.add(_canonical(joined + rest.replace(",", ".")))
    if re.fullmatch(r"\d+[.,]\d+", written):
        readings.add(_canonical(written.replace(",", ".")))
        if "," in written and not re.fullmatch(r"\d{1,3},\d{3}", written):
            readings.discard(_canonical(written.replace(",", "")))
    return frozenset(readings or {_canonical(re.sub(r"\D", "", written))})


def _clock(text: str) -> list[tuple[str, frozenset[str]]]:
    times = []
    for hit in _CLOCK.finditer(text):
        half, minutes = (
            hit[3] or hit[6] or "",
            hit[2] or hit[5] or hit[8] or ("30" if hit[9] else "00"),
        )
        hour = int(hit[1] or hit[4] or hit[7])
        if hour > 24 or int(minutes) > 59:
            continue
        if (half.startswith("p") or half in ("下午", "晚上", "午後")) and hour < 12:
            hour += 12
        elif half.startswith("a") and hour == 12:
            hour = 0
        times.append((hit.group(), frozenset({f"{hour}:{minutes}"})))
    return times


def _year(text: str | None) -> int | None:
    if not text:
        return None
    return int(text) if len(text) == 4 else 2000 + int(text)


def _take_days(text: str) -> tuple[list[PartialDate], str]:
    """Return the written dates, and the text without them."""
    days: list[PartialDate] = []

    def keep(pattern: LazyPattern, order: str, text: str) -> str:
        def one(hit: re.Match[str]) -> str:
            parts = dict(zip(order, hit.groups(), strict=False))
            month = parts.get("m")
            number = (MONTHS.get(month) or int(month)) if month else None
            day = int(parts["d"]) if parts.get("d") else None
            if (number or 1) > 12 or not 0 < (day or 1) < 32:
                if order != "d.my" or (day or 32) > 12:
                    return hit.group()
                number, day = day, number
            days.append(
                PartialDate(
                    _year(parts.get("y") or parts.get("Y")), number, day, source_text=hit.group()
                )
            )
            if order == "d.my" and parts["."] == "/" and number and day and day <= 12:
                days.append(
                    PartialDate(_year(parts.get("y")), day, number, source_text=hit.group())
                )
            return " ; "

        return pattern.sub(one, text)

    text = keep(_ISO, "ymd", text)
    text = keep(_DAY_MONTH, "dmy", text)
    text = keep(_MONTH_DAY, "mdy", text)
    text = keep(_CJK_DATE, "ymdY", text)
    return days, keep(_DOTTED, "d.my", text)


def _spelled_out(text: str) -> str:
    """Return a text with numbers inserted behind words such as "fortnight" or "twice"."""
    for pattern, spelled in _SPELLINGS:
        text = pattern.sub(rf"\g<0> {spelled}", text)
    return text


def _with_hours(text: str) -> str:
    """Return a text with times such as "half past six" in digits."""
    for pattern, minutes in _PARTS_OF_HOURS:

        def time(hit: re.Match[str], minutes: int = minutes) -> str:
            hour = int(next(filter(None, hit.groups())))
            at = (hour * 60 + minutes) % (24 * 60)
            return f"{at // 60}:{at % 60:02}" if hour <= 24 else hit.group()

        text = pattern.sub(time, text)
    return text


def _with_feasts(text: str) -> str:
    """Return a text with dates for feasts, and the month after each day of "25 and 27 November"."""
    for pattern, day in _FEASTS:
        text = pattern.sub(day, text)
    return _SHARED_MONTH.sub(r"\1 \2", text)


def _month_names(original: str, text: str) -> list[PartialDate]:
    """Return months without a day, except ambiguous words ("may", "mars") out of context."""
    days = []
    for hit in _MONTH_ONLY.finditer(text):
        written = hit[1]
        surely = _MONTH_CONTEXTS.get(written)
        if surely is not None and not (surely.search(original) or surely.search(text)):
            continue
        days.append(PartialDate(_year(hit[2]), MONTHS[written], source_text=hit.group()))
    return days


def extract_quantities(original: str, text: str, *, demanded: bool) -> Quantities:
    """Return the numbers and dates of a text.

    Args:
        original: The text with its capital letters.
        text: The folded text.
        demanded: Leave out doubtful numbers, as of a claim whose numbers its evidence must hold
            (Chinese numerals without a counter); if False, include every possible reading, as of
            evidence.
    """
    # "Due" is Italian for two.
    text = _DUE.sub(" ", text)
    if demanded:
        text = _COUNTER.sub(lambda run: cjk_to_digits(run.group()), text)
        text = CJK_NUMBER.sub(" ", text)
    else:
        text = _spelled_out(text)
    plain = _with_feasts(_with_hours(with_digits(text)))
    if _EVERY_OTHER.search(plain):
        plain += " 2"
    days, rest = _take_days(plain)
    days += _month_names(original, rest if demanded else plain)
    numbers: list[tuple[str, frozenset[str]]] = _clock(rest)
    if demanded:
        rest = _CLOCK.sub(" ; ", rest)
    for pattern, scale in _SCALES:
        hits = list(pattern.finditer(rest))
        for hit in hits:
            value = float(hit[1].replace(",", ".")) * scale
            numbers.append((hit.group(), frozenset({_canonical(f"{value:.3f}")})))
        if demanded and hits:
            rest = pattern.sub(" ; ", rest)
    days += [PartialDate(weekday=WEEKDAYS[w], source_text=w) for w in words(plain) if w in WEEKDAYS]
    days += [
        PartialDate(weekday=day, source_text=name)
        for name, day in WEEKDAYS.items()
        if len(name) > 1 and UNSPACED.search(name) and name in text
    ]
    for hit in _DIGITS.finditer(rest if demanded else plain):
        if _part_of_a_name(rest if demanded else plain, hit) and demanded:
            continue
        written = hit.group()
        numbers.append((written, _readings(written)))
        if not demanded:
            numbers += [
                (part, frozenset({_canonical(part)})) for part in re.findall(r"\d+", written)
            ]
    joined = tuple(re.sub(r"\D", "", run) for run in _JOINED.findall(plain))
    return Quantities(tuple(numbers), tuple(days), joined)


def _part_of_a_name(text: str, hit: re.Match[str]) -> bool:
    """Return whether digits belong to a word such as "B12", which counts as a name."""
    before = text[hit.start() - 1 : hit.start()]
    return before.isalpha() and before.isascii()
