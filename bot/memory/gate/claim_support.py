"""Check whether a person's words support a claim, without a model. Pure.

Rule 1: each number, date, name and negation in the claim must occur in the words.
Rule 2: words that only ask, suppose, joke or report somebody else's words support nothing.
Rule 3: words about one person support nothing about another.
Rule 4: some subject of the claim must occur in the words. Whether all of it does is a question of
    meaning, which a judge decides.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date
from functools import lru_cache

from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason
from bot.language.claim_terms import STOP, TermSet, content_terms
from bot.language.clause import Clause
from bot.language.clauses import (
    expresses_doubt,
    is_hypothetical_claim,
    is_reported_speech,
    is_request,
    is_retraction,
    parse_clauses,
    states_wish,
)
from bot.language.contradictions import contradiction_reason, wrong_subject_reason
from bot.language.dates import PartialDate, default_dates, matches_any_date, relative_dates
from bot.language.folding import (
    CASELESS,
    UNSPACED,
    character_bigrams,
    fold_text,
    normalize_typography,
    words,
)
from bot.language.lexicon import MONTHS
from bot.language.names import NameMatcher, mixed_script_word
from bot.language.numerals import with_digits
from bot.language.parsed_claim import USER_REFERENCE, ParsedClaim, parse_claim
from bot.language.quantities import Quantities, extract_quantities
from bot.language.semantic_roles import GERMAN, swapped_roles_reason
from bot.language.sentences import split_sentences
from bot.language.unsupported_words import unsupported_words_reason

MAX_CLAIM = 2_000
"""Longest claim that is checked, in characters; a longer one counts as unsupported."""
MAX_SOURCE_TEXT = 20_000
"""Characters of the source text that are read."""

_ANY_USER = LazyPattern(USER_REFERENCE.pattern, re.IGNORECASE)
_DAYS = LazyPattern(r"\d{4}-\d\d-\d\d|\d{1,4}[年月日]")
_OWN_WORDS = LazyPattern(r'(?:The user )?said: "(.*)"', re.DOTALL)
_HALVES = LazyPattern(r"\d ?(?:am|a\.m|pm|p\.m)\b|\d[:.]\d\d")
_SHORTENED = LazyPattern(r"['’](m|re|ve|ll)\b")
_LONG_FORMS = {"m": " am", "re": " are", "ve": " have", "ll": " will"}
_CLAUSES = LazyPattern(r"[.!?,;:\n](?=\s|$)|[。！？、，]")
_AGREEING = {"is": "am", "has": "have", "does": "do", "goes": "go"}
_LEADING = frozenset(
    "and but so also actually well ok btw und aber also et mais y pero e ma и а".split()
)
_MOST_LEADING = 2
_SPEAKERS = frozenset("i we ich wir je nous yo io eu я мы".split())
_ITEMS = LazyPattern(r",|&|\b(?:and|und|et|y|e|и)\b")
_SHORT_ITEM = 3
_COMMON_ONLY = 2


def sentences_with_quote(quote: str, text: str) -> str | None:
    """Return the whole sentences of a message that contain a quote.

    Case, white space, typographic characters and punctuation around the quote are ignored. A word such
    as "yes" must be a whole sentence. A short sentence that retracts the quoted one ("Just kidding!") is
    returned with it.

    Args:
        quote: The words to look for.
        text: Text of one message.

    Returns:
        The sentences as written, or None if the quote does not occur or has no content.
    """
    wanted = _flat(quote[:MAX_SOURCE_TEXT]).strip(" .,;:!?\"'-()[]…。！？、，").strip()
    if UNSPACED.search(wanted):
        wanted = wanted.replace(" ", "")
    letters = [sign for sign in wanted if sign.isalnum()]
    alone = words(wanted)
    if len(letters) < _COMMON_ONLY or not any(sign.isalpha() for sign in letters):
        return None
    parts = split_sentences(text[:MAX_SOURCE_TEXT])
    flat = [_flat(part) for part in parts]
    if len(alone) == 1 and alone[0] in STOP:
        # Such a word says something only as a whole answer, as "Yes." does.
        return next((p for p, own in zip(parts, flat, strict=True) if words(own) == alone), None)
    between = " "
    if UNSPACED.search(wanted):
        # These scripts have no spaces between sentences, but may have some within.
        flat, between = [part.replace(" ", "") for part in flat], ""
    hits = _occurrences(wanted, between.join(flat))
    found: list[str] = []
    at = 0
    for number, part in enumerate(flat):
        end = at + len(part)
        if any(start < end and stop > at for start, stop in hits):
            found.append(parts[number])
            if number + 1 < len(parts) and is_retraction(parts[number + 1]):
                found.append(parts[number + 1])
        at = end + len(between)
    return " ".join(dict.fromkeys(found)) or None


def _flat(text: str) -> str:
    return " ".join(normalize_typography(text).casefold().split())


def _occurrences(wanted: str, whole: str) -> list[tuple[int, int]]:
    """Return up to 100 places where a quote occurs as whole words."""
    hits: list[tuple[int, int]] = []
    at = whole.find(wanted)
    while at >= 0 and len(hits) < 100:
        end = at + len(wanted)
        if not (_splits(whole, at) or _splits(whole, end)):
            hits.append((at, end))
        at = whole.find(wanted, at + max(1, len(wanted) // 2))
    return hits


def _splits(whole: str, at: int) -> bool:
    """Say whether a position is inside a word."""
    around = whole[at - 1 : at + 1] if at else ""
    return len(around) == 2 and around.isalnum() and not UNSPACED.search(around)


def unsupported_reason(
    claim: str,
    said: str,
    *,
    when: date | None = None,
    names: Collection[str] = (),
    known: str = "",
) -> str | None:
    """Return why a person's words do not support a claim, in plain words; None if they do.

    Args:
        claim: A sentence for memory, in the person's language or in English.
        said: The sentences that are the evidence, as the person wrote them.
        when: Date of the words, to resolve "tomorrow" and the like.
        names: Names of the speaker; a claim about one of them is about the user.
        known: What was said or believed before, which the claim may also use.
    """
    newest = said[:MAX_SOURCE_TEXT]
    said = f"{_as_said(known[:MAX_SOURCE_TEXT])} {said}"[:MAX_SOURCE_TEXT] if known else newest
    if len(claim) > MAX_CLAIM:
        return Reason("too_long_to_check")
    if not words(fold_text(said)) or not words(fold_text(claim)):
        return Reason("nothing_said")
    parsed_claim = parse_claim(claim, when, frozenset(names))
    if (own := _OWN_WORDS.fullmatch(parsed_claim.text)) and _flat(own[1]) == _flat(said):
        return None
    if lacking := _missing(parsed_claim, said, when):
        return lacking
    spoken = parse_clauses(said)
    stated = tuple(clause for clause in spoken if _states(clause, parsed_claim))
    return (
        _not_stated(parsed_claim, spoken, stated, when)
        or wrong_subject_reason(parsed_claim, stated, parse_clauses(newest))
        or contradiction_reason(parsed_claim, stated)
        or swapped_roles_reason(parsed_claim, said, stated)
        or unsupported_words_reason(parsed_claim, said, stated, newest)
    )


def _as_said(known: str) -> str:
    """Return a fact in the first person, as the user would say it."""
    known = re.sub(r"(?i)\b(?:the )?user's\b", "my", normalize_typography(known))
    return _ANY_USER.sub("I", known).rstrip(". ") + "."


def missing_detail(
    claim: str,
    said: str,
    when: date | None,
    *,
    names: Collection[str] = (),
    loose: bool = False,
) -> str | None:
    """Return which name, number or date of a claim is missing from the words; None if none is.

    Other words are not checked: a conclusion may use its own.

    Args:
        claim: A sentence.
        said: The words that are the evidence.
        when: Date of the words, to resolve "tomorrow" and the like.
        names: Names of the speaker; a claim about one of them is about the user.
        loose: A judge checks the claim afterwards, so a date or time may be combined from parts of
            the words, and a German noun, which is capitalised, is not taken for a name.
    """
    if len(claim) > MAX_CLAIM:
        return Reason("too_long_to_check")
    parsed_claim = parse_claim(claim, when, frozenset(names))
    if loose and GERMAN.search(parsed_claim.folded):
        parsed_claim = replace(parsed_claim, names=tuple(filter(_is_no_noun, parsed_claim.names)))
    if loose and _is_latin(claim) and not _is_latin(said):
        # Transliterated names cannot be compared.
        parsed_claim = replace(parsed_claim, names=())
    return _missing(parsed_claim, said[:MAX_SOURCE_TEXT], when, loose=loose)


def _is_latin(text: str) -> bool:
    """Say whether most letters in a text are Latin."""
    letters = [sign for sign in fold_text(text) if sign.isalpha()]
    return 2 * sum(sign.isascii() for sign in letters) >= len(letters)


def _is_no_noun(name: str) -> bool:
    """Say whether a capitalised German word is more than a plain noun."""
    return not name.isalpha() or any(sign.isupper() for sign in name[1:])


def is_verbatim(claim: str, said: str) -> bool:
    """Say whether a claim repeats whole clauses of the words in order, so no judge is needed."""
    wanted = _bare(_as_said(claim))
    parts = [_bare(one) for one in _CLAUSES.split(said[:MAX_SOURCE_TEXT])]
    for first in range(len(parts)):
        run: list[str] = []
        for part in parts[first:]:
            run += part
            if len(run) >= len(wanted) and run[_leading(run) :] == wanted:
                return True
            if len(run) > len(wanted) + _MOST_LEADING:
                break
    return False


def _leading(words_said: Sequence[str]) -> int:
    """Return how many introductory words a clause starts with, such as "and" or "actually"."""
    at = 0
    while at < min(_MOST_LEADING, len(words_said)) and words_said[at] in _LEADING:
        at += 1
    return at


def _bare(said: str) -> list[str]:
    """Return a clause's words in a form that is the same in first and third person."""
    full = _SHORTENED.sub(lambda hit: _LONG_FORMS[hit[1]], fold_text(said[:MAX_CLAIM]))
    bare = ("i" if word in _SPEAKERS else _AGREEING.get(word, word) for word in words(full))
    # Removes the third person's "s": "lives", "live".
    return [
        one.removesuffix("s").removesuffix("e") if len(one) > _SHORT_ITEM else one for one in bare
    ]


def _missing(
    claim: ParsedClaim, said: str, when: date | None, *, loose: bool = False
) -> str | None:
    """Return why a name, number or date of a claim is missing from the words; None if none is."""
    name_matcher = NameMatcher(said)
    if (odd := mixed_script_word(claim.text)) and odd not in said:
        return Reason("name_missing", name=odd[:60])
    for name in claim.names:
        if name not in name_matcher:
            return Reason("name_missing", name=name[:60])
    return _missing_number(claim, said, when, loose=loose) or _missing_signs(claim, said)


def _missing_number(claim: ParsedClaim, said: str, when: date | None, *, loose: bool) -> str | None:
    quantities = extract_quantities(claim.text, claim.folded, demanded=True)
    if not quantities.numbers and not quantities.days:
        return None
    low = fold_text(said)
    there = extract_quantities(said, low, demanded=False)
    partial_dates = [*there.days, *(relative_dates(low, when) if when else ())]
    if when and not any(day.month or day.weekday is not None for day in partial_dates):
        partial_dates += default_dates(when)
    readings = there.readings | _listed(said)
    for day in quantities.days:
        if (
            not matches_any_date(day, partial_dates, when)
            and not (day.month is None and day.year and str(day.year) in readings)
            and not _is_same_word(day, low)
            and not (loose and _is_put_together(day, partial_dates, readings, when))
        ):
            return Reason("date_missing", date=day.source_text.strip()[:60])
    return _missing_count(quantities, there, said, partial_dates, when, loose=loose)


def _is_same_word(month: PartialDate, low: str) -> bool:
    """Return whether folded words have a bare month as the same word, such as "july" or "mayo" without a capital."""
    written = month.source_text.strip()
    # "May" is mostly a verb.
    return month.day is None and written in MONTHS and written != "may" and written in words(low)


def _missing_count(
    quantities: Quantities,
    there: Quantities,
    said: str,
    partial_dates: Collection[PartialDate],
    when: date | None,
    *,
    loose: bool,
) -> str | None:
    """Return why a number of a claim is missing from the words; None if none is.

    Args:
        quantities: Numbers in the claim.
        there: Numbers in the words.
        said: The words.
        partial_dates: Dates in the words.
        when: Date of the words.
        loose: See ``missing_detail``.
    """
    low, readings = fold_text(said), there.readings | _listed(said)
    whole = [
        run
        for run in quantities.digit_runs
        if any(
            run.lstrip("0") in digit_run or digit_run.lstrip("0") in run
            for digit_run in there.digit_runs
        )
    ]
    for shown, means in quantities.numbers:
        digits = re.sub(r"\D", "", shown)
        late = loose or _LATE.search(low) is not None
        if _is_hour(next(iter(means)), readings, low) or (late and _is_later(means, readings)):
            continue
        if loose and _has_parts(means, readings):
            continue
        if means & readings or any(digits and digits in run for run in whole):
            continue
        if loose and shown.isdecimal() and 1 < int(shown) <= _most_listed(said):
            continue
        if not _is_told_year(shown, partial_dates, low, when):
            return Reason("number_missing", number=shown.strip()[:60])
    return None


_LATE = LazyPattern(
    r"\b(?:evening|afternoon|tonight|night|abends?|nachmittags?|soir|apres-midi|tarde|noche|noite|sera|pomeriggio|вечера|дня)\b"
)
_YEAR = LazyPattern(r"(?<!\d)(?:19|20)\d\d(?!\d)")


def _is_told_year(
    shown: str, partial_dates: Collection[PartialDate], low: str, when: date | None
) -> bool:
    """Say whether a number is the year of a date in the words, or else a year near ``when``."""
    if not (shown.isdecimal() and len(shown) == 4):
        return False
    if any(day.year == int(shown) for day in partial_dates):
        return True
    near = when is not None and abs(int(shown) - when.year) <= 1
    return near and _YEAR.search(low) is None and any(day.month for day in partial_dates)


def _most_listed(said: str) -> int:
    """Return the length of the longest list in the words, plus one for the speaker."""
    items = (_ITEMS.split(fold_text(sentence)) for sentence in split_sentences(said))
    return max((sum(bool(one.strip(" .!?")) for one in found) for found in items), default=0) + 1


def _is_put_together(
    day: PartialDate,
    partial_dates: Collection[PartialDate],
    readings: Collection[str],
    when: date | None,
) -> bool:
    """Say whether the words contain the day's number, and its month in another date."""
    month = matches_any_date(replace(day, day=None, weekday=None), list(partial_dates), when)
    return month and day.day is not None and str(day.day) in readings


def _is_later(means: Collection[str], readings: Collection[str]) -> bool:
    """Say whether the words contain a time in 12-hour form: 6:15 for 18:15."""
    times = (one.partition(":") for one in means)
    return any(
        f"{int(hour) - 12}:{minutes}" in readings
        for hour, _, minutes in times
        if hour.isdecimal() and minutes.isdecimal()
    )


def _has_parts(means: Collection[str], readings: Collection[str]) -> bool:
    """Say whether the words contain the hours and the minutes of a time separately."""
    times = (one.partition(":") for one in means)
    return any(minutes and hour in readings and minutes in readings for hour, _, minutes in times)


def _is_hour(wanted: str, readings: frozenset[str], low: str) -> bool:
    """Say whether a time is a full hour in the words: "at 10"; "at 3" may be in the afternoon."""
    hour, _, minutes = wanted.partition(":")
    if minutes != "00" or not hour.isdecimal():
        return False
    return hour in readings or (str(int(hour) - 12) in readings and _HALVES.search(low) is None)


def _listed(said: str) -> frozenset[str]:
    """Return the lengths of the lists in the words: naming three children means three."""
    found = set()
    for sentence in split_sentences(said):
        items = [one.split() for one in _ITEMS.split(fold_text(sentence)) if one.strip(" .!?")]
        if len(items) > 2 or (len(items) == 2 and len(items[1]) <= _SHORT_ITEM):
            found.add(str(len(items)))
    return frozenset(found)


def _missing_signs(claim: ParsedClaim, said: str) -> str | None:
    """Compare by character pairs or word parts in scripts without capitals, which mark names."""
    bare = _DAYS.sub(" ", with_digits(USER_REFERENCE.sub(" ", claim.folded)))
    if not CASELESS.search(bare):
        return None
    low = with_digits(fold_text(said))
    if UNSPACED.search(bare):
        wanted = character_bigrams(
            re.sub(r"[はがをにのでとも的了是在住在]", " ", bare)
        ) or character_bigrams(bare)
        there = character_bigrams(low) | {low[at : at + 2] for at in range(len(low) - 1)} | set(low)
        shared = len(wanted & there)
    else:
        wanted = set(content_terms(bare))
        there = {w[at : at + 3] for w in words(low) for at in range(max(1, len(w) - 2))}
        shared = sum(
            any(w[at : at + 3] in there for at in range(max(1, len(w) - 2))) for w in wanted
        )
    return None if shared * 2 >= len(wanted) else Reason("other_subject")


def _states(clause: Clause, claim: ParsedClaim) -> bool:
    """Say whether a clause states something that can support this claim."""
    if clause.mood == "supposes":
        return is_hypothetical_claim(claim.text) and (
            not expresses_doubt(clause.text) or expresses_doubt(claim.text)
        )
    if clause.mood == "asks":
        return is_request(clause.text) and states_wish(claim.text)
    if clause.mood == "reports":
        said_of = TermSet([*claim.terms, *claim.kin])
        if UNSPACED.search(claim.folded) and any(
            one and one in claim.folded for one in clause.reported_speaker
        ):
            return True
        return any(one in said_of for one in clause.reported_speaker) or (
            not clause.reported_speaker and is_reported_speech(claim.text)
        )
    return not clause.mood


def is_statement(said: str) -> bool:
    """Say whether a text only makes statements: no part asks, supposes, jokes or reports others."""
    clauses = parse_clauses(said[:MAX_SOURCE_TEXT])
    return bool(clauses) and not any(clause.mood for clause in clauses)


_WHY = {
    "asks": Reason("only_asked"),
    "supposes": Reason("only_supposed"),
    "reports": Reason("only_reported"),
    "jokes": Reason("joke"),
}


def _not_stated(
    claim: ParsedClaim, spoken: tuple[Clause, ...], stated: tuple[Clause, ...], when: date | None
) -> str | None:
    """Return why the part of the words that holds the claim states nothing; None if it does."""
    rest = [clause for clause in spoken if clause not in stated]
    if not rest:
        return None
    if not stated:
        return _WHY[rest[0].mood]
    kept = ", ".join(clause.text for clause in stated)
    here, there = (
        TermSet(content_terms(fold_text(kept))),
        TermSet(content_terms(fold_text(", ".join(c.text for c in rest)))),
    )
    lost = [term for term in claim.terms if term in there and term not in here]
    if lost or _missing(claim, kept, when):
        guilty = next(
            (
                c
                for c in rest
                if any(one in TermSet(content_terms(fold_text(c.text))) for one in lost)
            ),
            rest[0],
        )
        return _WHY[guilty.mood]
    if not any(term in here for term in claim.terms) and not spoken[0].who and spoken[0].mood:
        return _WHY[spoken[0].mood]
    return None


def word_overlap(claim: str, said: str) -> float:
    """Return the share, 0 to 1, of a claim's content words in a text; 0 if it has none."""
    wanted = _content_of(claim[:MAX_CLAIM])
    if not wanted:
        return 0.0
    there, signs, name_matcher = _said_in(said[:MAX_SOURCE_TEXT])
    return sum(one in there or one in signs or one in name_matcher for one in wanted) / len(wanted)


def says_all(claim: str, said: str) -> bool:
    """Return whether a text has all content words of a claim, and denies something only if the claim does."""
    denials = [any(clause.negated for clause in parse_clauses(one)) for one in (claim, said)]
    return denials[0] == denials[1] and word_overlap(claim, said) == 1.0


@lru_cache(maxsize=512)
def _said_in(said: str) -> tuple[TermSet, set[str], NameMatcher]:
    # Cached because several claims are compared with the same sentences.
    low = fold_text(said)
    return TermSet(content_terms(low)), character_bigrams(low), NameMatcher(said)


@lru_cache(maxsize=64)
def _content_of(claim: str) -> tuple[str, ...]:
    # Cached because several sentences are compared with the same claim.
    return tuple(dict.fromkeys(content_terms(USER_REFERENCE.sub(" ", fold_text(claim)))))


def best_supporting_sentences(
    claim: str, text: str, *, when: date | None = None, names: Collection[str] = ()
) -> str | None:
    """Return the sentences of a message that support a claim best; None if none do.

    Args:
        claim: A sentence for memory.
        text: Text of one message.
        when: Date of the message.
        names: Names of the speaker.
    """
    if len(claim) > MAX_CLAIM:
        return None
    parts = split_sentences(text[:MAX_SOURCE_TEXT])
    best: tuple[float, int, str] | None = None
    bare = parse_claim(claim, when, frozenset(names)).text
    for many in (1, 2, 3):
        for at in range(len(parts) - many + 1):
            said = " ".join(parts[at : at + many])
            share = word_overlap(bare, said)
            if share < _LEAST or (best is not None and share <= best[0]):
                continue
            after = parts[at + many] if at + many < len(parts) else ""
            whole = f"{said} {after}" if after and is_retraction(after) else said
            if unsupported_reason(claim, whole, when=when, names=names) is None:
                best = (share, many, said)
        if best is not None:
            break
    return best[2] if best else None


_LEAST = 0.3
