"""Tell what a text says about a repetition beside the phrase that says when: an end, an exception, "regularly". Pure.

Rule 1: a repetition that ends is not one that goes on: "every day ... for a week" says no repetition for sure.
Rule 2: a span that is no longer than the interval is how long the thing takes: "every day walk for 30 minutes".
Rule 3: a single time beside an unread word of repetition is not sure: "every full week at 9".
"""

from __future__ import annotations

from collections.abc import Iterator

from bot.core.patterns import LazyPattern
from bot.language.time_phrases import read_phrase
from bot.language.time_spelling import UNSURE
from bot.language.time_vocabulary import (
    ALL_DAYS,
    COUNT,
    PARTS,
    UNIT,
    UNITS,
    TimePhrase,
    read_count,
)
from bot.language.time_words import Words

_SECONDS = {
    "seconds": 1,
    "minutes": 60,
    "hours": 3600,
    "days": 86_400,
    "weeks": 604_800,
    "months": 2_592_000,
    "years": 31_536_000,
}
_SPAN = LazyPattern(
    r"(?<![^ ])(?:"
    rf"(?:for|fur|wahrend|over|during) (?:(?:the|die|der|den) )?(?:(?:next|nachsten?|kommenden?) )?(?P<count>{COUNT}) (?P<unit>{UNIT})"
    rf"|(?:the|die|der|den) (?:next|nachsten?|kommenden?) (?:(?P<count2>\d{{1,4}}) )?(?P<unit2>{UNIT})"
    rf"|(?P<count3>{COUNT}) (?P<unit3>{UNIT}) lang"
    r")(?= |$)"
)
_UNTIL = frozenset(("until", "till", "til", "bis"))
_NO_END = frozenset(("auf", "zu", "dann", "bald", "spater", "gleich", "now", "jetzt"))
_BEGINS = frozenset("starting beginning ab through thru except ausser".split())
_BESIDE = frozenset("on at am an the den dem zum zur from von with mit".split())
_EVERY = frozenset("every each jede jeden jedes jeder jedem alle".split())
_TIME_NOUNS = frozenset(
    (*UNITS, *ALL_DAYS, *PARTS, *"weekday weekend quarter werktag wochenende quartal".split())
)
_FEW = frozenset(("few", "couple", "paar", "so", "now", "other"))
_REGULARLY = frozenset(
    "always immer stets jeweils jew regularly regelmassig repeatedly wiederholt recurring repeating repeats wiederkehrend"
    " biweekly fortnightly quarterly zweiwochentlich vierteljahrlich halbjahrlich daily weekly monthly".split()
)
_BESIDE_THE_TIME = 2


def has_limits(words: Words, phrase: TimePhrase, covered: list[tuple[int, int]]) -> bool:
    """Return whether a text says where the repetition of a phrase begins or ends, or what it leaves out.

    Args:
        words: The text.
        phrase: A phrase that says a repetition.
        covered: Where the words of the phrase begin and end.
    """
    count, unit = phrase.every or (1, "days")
    interval = count * _SECONDS[unit]
    if len(phrase.weekdays or ()) > 1:
        interval = _SECONDS["days"]
    if any(length > interval for length in _spans(words.folded)):
        return True
    return any(
        _limits(words, at, short=unit in ("minutes", "hours")) for at in _outside(words, covered)
    )


def _spans(folded: str) -> Iterator[float]:
    for hit in _SPAN.finditer(folded):
        said = hit["count"] or hit["count2"] or hit["count3"] or "1"
        unit = hit["unit"] or hit["unit2"] or hit["unit3"]
        yield read_count(said) * _SECONDS[UNITS[unit]]


def _outside(words: Words, covered: list[tuple[int, int]]) -> Iterator[int]:
    """Yield the numbers of the words that are in no span."""
    at = 0
    for first, end in [*covered, (len(words.spans), 0)]:
        yield from range(at, first)
        at = max(at, end)


def _limits(words: Words, at: int, *, short: bool) -> bool:
    word, begin = words.word(at), at + 1
    if word not in _UNTIL and word not in _BEGINS:
        return False
    while begin < at + 4 and words.word(begin) in _BESIDE:
        begin += 1
    read = read_phrase(words, begin)
    if read is None and begin > at + 1:
        read = read_phrase(words, at + 1)
    if read is not None:
        clock = read[0].kinds <= {"clock", "part", "beside"}
        return short or not clock
    after = words.word(at + 1)
    return word in _UNTIL and bool(after) and not after[0].isdecimal() and after not in _NO_END


def hints_at_repetition(
    words: Words, chosen: list[tuple[int, int]], read: list[tuple[int, int]]
) -> bool:
    """Return whether a text has a word of repetition that no phrase read.

    Args:
        words: The text.
        chosen: Where the phrases that say when begin and end.
        read: Where all phrases begin and end.
    """
    for at in _outside(words, read):
        word = words.word(at)
        if word == UNSURE:
            return True
        if word in _EVERY:
            after = words.word(at + 1)
            if after in _FEW or after in _TIME_NOUNS or words.word(at + 2) in _TIME_NOUNS:
                return True
            # "every full moon at 9", but not "at 9 call every customer"
            if word != "alle" and (at == 0 or any(at == end for _, end in chosen)):
                return True
        if word in _REGULARLY and any(
            first - _BESIDE_THE_TIME - 1 <= at <= end + _BESIDE_THE_TIME for first, end in chosen
        ):
            return True
    return False
