"""Split a text into clauses and classify each: mood, subject and negation. Pure.

These clauses serve to check a claim against its evidence; ``statements`` extracts new facts.

Rule 1: a clause that asks, supposes, reports somebody else's words or jokes states nothing.
Rule 2: a clause is about the speaker, about somebody else, or about the subject of the clause
    before it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from bot.language.clause_subjects import clause_subject, is_first_person
from bot.language.lexicon import (
    FIRST_PERSON_POSSESSIVES,
    HAS_ENDED,
    KIN,
    KIN_UNSPACED,
    MONTHS,
    STOP,
    UNSPACED,
    WEAK_NEGATION,
    fold_text,
    normalize_typography,
    term,
    words,
)
from bot.language.negation import split_negation as denied_in
from bot.language.speech_patterns import (
    ABBREVIATED,
    ASKS_BARE,
    ASKS_FIRST,
    ASSERTING_QUESTION,
    ASSERTION_START,
    ATTRIBUTION,
    CLAUSE_BOUNDARY,
    CONDITIONAL,
    DOUBTS,
    ENDING,
    GERMAN_SUBJUNCTIVE,
    HYPOTHETICAL_CLAIM,
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
    RETRACTION,
    SPEAKER_PREFIX,
    SUPPOSES,
    TAG,
    THIRD_PERSON_REPORT,
    WANTS,
    WISHES,
    Clause,
)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, as written, in order."""
    found: list[str] = []
    start = 0
    for hit in ENDING.finditer(text):
        if _goes_on(text, start, hit):
            continue
        found.append(text[start : hit.end()])
        start = hit.end()
    found.append(text[start:])
    return [one.strip() for one in found if one.strip()]


def _goes_on(text: str, start: int, hit: re.Match[str]) -> bool:
    """Return whether a full stop belongs to an abbreviation or an ordinal number."""
    if not hit.group().startswith(".") or len(hit.group()) > 1:
        return False
    before = text[max(start, hit.start() - 8) : hit.start() + 1]
    following = re.match(r"\s*([^\W\d_]+)", text[hit.end() : hit.end() + 30])
    if following is None or not ABBREVIATED.search(before):
        return False
    if not before[-2:-1].isdigit():
        return before[-3:-2] != " " or before[-2:-1] not in "Ii"
    return fold_text(following[1]) in MONTHS or following[1][0].islower()


@lru_cache(maxsize=512)
def parse_clauses(said: str) -> tuple[Clause, ...]:
    """Return the classified clauses of a text, in order."""
    found: list[Clause] = []
    last: frozenset[str] = frozenset()
    joking = _is_joke(fold_text(said))
    for one in split_sentences(said):
        laughing = joking or LAUGHS.search(fold_text(one)) is not None
        for clause in _of_sentence(one, last):
            found.append(_jokes(clause) if laughing else clause)
            last = clause.subject or _mentioned(fold_text(clause.text)) or last
    return tuple(found)


def _is_joke(low: str) -> bool:
    return bool(JOKES.search(NO_JOKE.sub(" ", low)))


def is_retraction(sentence: str) -> bool:
    """Return whether a short sentence retracts the text before it."""
    low = fold_text(sentence)
    return len(low) < 80 and (_is_joke(low) or bool(RETRACTION.search(low)))


def _jokes(clause: Clause) -> Clause:
    return Clause(
        clause.text, "jokes", clause.reported_speaker, clause.who, clause.subject, clause.denied,
        clause.affirmed, clause.negated, clause.ended, clause.may_negate,
    )  # fmt: skip


def _of_sentence(sentence: str, last: frozenset[str]) -> list[Clause]:
    text = " ".join(normalize_typography(sentence).split(" ")).strip()
    asks = text.rstrip("\"')» 」").endswith(("?", "؟"))
    low = fold_text(text)
    knows = ASSERTING_QUESTION.search(low[:80]) if len(low) == len(text) else None
    if knows and (knows.start() == 0 or low[knows.start() - 1] in " ,¿"):
        text, asks = text[knows.end() :], False
        text = re.sub(r"(?<![?？吗\s])[?？吗\s]++$", "", text)
    text = _ANYTHING_BUT.sub("not", QUOTED.sub(_marked, text))
    parts = [part.strip() for part in CLAUSE_BOUNDARY.split(text) if part and part.strip(" .!?…")]
    asking = [
        _begins_as_question(fold_text(part), marked=asks, first=not at)
        for at, part in enumerate(parts)
    ]
    whole = (
        asks and (not any(asking) or bool(TAG.fullmatch(fold_text(parts[-1]).strip(" ?.!¿"))))
        if parts
        else asks
    )
    found: list[Clause] = []
    foreign = bool(SPEAKER_PREFIX.match(text))
    told: frozenset[str] | None = None
    dreams = False
    for at, part in enumerate(parts):
        shown = fold_text(part.removeprefix(_QUOTE))
        dreams = dreams or bool(SUPPOSES.search(shown))
        if told is None:
            told = _teller(shown)
        why = (
            "reports"
            if told is not None
            else "supposes"
            if dreams or _is_supposed(part, shown)
            else ""
        )
        if part.startswith(_QUOTE) or foreign:
            why = "reports"
        if whole or asking[at] or (asks and not _stands(shown)):
            why = "asks"
        following = fold_text(parts[at + 1]) if at + 1 < len(parts) else ""
        before = found[-1] if found else None
        who, subject = clause_subject(part, shown, before, last)
        denied, held, negated = denied_in(part, shown, following, before)
        clause = Clause(
            part, why, told or frozenset(), who, subject, denied, held, negated,
            bool(HAS_ENDED.search(shown)), bool(WEAK_NEGATION.search(shown)),
        )  # fmt: skip
        last = clause.subject or _mentioned(shown) or last
        found.append(clause)
    return found


_ANYTHING_BUT = re.compile(r"\banything but\b", re.IGNORECASE)
_QUOTE = "\x01"


def _marked(hit: re.Match[str]) -> str:
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


def _begins_as_question(low: str, *, marked: bool, first: bool) -> bool:
    """Return whether a clause has a question's form; without question mark, only the first may."""
    low = low.strip(" ¿\"'-")
    pattern = ASKS_FIRST if marked else ASKS_BARE
    return ((marked or first) and bool(pattern.match(low))) or bool(
        QUESTION_UNSPACED.search(low.rstrip("?。 !"))
    )


def _stands(low: str) -> bool:
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


def _teller(low: str) -> frozenset[str] | None:
    """Return the terms of the person whose words a clause reports; None if it reports nobody's."""
    if UNSPACED.search(low):
        hit = REPORTS_UNSPACED.search(low)
        if hit and not OWN_REPORT.search(low):
            return _kin_in(low[: hit.start()]) | frozenset({low[: hit.start()][:20]})
        return None
    according = ATTRIBUTION.search(low)
    if according:
        near = [*words(low[: according.start()])[-2:], *words(low[according.end() :])[:2]]
        return frozenset(term(word) for word in near if word not in STOP)
    hit = REPORTS.search(low)
    if hit is None:
        return None
    before = words(low[: hit.start()])
    near = before[-4:]
    mine = {
        "i",
        "we",
        "ich",
        "wir",
        "je",
        "j",
        "я",
        "мы",
        "eu",
        "yo",
        "io",
        "i've",
        "ho",
        "he",
        "i'd",
    } - {"he"}
    if any(word in mine or word.startswith("j'") for word in near) or not before:
        return (
            None
            if any(w in mine or w.startswith("j'") for w in near)
            or not THIRD_PERSON_REPORT.match(low)
            else frozenset()
        )
    if near[-1] in ("to", "zu", "not", "the", "a"):
        return None
    return frozenset(term(word) for word in before if word not in STOP)


def _kin_in(low: str) -> frozenset[str]:
    return frozenset(KIN[form] for form in KIN_UNSPACED if form in low)


def is_hypothetical_claim(claim: str) -> bool:
    """Return whether a claim itself says that it is a wish, a plan or a condition."""
    return bool(HYPOTHETICAL_CLAIM.search(fold_text(claim)))


def is_request(text: str) -> bool:
    """Return whether a question asks the assistant to do something."""
    return bool(REQUESTS.search(fold_text(text)))


def states_wish(claim: str) -> bool:
    """Return whether a claim says what somebody wants."""
    return bool(WANTS.search(fold_text(claim)))


def expresses_doubt(text: str) -> bool:
    """Return whether a text leaves open whether something is or will be true."""
    return bool(DOUBTS.search(fold_text(text)))


def is_reported_speech(claim: str) -> bool:
    """Return whether a claim itself reports what somebody said."""
    return bool(REPORTS.search(fold_text(claim)) or ATTRIBUTION.search(fold_text(claim)))
