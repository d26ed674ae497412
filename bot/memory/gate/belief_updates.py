"""Compute changes to beliefs, and their confidence over time. Pure.

Rule 1: time lowers a confidence, but ends no belief.
Rule 2: only new evidence or a person makes a belief more certain; reading or recall does not.
Rule 3: evidence that becomes invalid costs a belief confidence. If too little is left, the belief
    is stale: shown as such, and kept out of the prompt, until a person confirms it.
Rule 4: a belief that ended stays on record, with its reason.
Rule 5: what a model concludes is stale until a judge or a person says that the words say it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bot.core.reasons import Reason, join_reasons, split_reasons
from bot.memory.gate.write_gate import ASKED_CONFIDENCE
from bot.memory.records.compartment_records import SynthesizedPattern
from bot.memory.records.episodes import episode_id, parse_episode_id
from bot.memory.records.fact import Fact, comparison_key
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.proposals import Judgement
from bot.memory.records.record_json import parse_utc_time
from bot.memory.records.tombstones import ERASED_TEXT
from bot.tape.entries import TapeEntry
from bot.tape.index.terms import telling_terms

FACT_DECAY = 0.005
"""Share of its confidence that a fact, read as a belief, loses per day without confirmation."""

MOST_EVIDENCE = 24
"""Pieces of evidence that a belief keeps: the first one and the newest ones."""

STEP, SUREST, LESS, LEAST = 0.05, 0.95, 0.2, 0.05
"""Confidence: gain by new evidence, upper limit, loss by doubt, lower limit."""

MIN_CHANGE = 0.01
"""Smallest loss of confidence that is recorded."""

UNJUDGED_REASON = Reason("belief_unjudged")
INVALID_REASON = Reason("belief_invalid")
CONFIRMED_REASON = Reason("belief_confirmed")

_ENOUGH = 2
_SUMMARY = 0.7
_MOST_REASONS = 40
_LONGEST_REASON = 200
_DAY = timedelta(days=1)


def belief_from_fact(fact: Fact) -> SynthesizedPattern:
    """Return a fact as a belief, with the fact's number as id."""
    active = fact.status == "active"
    return SynthesizedPattern(
        str(fact.id),
        "fact",
        {"text": fact.text} | ({"subject": fact.subject} if fact.subject else {}),
        [episode_id(evidence.tape, evidence.entry) for evidence in fact.evidence],
        fact.confidence,
        _moment(fact.valid_from),
        confirmed_at(fact),
        FACT_DECAY,
        fact.confidence >= ASKED_CONFIDENCE,
        "active" if active else "retired",
        "" if active else fact.status,
    )


def confirmed_at(fact: Fact) -> datetime:
    """Return when a fact was last confirmed: the time of its newest evidence."""
    said = max((evidence.when for evidence in fact.evidence), default="")
    return _moment(said or fact.changed or fact.valid_from)


def belief_from_summary(tape: str, entry: TapeEntry) -> SynthesizedPattern | None:
    """Return a consolidation's summary as the belief ``h<entry>``; None if it has no text.

    Its evidence is the first and last entry of the range that it covers.
    """
    text, covered = entry.data.get("entry"), entry.data.get("range")
    if not isinstance(text, str) or not text or not isinstance(covered, list):
        return None
    if len(covered) != 2 or not all(type(one) is int for one in covered):
        return None
    when = _moment(entry.meta.get("ts"))
    ends = [episode_id(tape, place) for place in dict.fromkeys(covered)]
    return SynthesizedPattern(f"h{entry.id}", "summary", {"text": text}, ends, _SUMMARY, when, when)


def is_summary(pattern_id: str) -> bool:
    """Say whether a belief id is that of a summary."""
    return pattern_id[:1] == "h" and pattern_id[1:].isascii() and pattern_id[1:].isdecimal()


def sort_by_confidence(
    patterns: Iterable[SynthesizedPattern], now: datetime
) -> list[SynthesizedPattern]:
    """Sort beliefs by their confidence at a time, highest first."""
    return sorted(patterns, key=lambda belief: (-belief.confidence_at(now), belief.id))


def is_current(pattern: SynthesizedPattern) -> bool:
    """Say whether a belief is active or stale, and not erased."""
    return pattern.status != "retired" and pattern.text not in ("", ERASED_TEXT)


def contains_words(pattern: SynthesizedPattern, text: str) -> bool:
    """Say whether a belief contains all the words of a text."""
    return set(telling_terms(text)) <= set(
        telling_terms(" ".join(map(str, pattern.content.values())))
    )


def count_decayed(fold: FactFold, now: datetime, *, asked: bool = False) -> int:
    """Return how many beliefs lost at least 0.01 since the last decay; if nobody ``asked``, one a day."""
    last = fold.compartments.decayed_at
    if last is not None and not asked and now - last < _DAY:
        return 0
    beliefs = [belief for belief in fold.compartments.patterns.values() if is_current(belief)]
    return sum(
        belief.confidence_at(max(last, belief.last_validated) if last else belief.last_validated)
        - belief.confidence_at(now)
        >= MIN_CHANGE
        for belief in beliefs
    )


# Changes.


def strengthen_belief(
    pattern: SynthesizedPattern, evidence: Sequence[str], now: datetime
) -> SynthesizedPattern:
    """Return a belief with more evidence; its confidence grows by one step, whatever the amount."""
    known = [*pattern.evidence_ids, *evidence]
    kept = known if len(known) <= MOST_EVIDENCE else [known[0], *known[1 - MOST_EVIDENCE :]]
    surer = max(pattern.confidence, min(SUREST, pattern.confidence + STEP))
    return replace(pattern, evidence_ids=kept, confidence=surer, last_validated=now)


def weaken_belief(pattern: SynthesizedPattern, why: str) -> SynthesizedPattern:
    """Return a belief with less confidence and the reason for doubt."""
    less = min(pattern.confidence, max(LEAST, pattern.confidence - LESS))
    return replace(pattern, confidence=less, reason=_with(pattern.reason, why))


def revalidate_belief(
    pattern: SynthesizedPattern, now: datetime, *, still_valid: bool
) -> SynthesizedPattern:
    """Return a belief as a person judged it; earlier faults do not count against it again."""
    before = join_reasons([why for why in split_reasons(pattern.reason) if why != UNJUDGED_REASON])
    return replace(
        pattern,
        last_validated=now,
        status="active" if still_valid else "retired",
        reason=_with(before, CONFIRMED_REASON if still_valid else INVALID_REASON),
    )


def is_unjudged(pattern: SynthesizedPattern) -> bool:
    """Say whether neither a judge nor a person has said yes to a belief."""
    return pattern.status == "stale" and UNJUDGED_REASON in split_reasons(pattern.reason)


def awaits_judge(pattern: SynthesizedPattern) -> bool:
    """Say whether a judge is still to rule on a belief."""
    return pattern.status == "stale" and split_reasons(pattern.reason)[-1:] == [UNJUDGED_REASON]


def judge_belief(
    pattern: SynthesizedPattern, judgement: Judgement, now: datetime
) -> SynthesizedPattern:
    """Return a belief as a judge ruled on it: believed, or kept out of prompts with the reason."""
    if judgement.is_supported:
        return replace(pattern, last_validated=now, status="active", reason="")
    return replace(pattern, reason=_with(pattern.reason, judgement.description))


def mark_stale(pattern: SynthesizedPattern, why: str) -> SynthesizedPattern:
    """Return a belief as stale, with the reason."""
    return replace(pattern, status="stale", reason=_with(pattern.reason, why))


def apply_evidence_faults(
    pattern: SynthesizedPattern, faults: Mapping[str, str]
) -> SynthesizedPattern | None:
    """Return a belief after evidence became invalid, for reasons by its id; None if nothing new was found.

    It loses confidence if at least two pieces, and at least half of all, are valid; else it is
    stale.
    """
    noted = split_reasons(pattern.reason)
    new = [
        faults[evidence_id]
        for evidence_id in pattern.evidence_ids
        if evidence_id in faults and not any(told.startswith(f"{evidence_id} ") for told in noted)
    ]
    if not new:
        return None
    good = sum(evidence_id not in faults for evidence_id in pattern.evidence_ids)
    if good >= _ENOUGH and 2 * good >= len(pattern.evidence_ids) and pattern.status == "active":
        doubted = weaken_belief(pattern, new[0])
        return replace(doubted, reason=_with(doubted.reason, *new[1:]))
    return replace(pattern, status="stale", reason=_with(pattern.reason, *new))


def belief_faults(
    pattern: SynthesizedPattern,
    believed: Mapping[str, SynthesizedPattern],
    fold: FactFold,
    found: Mapping[str, str],
) -> dict[str, str]:
    """Return why evidence of a belief is invalid, by its id.

    ``believed`` are the scope's beliefs, ``fold`` its facts, and ``found`` why episodes are invalid, by id.
    """
    faults = {
        evidence_id: found[evidence_id]
        for evidence_id in pattern.evidence_ids
        if evidence_id in found
    }
    for one in pattern.evidence_ids:
        if one.isascii() and one.isdecimal():
            fact = fold.facts.get(int(one))
            if fact is None or not fact.text:
                missing = "evidence_erased" if fact is not None else "evidence_missing"
                faults[one] = Reason(missing, evidence=one)
            elif fact.status != "active":
                faults[one] = Reason(f"evidence_{fact.status}", evidence=one)
        elif parse_episode_id(one) is None:
            other = believed.get(one)
            if other is None or other.status != "active":
                gone = "evidence_missing" if other is None else f"belief_{other.status}"
                faults[one] = Reason(gone, evidence=one)
    return faults


def find_same_belief(
    pattern: SynthesizedPattern, patterns: Iterable[SynthesizedPattern]
) -> SynthesizedPattern | None:
    """Return a belief of the same type with the very same text, preferring one that is not retired."""
    twins = [
        belief
        for belief in patterns
        if belief.pattern_type == pattern.pattern_type
        and comparison_key(pattern.text) == comparison_key(belief.text)
    ]
    return min(twins, key=lambda belief: belief.status == "retired", default=None)


def belief_number(pattern: SynthesizedPattern) -> int:
    """Return the number in a belief's id, which follows the order of addition."""
    digits = pattern.id.lstrip("ph")
    return int(digits) if digits.isascii() and digits.isdecimal() else 0


def _with(reasons: str, *more: str) -> str:
    told = [
        one if isinstance(one, Reason) else one.replace("; ", ", ")[:_LONGEST_REASON]
        for one in more
        if one
    ]
    return join_reasons([*split_reasons(reasons), *told][-_MOST_REASONS:])


def _moment(stamp: object) -> datetime:
    return parse_utc_time(stamp) or datetime.fromtimestamp(0, UTC)
