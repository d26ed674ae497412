"""Read phrases of time from tokens: a day, a clock, a distance, a repetition, each at most once, in any order. Pure.

The patterns are over the letters of tokens (``words`` says what they stand for), and bounded: a text is read in linear time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.agent.schedules.times.tokens import Token
from bot.agent.schedules.times.zones import NamedZone
from bot.core.patterns import LazyPattern

_SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600}
_DAYS = {"days": 1, "weeks": 7}
_MONTHS = {"months": 1, "years": 12}


@dataclass(slots=True)
class TimePhrase:
    """What a phrase says; what it does not say is None.

    Attributes:
        days: Days from today.
        date: Year (or None), month and day.
        month_day: Day of the month; -1 for the last.
        weekdays: Weekdays, 0 for Monday.
        next_week: Whether it is in the next calendar week.
        nth: Which of a month's weekdays; -1 for the last.
        clock: Hour and minute.
        face: Whether the hour may be one of a clock's face: 5 or 17.
        part: Usual hour of the part of the day.
        distance: Months, days and seconds from now.
        every: Count and unit of a repetition.
        zone: The zone that it names.
        why: Why it says no time: "two_days" or "unclear"; empty if it may say one.
        kinds: The kinds of its parts.
    """

    days: int | None = None
    date: tuple[int | None, int, int] | None = None
    month_day: int | None = None
    weekdays: frozenset[int] | None = None
    next_week: bool = False
    nth: int | None = None
    clock: tuple[int, int] | None = None
    face: bool = False
    part: int | None = None
    distance: tuple[int, int, float] | None = None
    every: tuple[int, str] | None = None
    zone: NamedZone | None = None
    why: str = ""
    kinds: set[str] = field(default_factory=set)


class _Part:
    """The tokens that a pattern matched."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.letters = "".join(token.letter for token in tokens)

    def all(self, letters: str) -> list[Any]:
        """Return the values of the tokens of some classes."""
        return [token.value for token in self.tokens if token.letter in letters]


def amount_of(tokens: Sequence[Token]) -> tuple[float, float, float]:
    """Return the months, days and seconds of a span."""
    months = days = seconds = count = 0.0
    last = 0.0  # the seconds of the unit before
    for token in tokens:
        value = token.value
        if token.letter in "n4":
            count += value
        elif token.letter == "K":
            count = float(f"{value[0]}.{value[1]}")
        elif token.letter == "H" and last:
            seconds += last / 2
        elif token.letter == "H":
            count += 0.5
        elif token.letter == "h":
            seconds += value
        elif token.letter == "E":
            seconds += 3600 * value[0] + 60 * sum(value[1:])
        elif token.letter in _UNITS:
            count = count or 1
            last = _SECONDS.get(value, 0)
            seconds += count * last
            days += count * _DAYS.get(value, 0)
            months += count * _MONTHS.get(value, 0)
            count = 0
    return months, days, seconds + count


_Reader = Callable[[_Part, TimePhrase], bool]


def _distance(part: _Part, phrase: TimePhrase) -> bool:
    months, days, seconds = amount_of(part.tokens)
    phrase.why = "unclear" if months % 1 or days % 1 else phrase.why
    phrase.distance = (int(months), int(days), seconds)
    return True


def _every(part: _Part, phrase: TimePhrase) -> bool:
    if part.letters.strip("eF")[-1:] in ("h", "E") or "H" in part.letters:
        seconds = amount_of(part.tokens)[2]
        phrase.every = (int(seconds // 60), "minutes")
        phrase.why = "unclear" if seconds < 60 or seconds % 60 else phrase.why
        return True
    count = int((part.all("n4oQ") or part.all("e"))[0] or 1) if part.letters != "v" else 1
    unit = str((*part.all(f"v{_UNITS}"), "weeks")[0])
    phrase.every = (count, unit)
    if count < 1 or unit == "seconds":
        phrase.why, phrase.every = "unclear", (1, "minutes")
    return True


def _each_year(_: _Part, phrase: TimePhrase) -> bool:
    phrase.every = (1, "years")
    return True


def _each_month(_: _Part, phrase: TimePhrase) -> bool:
    phrase.every = (1, "months")
    return True


def _each_week(_: _Part, phrase: TimePhrase) -> bool:
    phrase.every = (1, "weeks")
    return True


def _each_day(_: _Part, phrase: TimePhrase) -> bool:
    phrase.every = (1, "days")
    return True


def _weekday(part: _Part, phrase: TimePhrase) -> bool:
    days = part.all("wkWbB")
    sets = [day for day in days if isinstance(day, frozenset)]
    phrase.weekdays = sets[0] if sets else frozenset(days)
    if "G" in part.letters:
        phrase.weekdays = frozenset(range(days[0], days[1] + 1))
    again = set("WBFG") & set(part.letters) or len(phrase.weekdays) > 2
    if again and phrase.every is None:
        phrase.every = (1, "weeks")
    phrase.next_week = "X" in part.letters
    return bool(phrase.weekdays)


def _nth_weekday(part: _Part, phrase: TimePhrase) -> bool:
    if part.letters[-1] in "uZ" and part.all("uZ")[-1] != "months":
        return False
    every = (1, "months") if "e" in part.letters else phrase.every
    phrase.why = phrase.why if every == (1, "months") else "unclear"
    phrase.nth, phrase.weekdays, phrase.every = part.all("noQ")[0], frozenset(part.all("w")), every
    phrase.kinds |= {"every", "weekday"}
    return True


def _month_day(part: _Part, phrase: TimePhrase) -> bool:
    of_month = part.letters[-1] in "uZ"
    day = -1 if "J" in part.letters else int(part.all("n0oQ")[0])
    if (of_month and part.all("uZ")[-1] != "months") or (day < 0 and "J" not in part.letters):
        return False
    if of_month and "e" in part.letters and phrase.every is None:
        phrase.every = (1, "months")
        phrase.kinds.add("every")
    phrase.month_day = day
    return True


def _date(part: _Part, phrase: TimePhrase) -> bool:
    if part.letters[-1] in "dV":
        *date, _ = (*part.all("dV")[0], True)[:4]
        phrase.date = (date[0], date[1], date[2])
        phrase.why = "two_days" if len(part.all("dV")[0]) > 3 else phrase.why
        return True
    *months, day = [int(value) for value in part.all("n0oQ")]
    month = (part.all("m") or months)[0]
    phrase.date = (part.all("4")[0] if "4" in part.letters else None, month, day)
    return True


def _clock(part: _Part, phrase: TimePhrase) -> bool:
    letters, half, at = part.letters, part.all("P"), part.all("a")
    named = part.all("tEKT")
    if not named:
        hour, minute = (*part.all("n0"), 30 if "H" in letters else 0)[:2]
    else:
        hour, minute = (named[0], 0) if "T" in letters else (*named[0], 0)[:2]
    if not (at or half or phrase.kinds - {"distance", "part"}):
        if letters in ("nC", "E") and not minute:
            return False  # "8 horas", "2h": how long something takes
    for more in part.all("y"):
        hour, minute = (hour, more) if more > 0 else (hour - 1 or 12, 60 + more)
    wall = next((token.end - token.start for token in part.tokens if token.letter == "t"), 0)
    # In English, "at 5:30" is on a clock's face, and "05:30" on a day of 24 hours.
    face = not named or (wall and bool(at and at[0]) and (hour > 9 or wall % 3 == 1))
    phrase.face = bool(face and "0" not in letters and not half and 1 <= hour < 12)
    if half and hour > 12:
        phrase.why = "unclear"
    elif half:
        hour = hour % 12 + half[0]
    if hour > 23 or max(minute, *named[0] if wall else (0,)) > 59:
        phrase.why = "unclear"
    phrase.clock = (int(hour), int(minute))
    return True


def _near(part: _Part, phrase: TimePhrase) -> bool:
    phrase.days = part.all("r")[0]
    return True


def _part_of_day(part: _Part, phrase: TimePhrase) -> bool:
    phrase.part = part.all("pR")[0]
    return "R" in part.letters or bool(phrase.kinds - {"distance"})


def _zone(part: _Part, phrase: TimePhrase) -> bool:
    phrase.zone = part.all("z")[0]
    return True


def _unclear(_: _Part, phrase: TimePhrase) -> bool:
    phrase.why = "unclear"
    return True


_UNITS = "uMCDZYO"
_UNIT = f"[{_UNITS}]"
_AMOUNT = rf"(?:[n4K]H?{_UNIT}H?|H{_UNIT}|n?h|E)"
SPAN = rf"{_AMOUNT}(?:[g,]{{0,2}}{_AMOUNT}){{0,2}}"
_NTH = "(?:[n0][qj]?|o|Q)"
_DATE = rf"(?:{_NTH}[sN]?m(?:[s,]{{0,2}}4[uYs]?)?|mN?{_NTH}(?!{_UNIT})(?:,?4)?|(?:4Y)?[n0]Z[n0][Dqj]|d|[sO]V|V(?=[,sNO]{0, 2}(?:[aetE]|[n0][cCP])))"
_OF_MONTH = "[sNOi]{0,2}e?[sN]?[uZ]"
_MORE = "[g,]{1,2}[sNOai]?"
_TIMED = "(?=[,j]{0,2}(?:[amtETd]|[n0][cCPqjm]|K[cP]))"
_PARTS: list[tuple[str, LazyPattern, _Reader]] = [
    (kind, LazyPattern(pattern), reader)
    for kind, reader, *patterns in (
        ("distance", _distance, rf"i[sN]?(?:{SPAN}|{_UNIT}H?)f?", rf"{SPAN}f"),
        ("every", _each_week, "eO(?=w)"),
        ("every", _every, rf"e(?:[n4]H?|Hn?|[n0][qj]|o|Q)?{_UNIT}", rf"(?:[n4]H?)?{_UNIT}F"),
        ("every", _every, "e(?:n?h|E)", "n?hF", "v", "e(?:[n0][qj]|[noQ])?(?=[sN]?[wkb])"),
        ("every", _each_year, f"e(?={_DATE})"),
        ("every", _each_month, rf"e(?=[n0][qj]|o)(?={_NTH}{_OF_MONTH})"),
        ("every", _each_day, "e(?=[pR])"),
        ("weekday", _weekday, rf"w(?:{_MORE}w){{0,6}}F?", "w[sN]?Gw", rf"W(?:{_MORE}W){{0,6}}"),
        ("weekday", _weekday, "b", "B", "X[,sN]{0,2}w", "wX", rf"k(?:[g,j,]{{1,2}}[sN]?k){{0,6}}{_TIMED}", rf"kGk{_TIMED}", r"(?<=e)k"),
        ("nth", _nth_weekday, rf"e?[sNO]{{0,2}}{_NTH}[sN]?w{_OF_MONTH}", "o[sN]?w"),
        ("month_day", _month_day, rf"[sO]N?(?:[n0][qj]|o|Q|J)(?:{_OF_MONTH})?(?![sN]?m)", "J", "[n0]D"),
        ("month_day", _month_day, rf"(?:[n0][qjD]|o){_OF_MONTH}", f"O[n0](?!{_UNIT}|j?[sN]?m)"),
        ("date", _date, _DATE),
        ("clock", _clock, "a?tc?P?", "Pt", "a?nP", "a?Pn(?:[cC](?:nM?|H)?)?", "a[n0](?![HKn4P]|[uMDZYq])"),
        ("clock", _clock, "a?[n0][cC](?:g?H|[n0]M?)?P?", "a[n0]H", "a?E", "aK", "a?K[cP]", "a?T", "a?yn[cC]?"),
        ("near", _near, "r"),
        ("part", _part_of_day, "[pR]"),
        ("zone", _zone, "z(?=[atnEK])", "z"),
        ("vague", _unclear, "X"),
    )
    for pattern in patterns
]  # fmt: skip
_NO_START = ("", *"x,;gGLlqjcFfSuMCDZY")
_BETWEEN = LazyPattern(r"[sSNOai,]{0,3}")


def read_phrase(tokens: Sequence[Token], letters: str, first: int) -> tuple[TimePhrase, int] | None:
    """Return the phrase that begins at a token, and the number of the token after it; None if none does."""
    phrase, at, end = TimePhrase(), first, first
    while True:
        skipped = _BETWEEN.match(letters, end)
        for begin in range(end, skipped.end() + 1 if skipped else end + 1):
            at = (
                0
                if letters[begin : begin + 1] in _NO_START
                else _read_part(tokens, letters, begin, phrase)
            )
            if at:
                break
        else:
            break
        end = at
    if not phrase.kinds - {"zone"}:
        return None
    while letters.startswith("S", end):
        end += 1
    return phrase, end


def _read_part(tokens: Sequence[Token], letters: str, begin: int, phrase: TimePhrase) -> int:
    """Read the longest part that begins at a token, and return where it ends; 0 if none does."""
    hits = []
    for kind, pattern, reader in _PARTS:
        hit = None if kind in phrase.kinds else pattern.match(letters, begin)
        if hit:
            hits.append((hit.end(), kind, reader))
    for end, kind, reader in sorted(hits, key=lambda one: -one[0]):
        if reader(_Part(tokens[begin:end]), phrase):
            phrase.kinds.add(kind)
            return end
    return 0
