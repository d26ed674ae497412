"""Answer a question with the known facts, and say who stated them, in which words, and when.

Rule 1: an answer that is not fully supported says so.
Rule 2: a fact is put in the second person if that is certain; otherwise it is quoted.
Rule 3: the same question over the same evidence has the same answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta

from bot.language.fact_terms import comparison_key, fact_term, fact_words
from bot.language.grammatical_person import USER, as_sentence, to_second
from bot.language.parsed_facts import SAID_ON, ParsedFact, parse_fact
from bot.offline.answer_types import (
    LIGHT_VERBS,
    QUESTION_TERMS,
    answers_question,
    lacks_answer,
)
from bot.offline.arithmetic import asks_total, calculate_answer, sum_amounts
from bot.offline.candidates import (
    Candidate,
    ResolvedFact,
    gather_candidates,
    match_level,
    of_somebody_else,
    resolve_candidates,
    with_names,
)
from bot.offline.changes import group_by_change, is_hypothetical, is_over
from bot.offline.files import FILE
from bot.offline.intents import ParsedQuestion
from bot.offline.memory_text import fact_lines
from bot.offline.phrases import PHRASES, Phrases, quote
from bot.offline.reference_parser import (
    describe_problem,
    describe_value,
    matching_values,
    requested_note_kinds,
)
from bot.offline.request_parser import ASSISTANT, ParsedRequest, Passage, UserMessage

_MAX_FINDINGS = 5
_OTHER_SCRIPT = re.compile("[\u0370-\u1fff\u2e80-\uffdc]")
_TOLD_ABOUT = re.compile(
    r"(?:did|have) (?:i|we) (?:ever |already )?(?:tell|told|mention)", re.IGNORECASE
)
_BEFORE = re.compile(r"\b(?:before|previously|formerly|used? to)\b", re.IGNORECASE)
_NUMBER = re.compile(
    r"\d|\b(?:no|one|two|three|four|five|six|seven|eight|nine|ten|twelve)\b", re.IGNORECASE
)
_STILL = re.compile(
    r"\b(?:still|any ?more|yet|now|at the moment|currently|these days)\b", re.IGNORECASE
)
_UNSURE = re.compile(r"\b(?:their|them)\b")
_FOUND_IN_FILES = "The closest thing that I found:"
_LIKING = frozenset((fact_term("like"), fact_term("hate")))
_COUNTED = frozenset(map(fact_term, "day week month year old age long left get ago".split()))
_LAST_TIME = re.compile(
    r"(?:what|where) (?:did|were|have) we (?:talk|talked|discuss|leave|talking|speak|doing|do|left)\b",
    re.IGNORECASE,
)


def address_user(text: str, asker: UserMessage) -> str:
    """Return a fact in the second person, or quoted if the conversion is unsafe."""
    if _UNSURE.search(text) and "the user" in text.lower():
        return f"My memory says: {quote(text)}"
    second = to_second(text, asker.subject)
    return second if asker.in_group else as_sentence(second)


def listing(prompt: ParsedRequest, memory: str, asker: UserMessage) -> str:
    """Return everything known as a Markdown list; empty if nothing is known.

    Args:
        prompt: The parsed request, with shared values, beliefs and the current problem.
        memory: All facts as text.
        asker: The message that asks.
    """
    lines = [
        address_user(parse_fact(text, asker.subject).text, asker) for text in fact_lines(memory)
    ]
    lines += [describe_value(value, group=asker.in_group) for value in prompt.values]
    lines += [f"I concluded: {quote(belief)}" for belief in prompt.beliefs]
    if lines and prompt.problem is not None:
        lines.append(
            f"We are working on {quote(prompt.problem.name)}; `/problem show` shows what is noted for it."
        )
    return "\n".join(f"- {text}" for text in lines)


def _quote_candidate(candidate: Candidate, asker: UserMessage, phrases: Phrases) -> str:
    quotation = quote(candidate.words, phrases)
    when = candidate.when or "?"
    if candidate.who == "note":
        return (
            f"Note of {candidate.when}: {quotation}"
            if candidate.when
            else f"From my notes: {quotation}"
        )
    if candidate.who == "history":
        return f"From the record of {when}: {quotation}"
    if candidate.from_file:
        return f"In {candidate.who.removeprefix(FILE)}, sent on {when}: {quotation}"
    if candidate.who == ASSISTANT:
        return f"I said on {when}: {quotation}"
    if not asker.in_group or candidate.who in (asker.who, asker.name):
        return phrases.you_said.format(when=when, quote=quotation)
    return phrases.other_said.format(
        who=candidate.who.rpartition(" (")[0] or candidate.who, when=when, quote=quotation
    )


def _describe_finding(
    finding: ResolvedFact, asker: UserMessage, question: ParsedQuestion, phrases: Phrases
) -> str:
    """Return one resolved fact as sentences, with its evidence."""
    current, parts = finding.current, []
    fact = current.line
    if fact.quotation:
        parts.append("" if finding.evidence else f"You told me: {quote(fact.quotation, phrases)}")
    elif (current.is_parsed and current.who in ("memory", "note")) or (
        current.is_parsed and current.who not in ("history", ASSISTANT)
    ):
        if question.language == "en" or finding.evidence is None:
            parts.append(address_user(fact.text, asker))
    elif current.who == "memory":
        parts.append(f"My memory says: {quote(fact.text)}")
    if finding.evidence:
        parts.append(_quote_candidate(finding.evidence, asker, phrases))
    elif current.words and (current.who != "note" or not parts):
        parts.append(_quote_candidate(current, asker, phrases))
    elif current.who == "note" and current.when:
        parts.append(f"That is in my notes of {current.when}.")
    elif question.language == "en" and not fact.quotation and current.is_parsed:
        parts.append("That is in my long-term memory.")
    if finding.previous:
        before = finding.previous
        parts.append(
            phrases.earlier.format(when=before.when or "?", quote=quote(before.words, phrases))
        )
    return " ".join(part for part in parts if part)


def _yes_or_no(question: ParsedQuestion, findings: Sequence[ResolvedFact]) -> str:
    if question.form != "yesno" or question.language != "en" or len(findings) != 1:
        return ""
    finding = findings[0]
    if not finding.current.is_parsed or "not" in fact_words(question.text):
        return ""
    asked, fact = set(fact_words(question.text)), finding.current.line
    if "or" in asked:
        return ""
    if finding.previous:
        return "Not any more. "
    if " used to " in fact.text and not fact.retracts:
        return ""
    if _is_opposite_liking(question, fact):
        return "" if fact.negated else "No. "
    if fact.negated:
        return "No. "
    return "" if is_over(finding.source.words) else "Yes. "


def _is_opposite_liking(question: ParsedQuestion, line: ParsedFact) -> bool:
    """Return whether one of question and fact says "like" and the other "hate"."""
    asked = frozenset().union(*question.required) & _LIKING
    return line.verb in _LIKING and bool(asked) and line.verb not in asked


def _day_asked_about(question: ParsedQuestion, asker: UserMessage) -> str:
    if not question.relative_day or not asker.date:
        return ""
    day = date.fromisoformat(asker.date)
    return (day - timedelta(days=question.relative_day == "yesterday")).isoformat()


def _unknown_answer(question: ParsedQuestion, phrases: Phrases) -> str:
    if _TOLD_ABOUT.match(question.text) and question.language == "en":
        return f"No, I don't know anything about that yet. {phrases.how_to_tell}"
    if question.personal:
        return f"{phrases.unknown} {phrases.how_to_tell}"
    return (
        f"{phrases.unknown} I only know what I am told; tell me, and I will remember it. For general"
        " knowledge, set a real model (`TAPEBOT_MODEL` in `.env`)."
    )


def _answer_from_notes(
    prompt: ParsedRequest, asker: UserMessage, question: ParsedQuestion, phrases: Phrases
) -> str:
    """Return the answer from the handoff, the problem's notes or shared values; else empty."""
    if prompt.handoff and _LAST_TIME.match(question.text):
        return f"My note from the former session: {quote(prompt.handoff, phrases, 900)}"
    kinds = requested_note_kinds(question.text)
    if kinds is not None and (told_notes := describe_problem(prompt.problem, kinds)):
        return told_notes
    values = matching_values(prompt.values, question.required, question.optional)
    return "\n".join(
        describe_value(value, group=asker.in_group) for value in values[:_MAX_FINDINGS]
    )


def _as_list(lines: Sequence[str]) -> str:
    return lines[0] if len(lines) == 1 else "\n".join(f"- {text}" for text in lines)


def _describe_changes(
    ordered: Sequence[tuple[Candidate | None, Sequence[ResolvedFact]]],
    asker: UserMessage,
    question: ParsedQuestion,
    phrases: Phrases,
) -> str:
    """Return the changes with their dates, each followed by the facts that it changes."""
    lines = []
    for change, findings in ordered:
        former = [_describe_finding(finding, asker, question, phrases) for finding in findings]
        if change is None:
            lines += former
        else:
            first = _quote_candidate(change, asker, phrases)
            lines.append(f"{first} Before that: {' '.join(former)}")
    return _as_list(lines)


def _calculated_answer(
    findings: Sequence[ResolvedFact], asker: UserMessage, question: ParsedQuestion, phrases: Phrases
) -> str:
    """Return a calculated age or span with the fact it is based on; empty if none is asked for."""
    if len(findings) != 1 or findings[0].previous or not asker.date:
        return ""
    # For "how many days until my exam", a fact with the exam's date need not mention days.
    named = [group for group in question.required if not group & _COUNTED]
    fact = findings[0].current.line
    own = not named and not fact.subject and fact.owner == USER.lower()
    if not (own or named) or not all(group & fact.terms for group in named):
        return ""
    source = findings[0].source
    said_on = date.fromisoformat(source.when[:10]) if source.when else None
    calculated = calculate_answer(
        question.text, SAID_ON.sub("", fact.text), date.fromisoformat(asker.date), said_on
    )
    return (
        f"{calculated} {_describe_finding(findings[0], asker, question, phrases)}"
        if calculated
        else ""
    )


def _summed_answer(
    everything: Sequence[Candidate], question: ParsedQuestion, asker: UserMessage, phrases: Phrases
) -> str:
    """Return the total that a question asks for, with its parts; empty if it asks for none."""
    if not asks_total(question.text):
        return ""
    named = [group for group in question.required if not group & QUESTION_TERMS]
    named = [group for group in named if not group & LIGHT_VERBS] or named
    matching = {
        comparison_key(candidate.line.text): candidate
        for candidate in everything
        if candidate.first_hand
        and any(group & candidate.line.terms for group in named)
        and not (candidate.line.negated or is_hypothetical(candidate.line.text))
        and (not asker.in_group or candidate.who in (asker.who, asker.name))
        and not of_somebody_else(candidate, question, asker, question.optional.union(*named))
    }
    covered = all(
        any(group & candidate.line.terms for candidate in matching.values()) for group in named
    )
    summed = (
        sum_amounts([candidate.line.text for candidate in matching.values()]) if covered else ""
    )
    parts = [
        _describe_finding(ResolvedFact(candidate), asker, question, phrases)
        for candidate in matching.values()
    ]
    return f"{summed}\n{_as_list(parts)}" if summed else ""


def _best_candidates(
    everything: Sequence[Candidate], question: ParsedQuestion, asker: UserMessage
) -> tuple[int, list[Candidate]]:
    """Return the best level, as ``match_level`` defines it, and the candidates that reach it."""
    levels = [(match_level(candidate, question, asker), candidate) for candidate in everything]
    levels = [
        (1 if level > 1 and lacks_answer(candidate, question) else level, candidate)
        for level, candidate in levels
    ]
    top = max((level for level, _ in levels), default=0)
    fitting = [
        candidate
        for level, candidate in levels
        if level and answers_question(candidate, question, asker)
    ]
    if top < 3 and fitting:
        return 3, fitting
    least = max(top, 1)
    if question.form == "topic" and top >= 2:
        least = min(level for level, _ in levels if level >= 2)
    return top, [candidate for level, candidate in levels if level >= least]


def _resolve_best(
    best: Sequence[Candidate], everything: Sequence[Candidate], question: ParsedQuestion
) -> list[ResolvedFact]:
    """Resolve the best candidates; for "how many", put facts with a number first."""
    first_hand = [candidate for candidate in best if candidate.first_hand]
    understood = [
        candidate for candidate in first_hand if candidate.is_parsed or candidate.line.quotation
    ]
    findings = resolve_candidates(understood or first_hand or best, everything, _MAX_FINDINGS)
    if question.text.lower().startswith("how many"):
        findings.sort(key=lambda candidate: not _NUMBER.search(candidate.current.line.text))
    return findings


def _answer_with_changes(
    findings: Sequence[ResolvedFact],
    said: Sequence[Candidate],
    asker: UserMessage,
    question: ParsedQuestion,
    phrases: Phrases,
    *,
    top: int,
) -> str:
    """Return the answer if a later statement changes a found fact; empty if none does."""
    ordered = group_by_change(findings, said, question, asker)
    changes = [change for change, _ in ordered if change]
    if not changes:
        return ""
    changed_answer = _describe_changes(ordered, asker, question, phrases)
    fitting = any(answers_question(statement, question, asker) for statement in changes)
    sure = top >= 2 or fitting or _STILL.search(question.text)
    return changed_answer if sure else f"{phrases.unknown} {phrases.closest}\n{changed_answer}"


def answer(
    prompt: ParsedRequest,
    memory: str,
    recalled: Sequence[Passage],
    asker: UserMessage,
    question: ParsedQuestion,
) -> str:
    """Answer one question.

    Args:
        prompt: The parsed request.
        memory: Long-term memory as text.
        recalled: Passages that recall returned.
        asker: The message that asks.
        question: The question.
    """
    phrases = PHRASES[question.language]
    if noted := _answer_from_notes(prompt, asker, question, phrases):
        return noted
    question_terms = " ".join(sorted(set().union(*question.required, question.optional)))
    candidates = gather_candidates(prompt, memory, recalled, asker, question_terms)
    day = _day_asked_about(question, asker)
    if day:
        dated = [one for one in candidates if one.when.startswith(day)]
        candidates = dated or (candidates if question.required else [])
    question = with_names(question, candidates)
    if summed := _summed_answer(candidates, question, asker, phrases):
        return summed
    top, best = _best_candidates(candidates, question, asker)
    findings = _resolve_best(best, candidates, question)
    if not findings:
        return _unknown_answer(question, phrases)
    former = [one.previous for one in findings if one.previous]
    if former and _BEFORE.search(question.text) and question.form == "value":
        return " ".join(_quote_candidate(one, asker, phrases) for one in former)
    if question.form != "topic" and question.language == "en":
        statements = [
            one for one in gather_candidates(prompt, memory, recalled, asker, "") if one.from_person
        ]
        if changed_answer := _answer_with_changes(
            findings, statements, asker, question, phrases, top=top
        ):
            return changed_answer
        if sum_of := _calculated_answer(findings, asker, question, phrases):
            return sum_of
    return _answer_from_findings(findings, top, asker, question, phrases)


def _answer_from_findings(
    findings: Sequence[ResolvedFact],
    top: int,
    asker: UserMessage,
    question: ParsedQuestion,
    phrases: Phrases,
) -> str:
    """Return the found facts as sentences, and say so if they may not answer the question."""
    lines = [_describe_finding(finding, asker, question, phrases) for finding in findings]
    body = _as_list(lines)
    if top == 3 or question.form == "topic" or (top == 2 and question.form == "yesno"):
        sure = top == 3 or any(_is_opposite_liking(question, one.current.line) for one in findings)
        return (_yes_or_no(question, findings) if sure else "") + body
    if _STILL.search(question.text) and all(is_over(one.source.words) for one in findings):
        return body
    separator = "\n" if len(lines) > 1 else " "
    if all(finding.current.from_file for finding in findings):
        return f"{_FOUND_IN_FILES}{separator}{body}"
    if _OTHER_SCRIPT.search(question.text):
        return f"{phrases.closest}{separator}{body}"
    return f"{phrases.unknown} {phrases.closest}{separator}{body}"
