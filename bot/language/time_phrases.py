"""Read the phrases in which people say times, in English and German, word by word. Pure.

Rule 1: a phrase is made of parts (a day, a time of day, a distance, a repetition), each at most once, in any order.
Rule 2: each pattern looks at a bounded number of words, so a text is read in linear time.
Rule 3: what is about time but says no moment ("next week", "soon", "yesterday") is read as a vague phrase, not as text.
"""

from __future__ import annotations

from bot.core.patterns import LazyPattern
from bot.language import day_phrases, repetition_phrases
from bot.language.time_vocabulary import TimePhrase
from bot.language.time_words import Words


def read_phrase(words: Words, at: int) -> tuple[TimePhrase, int] | None:
    """Return the phrase that begins at a word, and the number of the word after it; None if none does."""
    phrase, first = TimePhrase(), at
    while at < len(words.spans):
        start = words.starts[at]
        skipped = _BETWEEN.match(words.folded, start) if at > first else None
        for begin in (start, *([skipped.end()] if skipped else [])):
            end = _read_part(words.folded, begin, phrase)
            if end is not None:
                break
        else:
            break
        at = words.word_at(end + 1)
    if not phrase.kinds - {"always"}:
        return None
    _settle_repetition(phrase)
    return phrase, at


_BETWEEN = LazyPattern(r"(?:, (?:den |the |and |und )?|- |den |jeweils )")


def _settle_repetition(phrase: TimePhrase) -> None:
    """Decide how "always" and a list of weekdays repeat.

    Three or more weekdays with a time repeat each week; two are as well the next two days.
    """
    timed = bool(phrase.kinds & {"clock", "part", "beside"})
    if phrase.always and phrase.every is None:
        if phrase.weekdays is not None:
            phrase.every = (1, "weeks")
        elif phrase.date is not None or phrase.month_day is not None:
            phrase.every = (1, "years" if phrase.date else "months")
        else:
            phrase.vague |= not timed
            phrase.every = (1, "days")
    elif phrase.listed and (phrase.every is not None or len(phrase.weekdays or ()) > 2):
        phrase.vague |= not timed
        phrase.every = (1, "weeks")
    elif phrase.listed:
        phrase.vague = True


def _read_part(folded: str, begin: int, phrase: TimePhrase) -> int | None:
    """Read the longest part that begins at a place, and return where it ends; None if none does."""
    hits = []
    for kind, pattern, reader in (*repetition_phrases.PATTERNS, *day_phrases.PATTERNS):
        hit = None if kind in phrase.kinds else pattern.match(folded, begin)
        if hit:
            hits.append((hit, kind, reader))
    for hit, kind, reader in sorted(hits, key=lambda one: -one[0].end()):
        if reader(hit, phrase):
            phrase.kinds.add(kind)
            return hit.end()
    return None
