"""Find values in the words of people: whole, and as they were written. Pure.

Rule 1: only case and spaces are folded. Look-alike letters, accents, invisible characters and other
    spellings of an address make another value.
Rule 2: a value stands in words only between spaces, or punctuation next to a space: "Ann" does not
    stand in "Anne" or "ann@example.com". In scripts without spaces, any place will do.
Rule 3: a number stands for each reading that its form allows (1.500 is 1500 and 1.5), and for no
    part of it.
Rule 4: a value of several words stands there only as they follow each other in one text.
Rule 5: a name that others chose is no word of who mentions them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from bot.bus import OTHERS_NAME
from bot.core.folding import UNSPACED
from bot.core.patterns import LazyPattern
from bot.core.text import normalize_unicode
from bot.memory.records.argument_labels import Origin

_PUNCTUATION = frozenset(".,;:!?()[]{}<>\"'«»„“”‚‘’…¿¡。，、！？；：「」『』（）*_`")
_AROUND = "".join(sorted(_PUNCTUATION))
_LONGEST_PUNCTUATION = 8
_DIGIT = LazyPattern(r"\d")
_POSSESSIVE = LazyPattern(r"['’]s(?!\w)")
_CURRENCY = r"(?:[$€£¥₽₹]|usd|eur|gbp|chf|jpy|euros?|dollars?|pounds?)"
_AMOUNT = LazyPattern(
    rf"{_CURRENCY}?(?P<number>-?\d{{1,3}}(?:[.,'’\u00a0\u202f]\d{{3}}){{1,6}}(?:[.,]\d{{1,9}})?|-?\d{{1,30}}(?:[.,]\d{{1,9}})?){_CURRENCY}?"
)
_NUMBER = LazyPattern(r"-?\d{1,30}(?:\.\d{1,30})?")
_GROUPS = LazyPattern(r"-?\d{1,3}(?:([.,'’\u00a0\u202f])\d{3})(?:\1\d{3})*")


@dataclass(frozen=True, slots=True)
class Found:
    """Where a value stands.

    Attributes:
        origin: Whose words these are.
        entry: Id of their entry; 0 if it is on another tape.
    """

    origin: Origin
    entry: int = 0


@dataclass(frozen=True)
class SpokenWords:
    """A text, and whose it is.

    Attributes:
        text: The text, with a sign that nobody writes for each name that others chose.
        found: What a value that stands in it gets.
    """

    text: str
    found: Found = field(default_factory=lambda: Found(Origin.PERSON))

    def __post_init__(self) -> None:
        """Take out the names, with which words before them and after them must not join."""
        object.__setattr__(
            self, "text", OTHERS_NAME.sub(" \N{OBJECT REPLACEMENT CHARACTER} ", self.text)
        )

    @cached_property
    def folded(self) -> str:
        """The text as values are looked for in it."""
        return fold_value(self.text)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """All readings of the numbers that are words of their own."""
        return frozenset(
            reading
            for word in self.folded.split()
            if _DIGIT.search(word) and (hit := _AMOUNT.fullmatch(word.strip(_AROUND))) is not None
            for reading in number_readings(hit["number"])
        )

    def holds(self, value: str) -> bool:
        """Return whether a value stands in the text."""
        wanted = fold_value(value)
        if not any(map(str.isalnum, wanted)):
            return False
        if (number := plain_number(wanted)) is not None:
            return number in self.numbers
        at = self.folded.find(wanted)
        while at >= 0:
            if _is_whole(self.folded, at, at + len(wanted)):
                return True
            at = self.folded.find(wanted, at + len(wanted))
        return False


def fold_value(text: str) -> str:
    """Return a text in lower case with single spaces, otherwise as it is written."""
    return " ".join(normalize_unicode("NFC", text).lower().split())


def plain_number(text: str) -> str | None:
    """Return the only reading of a text that is a bare number; None if it is none."""
    return _canonical(text) if _NUMBER.fullmatch(text) else None


def number_readings(written: str) -> frozenset[str]:
    """Return what a number may mean: ``1,500`` is 1500, and 1.5 where a comma is the decimal sign."""
    readings: set[str] = set()
    if (grouped := _GROUPS.match(written)) is not None:
        sign = grouped[1]
        rest = written[grouped.end() :]
        if not rest or rest[0] != sign:
            whole = grouped.group().replace(sign, "")
            readings.add(_canonical(whole + rest.replace(",", ".")))
    if (plain := written.replace(",", ".")).count(".") <= 1 and _NUMBER.fullmatch(plain):
        readings.add(_canonical(plain))
    return frozenset(readings)


def _canonical(number: str) -> str:
    sign = "-" if number.startswith("-") else ""
    whole, _, part = number.removeprefix("-").partition(".")
    part = part.rstrip("0")
    whole = whole.lstrip("0") or "0"
    return f"{sign}{whole}.{part}" if part else f"{sign}{whole}" if whole != "0" else "0"


def _is_whole(text: str, start: int, end: int) -> bool:
    """Return whether a part of a text is made of whole words."""
    return _opens(text, start) and _closes(text, end)


def _opens(text: str, start: int) -> bool:
    if start and UNSPACED.match(text[start - 1]):
        return True
    for at in range(start - 1, max(-1, start - 1 - _LONGEST_PUNCTUATION), -1):
        if text[at] == " ":
            return True
        if text[at] not in _PUNCTUATION:
            return False
    return start <= _LONGEST_PUNCTUATION


def _closes(text: str, end: int) -> bool:
    if end < len(text) and UNSPACED.match(text[end]):
        return True
    if (possessive := _POSSESSIVE.match(text, end)) is not None:
        end = possessive.end()
    for at in range(end, min(len(text), end + _LONGEST_PUNCTUATION)):
        if text[at] == " ":
            return True
        if text[at] not in _PUNCTUATION:
            return False
    return end + _LONGEST_PUNCTUATION >= len(text)
