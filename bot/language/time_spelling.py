"""Write misspelled and abbreviated words of time as the words that the phrases know. Pure.

Rule 1: a word one letter away from a word of repetition, or with its letters in another order, is that word: "evry Friday",
        "jedn Sonntag". So are the longer names of days and months: "Thurday".
Rule 2: where that is not sure, the word becomes ``UNSURE``, and the text says no single time for sure.
Rule 3: "Do" and "Thu" are days only beside a time, a date, a word as "every", or another such day.
"""

from __future__ import annotations

from collections.abc import Iterable

from bot.core.patterns import LazyPattern
from bot.language.time_vocabulary import ALL_DAYS, DAYS, MONTHS, PARTS, SHORT_DAYS, UNITS

UNSURE = "?every"
"""Stands for a word that may be "every"."""

_EACH = ("every", "each", "jeden", "jede", "jedes", "jeder", "jedem")
_ADVERBS = (
    "everyday daily hourly weekly monthly yearly always taglich stundlich wochentlich monatlich jahrlich immer"
).split()
_OTHER_WORDS = frozenset(
    "avery emery eden reden rede jene jenen jener jenes jade jude jedi jaden etch dairy daisy doily early nearly dearly pearly"
    " weakly meekly tauglich zimmer dimmer er ey montage sundae sontag toady toddy morgan haute augusta auguste".split()
)
_NAMES = [
    name
    for name in (
        *DAYS,
        *(day + "s" for day in DAYS),
        *MONTHS,
        "tomorrow",
        "tonight",
        "ubermorgen",
        "today",
        "heute",
        "morgen",
    )
    if len(name) >= 5 and name not in ("march", "april")
]
_EACH_NOUNS = "day tag week woche month monat year jahr hour stunde morning evening abend night minute weekday weekend werktag".split()
_REAL_WORDS = frozenset(("very", "ever"))
_TIME_NOUNS = frozenset(
    (*UNITS, *ALL_DAYS, *PARTS, "weekday", "weekend", "werktag", "wochenende", "other")
)
_BESIDE_ADVERB = frozenset(("at", "um", "@", "gegen", "uhr", "am", "pm"))


_KNOWN = frozenset(
    ("all", "alle", *_ADVERBS, *_EACH, *_OTHER_WORDS, *_TIME_NOUNS, *MONTHS, *_NAMES)
)


def _cuts(word: str) -> list[str]:
    """Return what is left of a word without one of its letters."""
    return [word[:at] + word[at + 1 :] for at in range(len(word))]


class _Spellings:
    """Words, found by texts with one letter more, less, changed or moved."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = list(words)
        self._by_cut = {
            (cut, len(word)): word for word in reversed(self._words) for cut in _cuts(word)
        }
        self._whole = dict.fromkeys(self._words)

    def near(self, text: str) -> str | None:
        """Return a word that is one letter away; None if none is, or if the text is a known word."""
        size = len(text)
        if text in _KNOWN or not 3 <= size <= _LONGEST:
            return None
        if shorter := self._by_cut.get((text, size + 1)):
            return shorter
        for cut in _cuts(text):
            word = cut if cut in self._whole else self._by_cut.get((cut, size))
            if word:
                return word
        return None


_LONGEST = 14
_SPELLINGS = _Spellings((*_EACH, *_ADVERBS, *_NAMES))
_NOUN_SPELLINGS = _Spellings((*_EACH_NOUNS, *DAYS))
_COUNTED_SPELLINGS = _Spellings(unit for unit in UNITS if len(unit) > 3)
_ALL_SPELLINGS = _Spellings(("alle",))
_SHUFFLED = {"".join(sorted(word)): word for word in (*_NAMES, *_ADVERBS, "every", "jeden")}


def _meant(word: str) -> str | None:
    """Return the known word that a word may be; None if it is another word."""
    if word in _KNOWN or len(word) > _LONGEST:
        return None
    return _SPELLINGS.near(word) or _SHUFFLED.get("".join(sorted(word)))


def respell(words: list[str], raw: list[str]) -> None:
    """Write the words of time in a list of folded words as the phrases know them.

    Args:
        words: The folded words; changed in place.
        raw: The same words as they stand in the text.
    """
    for at, word in enumerate(words):
        if word[0].isalpha():
            before = words[at - 1] if at else ""
            words[at] = _repetition(word, before, _word(words, at + 1))
            counted = before.isdecimal() and at > 1 and words[at - 2] in (*_EACH, "alle")
            nouns = _COUNTED_SPELLINGS if counted else _NOUN_SPELLINGS
            if (counted or before in _EACH) and (noun := nouns.near(word)):
                words[at] = noun if len(noun) > 4 and noun[0] == word[0] else UNSURE
            elif _word(words, at + 1).isdecimal() and _word(words, at + 2) in UNITS:
                words[at] = UNSURE if _ALL_SPELLINGS.near(word) else words[at]
    _spell_weekdays(words, raw)


def _word(words: list[str], at: int) -> str:
    return words[at] if 0 <= at < len(words) else ""


def _repetition(word: str, before: str, after: str) -> str:
    meant = _meant(word)
    if meant in _NAMES:
        return meant if word[0] == meant[0] else word
    if meant in _ADVERBS:
        if word[0] == meant[0]:
            return meant
        beside = {before, after} & _BESIDE_ADVERB or after[:1].isdecimal()
        return UNSURE if beside else word
    before_time = after in _TIME_NOUNS or after.removesuffix("s") in _TIME_NOUNS
    if (
        meant
        and word[0] == meant[0]
        and word not in _REAL_WORDS
        and (meant != "each" or before_time)
    ):
        return meant
    if before_time and (meant not in (None, "each") or _shortens(word)):
        return UNSURE
    return word


def _shortens(word: str) -> bool:
    """Return whether a word may be short for "every" or "jeden"."""
    full = {"e": "every", "j": "jeden"}.get(word[0])
    if (
        full is None
        or len(word) < 2
        or len(word) >= len(full)
        or word in _OTHER_WORDS
        or word in _EACH
    ):
        return False
    letters = iter(full)
    return all(letter in letters for letter in word)


_GERMAN = {
    "mo": "montag",
    "di": "dienstag",
    "mi": "mittwoch",
    "do": "donnerstag",
    "fr": "freitag",
    "sa": "samstag",
    "so": "sonntag",
}
_SHORT = _GERMAN | {short: list(DAYS)[day] for short, day in SHORT_DAYS.items()}
_LINKS = frozenset((",", "/", "&", "+", "-", "and", "und", "u", "bis", "through", "thru", "to"))
_EVERY = frozenset((*_EACH, "nachsten", "nachste", "diesen", "kommenden"))
_ON = frozenset(("am", "on", "next", "this", "immer"))
_CLOCK = LazyPattern(r"\d{1,2}:\d\d$")
_DATE = LazyPattern(r"\d{1,2}\.\d{1,2}(?:\.\d{2,4})?$")
_HOURS = frozenset(("uhr", "h", "am", "pm", "a", "p", "o'clock"))
_NUMBERED = frozenset((*MONTHS, "st", "nd", "rd", "th", ".", "/"))


def _spell_weekdays(words: list[str], raw: list[str]) -> None:
    """Write the abbreviations that are days as the names of the days, run by run: "Mo, Mi und Fr"."""
    at = 0
    while at < len(words):
        if words[at] not in _SHORT:
            at += 1
            continue
        run = [at]
        end = _after_dot(words, at)
        while (links := _links(words, end)) and _word(words, end + links) in _SHORT:
            run.append(end + links)
            end = _after_dot(words, run[-1])
        meant = _meaning_of_run(words, raw, run, end)
        for one in run if meant else ():
            words[one] = UNSURE if meant == UNSURE else _SHORT[words[one]]
            if _word(words, one + 1) == "." and one + 2 <= end:
                words[one + 1] = ","
        at = end


def _after_dot(words: list[str], at: int) -> int:
    return at + 2 if _word(words, at + 1) == "." and _word(words, at + 2) else at + 1


def _links(words: list[str], at: int) -> int:
    """Return how many words between two days stand at a place: ", and" are two."""
    first = _word(words, at) in _LINKS
    return (2 if _word(words, at + 1) in _LINKS else 1) if first else 0


def _meaning_of_run(words: list[str], raw: list[str], run: list[int], end: int) -> str:
    """Return "days" if abbreviations are days, ``UNSURE`` if that is not sure, and nothing if they are words."""
    first, before = words[run[0]], _word(words, run[0] - 1)
    capital = all(raw[at][0].isupper() for at in run)
    if before in _EVERY or (
        before in _ON and capital and (before != "am" or _word(words, run[0] - 2) != "i")
    ):
        return "days"
    timed, direct = _is_timed(words, end, german=first in _GERMAN)
    if not timed:
        return ""
    hour = _word(words, end + 1) in ("uhr", "h")
    if len(run) > 1:
        return "days"
    if first == "so":  # "so 10 Uhr" is "at about ten"
        return "days" if direct and capital else UNSURE if direct or capital else ""
    if first == "do":
        return "days" if capital or (direct and hour) else ""
    if first in ("sat", "sun"):
        return "days" if capital or direct else UNSURE
    return "days"


def _is_timed(words: list[str], at: int, *, german: bool) -> tuple[bool, bool]:
    """Return whether a time or a date stands at a place, and whether it does without "at" or "um"."""
    direct = True
    while (link := _word(words, at)) in (",", "at", "um", "@", "gegen", "jeweils", "immer"):
        if german and link == "at":
            return False, False
        direct &= link in (",", "immer", "jeweils")
        at += 1
    word, after = _word(words, at), _word(words, at + 1)
    if word in MONTHS and after[:1].isdecimal():
        return True, True
    if not word[:1].isdecimal() or (german and after in ("am", "pm", "a", "p")):
        return False, False
    clear = bool(_CLOCK.match(word) or _DATE.match(word)) or after in _HOURS or after in _NUMBERED
    return clear or not direct, direct
