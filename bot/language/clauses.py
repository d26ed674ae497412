"""Split a text into clauses and classify each: mood, subject and negation. Pure.

These clauses serve to check a claim against its evidence; ``statements`` extracts new facts.

Rule 1: a clause that asks, supposes, reports somebody else's words or jokes states nothing.
Rule 2: a clause is about the speaker, about somebody else, or about the subject of the clause
    before it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from bot.core.folding import UNSPACED, fold_text, normalize_typography, words
from bot.core.patterns import LazyPattern
from bot.language.claim_terms import STOP, term
from bot.language.clause import Clause
from bot.language.clause_subjects import clause_subject, is_first_person
from bot.language.lexicon import (
    FIRST_PERSON_POSSESSIVES,
    HAS_ENDED,
    KIN,
    KIN_UNSPACED,
    PREPOSITIONS,
    WEAK_NEGATION,
)
from bot.language.names import extract_names
from bot.language.negation import split_negation
from bot.language.sentences import split_sentences
from bot.language.speech_patterns import (
    ASKS_BARE,
    ASKS_FIRST,
    ASSERTING_QUESTION,
    ASSERTION_START,
    ATTRIBUTION,
    CLAUSE_BOUNDARY,
    CONDITIONAL,
    GERMAN_SUBJUNCTIVE,
    JOKES,
    LAUGHS,
    NO_JOKE,
    OWN_REPORT,
    QUESTION_UNSPACED,
    QUOTED,
    REASON,
    REPORTS,
    REPORTS_UNSPACED,
    REQUESTS,
    SPEAKER_PREFIX,
    SUPPOSES,
    TAG,
    THIRD_PERSON_REPORT,
    WISHES,
)


@lru_cache(maxsize=512)
def parse_clauses(said: str) -> tuple[Clause, ...]:
    """Return the classified clauses of a text, in order."""
    clauses: list[Clause] = []
    last_subject: frozenset[str] = frozenset()
    joking = _is_joke(fold_text(said))
    for sentence in split_sentences(said):
        laughing = joking or LAUGHS.search(fold_text(sentence)) is not None
        for clause in _clauses_of_sentence(sentence, last_subject):
            clauses.append(_as_joke(clause) if laughing else clause)
            mentioned = clause.subject or _mentioned(fold_text(clause.text))
            last_subject = mentioned or _only_name(clause) or last_subject
    return tuple(clauses)


def _is_joke(low: str) -> bool:
    return bool(JOKES.search(NO_JOKE.sub(" ", low)))


def _as_joke(clause: Clause) -> Clause:
    return Clause(
        clause.text, "jokes", clause.reported_speaker, clause.who, clause.subject, clause.denied,
        clause.affirmed, clause.negated, clause.ended, clause.may_negate,
    )  # fmt: skip


def _clauses_of_sentence(sentence: str, last_subject: frozenset[str]) -> list[Clause]:
    text, has_question_mark = _without_asserting_question(normalize_typography(sentence).strip())
    text = _ANYTHING_BUT.sub("not", QUOTED.sub(_mark_quotation, text))
    parts = [part.strip() for part in CLAUSE_BOUNDARY.split(text) if part and part.strip(" .!?…")]
    folded = [fold_text(part.removeprefix(_QUOTE)) for part in parts]
    asking = _asking_parts(parts, has_question_mark=has_question_mark)
    foreign_words = bool(SPEAKER_PREFIX.match(text))
    speaker: frozenset[str] | None = None
    supposes = False
    clauses: list[Clause] = []
    for at, (part, low) in enumerate(zip(parts, folded, strict=True)):
        supposes = supposes or bool(SUPPOSES.search(low))
        if speaker is None:
            speaker = _reported_speaker(low)
        if asking[at] or (has_question_mark and not _asserts(low)):
            mood = "asks"
        elif speaker is not None or part.startswith(_QUOTE) or foreign_words:
            mood = "reports"
        else:
            mood = "supposes" if supposes or _is_supposed(part, low) else ""
        following = fold_text(parts[at + 1]) if at + 1 < len(parts) else ""
        before = clauses[-1] if clauses else None
        who, subject = clause_subject(part, low, before, last_subject)
        denied, affirmed, negated = split_negation(part, low, following, before)
        clause = Clause(
            part, mood, speaker or frozenset(), who, subject, denied, affirmed, negated,
            bool(HAS_ENDED.search(low)), bool(WEAK_NEGATION.search(low)),
        )  # fmt: skip
        last_subject = clause.subject or _mentioned(low) or _only_name(clause) or last_subject
        clauses.append(clause)
    return clauses


def _without_asserting_question(text: str) -> tuple[str, bool]:
    """Return a sentence without "did you know that", and whether it ends in a question mark."""
    low = fold_text(text)
    opening = ASSERTING_QUESTION.search(low[:80]) if len(low) == len(text) else None
    if opening and (opening.start() == 0 or low[opening.start() - 1] in " ,¿"):
        return re.sub(r"(?<![?？吗\s])[?？吗\s]++$", "", text[opening.end() :]), False
    return text, text.rstrip("\"')» 」").endswith(("?", "؟"))


def _asking_parts(parts: list[str], *, has_question_mark: bool) -> list[bool]:
    """Return for each part of a sentence whether it asks; all do if one question mark asks all."""
    asking = [
        _has_question_form(fold_text(part), marked=has_question_mark, first=not at)
        for at, part in enumerate(parts)
    ]
    ends_in_tag = bool(parts) and bool(TAG.fullmatch(fold_text(parts[-1]).strip(" ?.!¿")))
    if has_question_mark and (not any(asking) or ends_in_tag):
        return [True] * len(parts)
    return asking


_ANYTHING_BUT = LazyPattern(r"\banything but\b", re.IGNORECASE)
_QUOTE = "\x01"
_BEFORE_PLACES = PREPOSITIONS | {"near", "outside", "bei", "pres", "cerca", "около"}


def _mark_quotation(hit: re.Match[str]) -> str:
    """Mark each part of a quotation in the first person: its "I" is the quoted person."""
    first = words(fold_text(hit[1]))[:1]
    if not first or not (is_first_person(first[0]) or first[0] in FIRST_PERSON_POSSESSIVES):
        return hit.group()
    return "; " + _QUOTE + re.sub(r"([,;:])", rf"\1 {_QUOTE}", hit[1]) + " ;"


def _mentioned(low: str) -> frozenset[str]:
    if UNSPACED.search(low):
        return _kin_in(low)
    return frozenset(
        KIN[word.removesuffix("'s")] for word in words(low) if word.removesuffix("'s") in KIN
    )


def _only_name(clause: Clause) -> frozenset[str]:
    """Return the term of a clause's only name: whom "he" means after "On Friday Jonas has a recital".

    A name behind a preposition is rather a place: "It rained in Hamburg".
    """
    names = extract_names(clause.text) if not clause.who else []
    if len(names) != 1:
        return frozenset()
    name, said = fold_text(names[0]), words(fold_text(clause.text))
    first = next(iter(words(name)), "")
    if any(one == first and before in _BEFORE_PLACES for before, one in pairwise(said)):
        return frozenset()
    return frozenset({term(name)})


def _has_question_form(low: str, *, marked: bool, first: bool) -> bool:
    """Return whether a clause has a question's form; without question mark, only the first may."""
    low = low.strip(" ¿\"'-")
    pattern = ASKS_FIRST if marked else ASKS_BARE
    return ((marked or first) and bool(pattern.match(low))) or bool(
        QUESTION_UNSPACED.search(low.rstrip("?。 !"))
    )


def _asserts(low: str) -> bool:
    """Return whether a clause inside a question states something of its own."""
    reason = REASON.match(low)
    return bool(ASSERTION_START.match(low[reason.end() :].lstrip() if reason else low))


def _is_supposed(part: str, low: str) -> bool:
    starts = re.sub(
        r"^(?:and|but|und|aber|so|even|only|selbst|auch|even|и|y|e|et|mais|pero|ma|mas) ", "", low
    )
    return bool(
        CONDITIONAL.match(starts)
        or WISHES.search(low)
        or GERMAN_SUBJUNCTIVE.search(normalize_typography(part).casefold())
    )


def _reported_speaker(low: str) -> frozenset[str] | None:
    """Return the terms of the person whose words a clause reports; None if it reports nobody's."""
    if UNSPACED.search(low):
        report = REPORTS_UNSPACED.search(low)
        if report and not OWN_REPORT.search(low):
            reporter = low[: report.start()]
            return _kin_in(reporter) | frozenset({reporter[:20]})
        return None
    attribution = ATTRIBUTION.search(low)
    if attribution:
        before, after = words(low[: attribution.start()]), words(low[attribution.end() :])
        return frozenset(term(word) for word in [*before[-2:], *after[:2]] if word not in STOP)
    report = REPORTS.search(low)
    if report is None:
        return None
    before = words(low[: report.start()])
    if any(word in _SPEAKER or word.startswith("j'") for word in before[-4:]):
        return None
    if not before:
        return frozenset() if THIRD_PERSON_REPORT.match(low) else None
    if before[-1] in _NO_REPORTER:
        return None
    return frozenset(term(word) for word in before if word not in STOP)


_SPEAKER = frozenset("i i've i'd we ich wir je j я мы eu yo io ho".split())
_NO_REPORTER = frozenset("to zu not the a".split())


def _kin_in(low: str) -> frozenset[str]:
    return frozenset(KIN[form] for form in KIN_UNSPACED if form in low)


def is_request(text: str) -> bool:
    """Return whether a question asks the assistant to do something."""
    return bool(REQUESTS.search(fold_text(text)))
