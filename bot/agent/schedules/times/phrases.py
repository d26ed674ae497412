"""Read phrases of time from tokens: a day, a clock, a distance, a repetition, each at most once, in any order. Pure.

The patterns are over the letters of tokens (``words`` says what they stand for), and bounded: a text is read in linear time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from bot.agent.schedules.times.tokens import Token
from bot.agent.schedules.times.zones import NamedZone
from bot.core.patterns import LazyPattern
from bot.core.recurrence import Unit

SIZES = {
    "seconds": (0, 0, 1), "minutes": (0, 0, 60), "hours": (0, 0, 3600), "days": (0, 1, 0), "weeks": (0, 7, 0),
    "months": (1, 0, 0), "years": (12, 0, 0),
}  # fmt: skip
"""Months, days and seconds of each unit."""


@dataclass(slots=True)
class TimePhrase:
    """What a phrase says; what it does not say is None."""

    days: int | None = None  # from today
    date: tuple[int | None, int, int] | None = None  # year, if it is named, month and day
    month_day: int | None = None  # -1 for the last
    weekdays: frozenset[int] | None = None  # 0 for Monday
    next_week: bool = False
    clock: tuple[int, int] | None = None
    face: bool = False  # whether the hour may be one of a clock's face: 5 or 17
    part: int | None = None  # usual hour of the part of the day
    distance: tuple[int, int, float] | None = None  # months, days and seconds from now
    every: tuple[int, Unit] | None = None
    zone: NamedZone | None = None
    why: Literal["", "unclear", "two_days"] = ""  # if it is no time
    kinds: set[str] = field(default_factory=set)
    spans: tuple[tuple[int, int], ...] = ()  # its places in the text


_Part = Sequence[Token]
"""The tokens that a pattern matched."""
_Reader = Callable[[_Part, str, TimePhrase], bool | None] | tuple[str, object]
"""Reads a part, with its letters, and returns False if it is something else; or a name and value, None for the token's."""


def _values(part: _Part, letters: str) -> list[Any]:
    return [token.value for token in part if token.letter in letters]


def _amount(part: _Part) -> list[float]:
    """Return the months, days and seconds of a span."""
    total, count, last = [0.0, 0.0, 0.0], 0.0, 0
    for letter, value in ((token.letter, token.value) for token in part):
        if letter in "n4K":
            count += float(f"{value[0]}.{value[1]}") if letter == "K" else value
        elif letter == "H":  # half of the unit before, or of the one that comes
            total[2] += last / 2
            count += 0 if last else 0.5
        elif letter in "hEI":
            total[2] += value if letter == "h" else 3600 * value[0] + 60 * sum(value[1:])
        elif letter in _UNITS:
            last = SIZES[value][2]
            total = [a + b * (count or 1) for a, b in zip(total, SIZES[value], strict=True)]
            count = 0
    return total


def _distance(part: _Part, _letters: str, phrase: TimePhrase) -> None:
    months, days, seconds = _amount(part)
    phrase.why = "unclear" if months % 1 or days % 1 else phrase.why
    phrase.distance = (int(months), int(days), seconds)


def _every(part: _Part, letters: str, phrase: TimePhrase) -> None:
    unit = (*_values(part, f"v{_UNITS}"), "weeks")[0]
    count = (*_values(part, "n4oQ"), *_values(part, "e"), 1)[0]
    if letters.strip("eF")[-1:] in ("h", "E", "I") or "H" in letters:
        unit, count = "minutes", _amount(part)[2] / 60
    phrase.every = (int(count or 1), unit)
    if unit == "seconds" or count % 1 or count < 1:
        phrase.why, phrase.every = "unclear", (1, "minutes")


def _weekday(part: _Part, letters: str, phrase: TimePhrase) -> None:
    days = _values(part, "wkWbB")
    phrase.weekdays = days[0] if isinstance(days[0], frozenset) else frozenset(days)
    if set("WBF") & set(letters) or len(phrase.weekdays) > 2:
        phrase.every = phrase.every or (1, "weeks")
    phrase.next_week = "X" in letters


def _month_day(part: _Part, letters: str, phrase: TimePhrase) -> bool | None:
    day = -1 if "J" in letters else int(_values(part, "n0oQ")[0])
    if (day < 0 and "J" not in letters) or (_values(part, "uZ") or ["months"])[-1] != "months":
        return False
    phrase.month_day = day
    if "e" in letters and phrase.every is None:
        phrase.every = (1, "months")
        phrase.kinds.add("every")
    return None


def _date(part: _Part, letters: str, phrase: TimePhrase) -> None:
    if letters[-1] in "dV":
        year, month, day, *unsure = _values(part, "dV")[0]
        phrase.why = "two_days" if unsure else phrase.why
    else:
        *months, day = _values(part, "n0oQ")
        year, month = (*_values(part, "4"), None)[0], (*_values(part, "m"), *months)[0]
    phrase.date = (year, month, day)


def _clock(part: _Part, letters: str, phrase: TimePhrase) -> bool | None:
    half, at, named = (_values(part, one) for one in ("P", "a", "tEIKT"))
    hour, minute, *more = (*_values(part, "n0"), 30 if "H" in letters else 0, 0)
    if named:
        hour, minute, *more = (named[0], 0, 0) if "T" in letters else (*named[0], 0, 0)
    in_a_day = at or half or minute or phrase.kinds - {"distance", "part"}
    if letters in ("nC", "E") and not in_a_day:
        return False  # "8 horas", "2h": how long something takes
    for minutes in _values(part, "y"):
        hour, minute = (hour, minutes) if minutes > 0 else (hour - 1 or 12, 60 + minutes)
    wall = next((token.end - token.start for token in part if token.letter == "t"), 0)
    # In English, "at 5:30" is on a clock's face, and "05:30" on a day of 24 hours.
    face = not named or (wall and bool(at and at[0]) and (hour > 9 or wall % 3 == 1))
    phrase.face = bool(face and "0" not in letters and not half and 1 <= hour < 12)
    if hour > (12 if half else 23) or max(minute, *more) > 59:
        phrase.why = "unclear"
    phrase.clock = (hour % 12 + half[0] if half else hour, minute)
    return None


def _part_of_day(part: _Part, letters: str, phrase: TimePhrase) -> bool:
    phrase.part = part[0].value
    return "R" in letters or bool(phrase.kinds - {"distance"})


_UNITS = "uMCDZYO"
_UNIT = f"[{_UNITS}]"
_AMOUNT = rf"(?:[n4K]H?{_UNIT}H?|H{_UNIT}|n?h|[EI])"
SPAN = rf"{_AMOUNT}(?:[g,]{{0,2}}{_AMOUNT}){{0,2}}"
_NTH = "(?:[n0][qj]?|o|Q)"
_DATE = (
    rf"(?:{_NTH}[sN]?m(?:[s,]{{0,2}}4[uYs]?)?|mN?{_NTH}(?!{_UNIT})(?:,?4)?|(?:4Y)?[n0]Z[n0][Dqj]|d|[sO]V"
    rf"|V(?=[,sNO]{{0,2}}(?:[atE]|[n0][cCP])))"
)
_OF_MONTH = "[sNOi]{0,2}e?[sN]?[uZ]"
_MORE = "[g,]{1,2}[sNOai]?"
_TIMED = "(?=[,j]{0,2}(?:[amtETd]|[n0][cCPqjm]|K[cP]))"
_PARTS: list[tuple[str, LazyPattern, _Reader]] = [
    (kind, LazyPattern(pattern), reader)
    for kind, reader, *patterns in (
        ("distance", _distance, rf"i[sN]?(?:{SPAN}|{_UNIT}H?)f?", rf"{SPAN}f"),
        ("every", ("every", (1, "weeks")), "eO(?=w)"),
        ("every", _every, rf"e(?:[n4]H?|Hn?|[n0][qj]|o|Q)?{_UNIT}", rf"(?:[n4]H?)?{_UNIT}F"),
        ("every", _every, "e(?:n?h|[EI])", "n?hF", "v", "e(?:[n0][qj]|[noQ])?(?=[sN]?[wWkb])"),
        ("every", ("every", (1, "years")), f"e(?={_DATE})"),
        ("every", ("every", (1, "months")), rf"e(?=[n0][qj]|o)(?={_NTH}{_OF_MONTH})"),
        ("every", ("every", (1, "days")), "e(?=[pR])"),
        ("weekday", _weekday, rf"w(?:{_MORE}w){{0,6}}F?", rf"W(?:{_MORE}W){{0,6}}"),
        ("weekday", _weekday, "[bB]", "X[,sN]{0,2}w", "wX", "(?<=e)k"),
        ("weekday", _weekday, rf"k(?:[g,j]{{1,2}}[sN]?k){{0,6}}{_TIMED}"),
        ("month_day", _month_day, rf"[sO]N?(?:[n0][qj]|o|Q|J)(?:{_OF_MONTH})?(?![sN]?m)", "J"),
        ("month_day", _month_day, rf"(?:[n0][qjD]|o){_OF_MONTH}", f"O[n0](?!{_UNIT}|j?[sN]?m)"),
        ("month_day", _month_day, "[n0]D"),
        ("date", _date, _DATE),
        ("clock", _clock, "a?tc?P?", "Pt", "a?nP", "a?Pn(?:[cC](?:nM?|H)?)?", "a[n0]H", "aI"),
        ("clock", _clock, "a?[n0][cC](?:g?H|[n0]M?)?P?", "a[n0](?![HKn4PuMDZYq])"),
        ("clock", _clock, "a?E", "aK", "a?K[cP]", "a?T", "a?yn[cC]?"),
        ("near", ("days", None), "r"),
        ("part", _part_of_day, "[pR]"),
        ("zone", ("zone", None), "z"),
        (
            "vague",
            ("why", "unclear"),
            "X",
            rf"e?[sNO]{{0,2}}{_NTH}[sN]?w{_OF_MONTH}",
            "o[sN]?w",
            "kGk",
        ),
    )
    for pattern in patterns
]
_NO_START = "x,;gGLlqjcFfSuMCDZY"
_BETWEEN = "sSNOai,"


def read_phrase(tokens: Sequence[Token], letters: str, at: int) -> tuple[TimePhrase | None, int]:
    """Return the phrase that begins at a token, and the number of the token after it; None and ``at`` if none does."""
    phrase, begin, end = TimePhrase(), at, at
    while at < min(len(letters), end + 4):
        read = 0 if letters[at] in _NO_START else _read_part(tokens, letters, at, phrase)
        if not read and letters[at] not in _BETWEEN:
            break
        end, at = (read, read) if read else (end, at + 1)
    if not phrase.kinds - {"zone"}:
        return None, begin
    return phrase, end + len(letters[end:]) - len(letters[end:].lstrip("S"))


def _read_part(tokens: Sequence[Token], letters: str, begin: int, phrase: TimePhrase) -> int:
    """Read the longest part that begins at a token, and return where it ends; 0 if none does."""
    new = (part for part in _PARTS if part[0] not in phrase.kinds)
    hits = [(hit.end(), *one) for one in new if (hit := one[1].match(letters, begin))]
    for end, kind, _, read in sorted(hits, key=lambda one: -one[0]):
        if isinstance(read, tuple):
            setattr(phrase, read[0], read[1] or tokens[begin].value)
        elif read(tokens[begin:end], letters[begin:end], phrase) is False:
            continue
        phrase.kinds.add(kind)
        return end
    return 0
