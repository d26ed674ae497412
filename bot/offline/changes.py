"""Find later messages that end or change a known fact, whatever words they use.

Rule 1: a message that something ended or moved concerns every fact that names the thing; a message
    with a new value must name what is asked for, or give another number of the same unit.
Rule 2: no fact is ended here: the answer gives the newest statement first, and the earlier fact
    after it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from bot.core.patterns import LazyPattern
from bot.language.fact_terms import RELATION_TERMS, fact_term, fact_terms
from bot.language.parsed_facts import parse_fact
from bot.offline.answer_types import gives_newer_value
from bot.offline.candidates import Candidate, ResolvedFact, match_level
from bot.offline.intents import ParsedQuestion
from bot.offline.memory_text import fact_lines
from bot.offline.request_parser import UserMessage

_ENDS = LazyPattern(
    r"\b(?:died|dead|passed away|sold|quit|gave up|given up|giving up|stopped|divorced|separated|split up|broke up"
    r"|cancell?ed|called off|is off|no longer|not any ?more|anymore|any more|retired|laid off|resigned|moved out"
    r"|gave away|got rid of|unsubscribed|replaced|rebooked|rescheduled|postponed|brought forward|swapped|switched"
    r"|traded|(?:dropped|finished)(?= (?-i:[A-Z]))|stepped down|done with|paid (?:\w+ ){0,3}(?:back|off)"
    r"|gave (?:\w+ ){1,3}back|closed down|put down|ran away|scrapped|left(?= (?-i:[A-Z])|[,.!]|$)"
    r"|gestorben|verkauft|abgesagt|gek[üu]ndigt|verschoben|getrennt|geschieden|aufgeh[öo]rt|nicht mehr"
    r"|muri[óo]|vend[íi]|cancel[éa]|ya no|dej[ée]|mort|vendu|annul[ée])\b",
    re.IGNORECASE,
)
_OVER = LazyPattern(r"\b(?:no longer|not any ?more|any ?more|nicht mehr|ya no)\b", re.IGNORECASE)
_UNREAL = LazyPattern(
    r"\b(?:never|not|if|would|could|might|should|almost|nearly|want|plan|wish|nie|wenn|w[üu]rde|nunca|si)\b|n['’]t\b",
    re.IGNORECASE,
)
_CHANGES = LazyPattern(
    r"\b(?:now|nowadays|already|upped|these days|lately|new|newly|moved|changed|raised|lowered|increased|reduced|cut|went"
    r"|gone|go up|up to|down to|again|instead|actually|wait|correction|sorry|meant|rather|updated?|started|joined|bought"
    r"|became|turned|got|since|put off|pushed back|shifted|extended|last day|leaving for|divorce|outgrown|from \w+ on"
    r"|from (?:today|tomorrow|now|this|next)|as of|renamed|jetzt|neue[nrsm]?|umgezogen|doch|stattdessen|ahora|nuev[oa]"
    r"|plut[ôo]t|maintenant|nouve(?:au|lle))\b",
    re.IGNORECASE,
)
_PARTS = LazyPattern(r"[,;.!]\s|\band\b")
_NOT = LazyPattern(r", not \w")
_AMOUNT = (
    r"\d{1,9}(?:[.,]\d{1,3})?\s?"
    r"(kg|kilos?|pounds?|lbs?|mg|ml|g|km|cm|m|hours?|minutes?|euros?|€|dollars?|%)(?!\w)"
)
_MEASURED = LazyPattern(rf"(?<![\d.,:]){_AMOUNT}", re.IGNORECASE)
_IS_NOW = LazyPattern(
    rf"\b(?:down to|up to|now|now at|currently|is|are|to|at) {_AMOUNT}", re.IGNORECASE
)
_UNSPECIFIC = frozenset(
    map(
        fact_term,
        "user call name have go take live work drive say like want need use daily day week time every each year month"
        " appointment".split(),
    )
)
_MOST_NAMES = 12
_ADVISERS = frozenset(map(fact_term, "doctor dentist teacher boss manager landlord".split()))
"""People whose words may change the speaker's facts: "the doctor said that I need meat"."""
_DIET = frozenset(map(fact_term, "vegetarian vegan meat fish".split()))


def _newest_change(
    finding: ResolvedFact,
    statements: Sequence[Candidate],
    question: ParsedQuestion,
    asker: UserMessage,
) -> Candidate | None:
    """Return the newest statement that ends or changes a found fact; None if there is none.

    In a group only a fact's own speaker can change it.
    """
    current, source = finding.current, finding.source
    if current.who == "memory" and not source.when:
        return None
    asked_terms = question.optional.union(*question.required)
    positions = {statement.words: at for at, statement in enumerate(statements)}
    since = (source.when, positions.get(source.words, -1))
    later = [
        statement
        for statement in statements
        if statement.from_person
        and (statement.when, positions[statement.words]) > since
        and statement.words != current.words
        and (not asker.in_group or statement.who == source.who)
        and (
            _is_change_of(statement, current, asked_terms)
            or gives_newer_value(statement, source, question, asker)
        )
    ]
    return max(
        later, key=lambda statement: (statement.when, positions[statement.words]), default=None
    )


def follow_up_query(memory: str, asker: UserMessage, question: ParsedQuestion) -> str:
    """Return a recall query for statements that may have changed the facts that answer a question.

    Args:
        memory: All facts as text.
        asker: The message that asks.
        question: The question.
    """
    candidates = [
        Candidate(parse_fact(text, asker.subject), "", "memory") for text in fact_lines(memory)
    ]
    levels = [(match_level(candidate, question, asker), candidate.line) for candidate in candidates]
    top = max((level for level, _ in levels), default=0)
    words = dict.fromkeys(
        word
        for level, fact in levels
        if level == top > 0
        for word in fact.text.split()
        if set(fact_terms(word)) - _UNSPECIFIC
    )
    return " ".join(list(words)[:_MOST_NAMES])


def is_hypothetical(words: str) -> bool:
    """Return whether a text denies, supposes or wishes."""
    return bool(_UNREAL.search(words))


def is_over(words: str) -> bool:
    """Return whether a text says that something is over or moved, not only that it might be."""
    return any(
        _ENDS.search(part) and not _UNREAL.search(_OVER.sub(" ", part))
        for part in _PARTS.split(words)
    )


def _is_change_of(new: Candidate, old: Candidate, asked_terms: Collection[str]) -> bool:
    new_terms, old_terms = (
        set(fact_terms(new.words)),
        set(old.line.terms) | set(fact_terms(old.line.rest)),
    )
    specific = old_terms - _UNSPECIFIC
    if (new_terms & RELATION_TERMS) - _ADVISERS - old_terms - set(
        asked_terms
    ) and not new_terms & specific & set(asked_terms):
        # The statement is about somebody else.
        return False
    if _DIET & new_terms and _DIET & specific and _CHANGES.search(new.words):
        return True
    if is_over(new.words):
        return bool(new_terms & specific)
    if not _CHANGES.search(new.words) and not _NOT.search(new.words):
        return False
    if new_terms & specific & (set(asked_terms) | set(old.line.subject)):
        return True
    return bool(_units(_IS_NOW, new.words) & _units(_MEASURED, old.line.text))


def _units(pattern: LazyPattern, text: str) -> set[str]:
    return {hit[1].lower().removesuffix("s") for hit in pattern.finditer(text)}


def group_by_change(
    findings: Sequence[ResolvedFact],
    statements: Sequence[Candidate],
    question: ParsedQuestion,
    asker: UserMessage,
) -> list[tuple[Candidate | None, list[ResolvedFact]]]:
    """Return the changes, each with the facts that it changes, then the unchanged facts.

    Args:
        findings: The found facts.
        statements: All statements.
        question: The question.
        asker: The message that asks.
    """
    changed: dict[str, tuple[Candidate | None, list[ResolvedFact]]] = {}
    unchanged: list[tuple[Candidate | None, list[ResolvedFact]]] = []
    for finding in findings:
        change = _newest_change(finding, statements, question, asker)
        if change is None:
            unchanged.append((None, [finding]))
        else:
            changed.setdefault(change.words, (change, []))[1].append(finding)
    # Drop facts that were taken from a change itself: the change is already quoted.
    unchanged = [
        (change, facts)
        for change, facts in unchanged
        if not facts[0].current.words or not any(facts[0].current.words in said for said in changed)
    ]
    return [*changed.values(), *unchanged]
