"""Answer a question with the known facts, and say who stated them, in which words, and when.

Rule 1: an answer that is not fully supported says so.
Rule 2: a fact is put in the second person if that is certain; otherwise it is quoted.
Rule 3: the same question over the same evidence has the same answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta

from bot.core.i18n import N_, _
from bot.core.patterns import LazyPattern
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
from bot.offline.phrases import (
    CHANGED,
    CLOSEST,
    I_SAID,
    NEVER_TOLD,
    OTHER_SAID,
    TELL_ME,
    UNKNOWN,
    YOU_SAID,
    quote,
    shown_time,
)
from bot.offline.program_words import translated
from bot.offline.reference_parser import (
    describe_problem,
    describe_value,
    matching_values,
    requested_note_kinds,
)
from bot.offline.request_parser import ASSISTANT, ParsedRequest, Passage, UserMessage

_MAX_FINDINGS = 5
_OTHER_SCRIPT = LazyPattern("[\u0370-\u1fff\u2e80-\uffdc]")
_TOLD_ABOUT = LazyPattern(
    r"(?:did|have) (?:i|we) (?:ever |already )?(?:tell|told|mention)", re.IGNORECASE
)
_BEFORE = LazyPattern(r"\b(?:before|previously|formerly|used? to)\b", re.IGNORECASE)
_NUMBER = LazyPattern(
    r"\d|\b(?:no|one|two|three|four|five|six|seven|eight|nine|ten|twelve)\b", re.IGNORECASE
)
_STILL = LazyPattern(
    r"\b(?:still|any ?more|yet|now|at the moment|currently|these days)\b", re.IGNORECASE
)
_UNSURE = LazyPattern(r"\b(?:their|them)\b")
_FOUND_IN_FILES = N_("The closest thing that I found:")
_LIKING = frozenset((fact_term("like"), fact_term("hate")))
_COUNTED = frozenset(map(fact_term, "day week month year old age long left get ago".split()))
_LAST_TIME = LazyPattern(
    r"(?:what|where) (?:did|were|have) we (?:talk|talked|discuss|leave|talking|speak|doing|do|left)\b",
    re.IGNORECASE,
)


def address_user(text: str, asker: UserMessage) -> str:
    """Return a fact in the second person, or quoted if the conversion is unsafe."""
    if _UNSURE.search(text) and "the user" in text.lower():
        return _("My memory says: {quote}", quote=quote(text))
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
    lines += [_("I concluded: {quote}", quote=quote(belief)) for belief in prompt.beliefs]
    if lines and prompt.problem is not None:
        lines.append(
            _(
                "We are working on {problem}; `/problem show` shows what is noted for it.",
                problem=quote(prompt.problem.name),
            )
        )
    return "\n".join(f"- {text}" for text in lines)


def _quote_candidate(candidate: Candidate, asker: UserMessage) -> str:
    quotation, when = quote(candidate.words), shown_time(candidate.when)
    if candidate.who == "note" and candidate.when:
        return _("Note of {when}: {quote}", when=when, quote=quotation)
    if candidate.who == "note":
        return _("From my notes: {quote}", quote=quotation)
    if candidate.who == "history":
        return _("From the record of {when}: {quote}", when=when, quote=quotation)
    if candidate.from_file:
        name = candidate.who.removeprefix(FILE)
        return _("In {file}, sent on {when}: {quote}", file=name, when=when, quote=quotation)
    if candidate.who == ASSISTANT:
        return _(I_SAID, when=when, quote=quotation)
    if not asker.in_group or candidate.who in (asker.who, asker.name):
        return _(YOU_SAID, when=when, quote=quotation)
    who = candidate.who.rpartition(" (")[0] or candidate.who
    return _(OTHER_SAID, who=who, when=when, quote=quotation)


def _describe_finding(finding: ResolvedFact, asker: UserMessage, question: ParsedQuestion) -> str:
    """Return one resolved fact as sentences, with its evidence."""
    current, parts = finding.current, []
    fact = current.line
    if fact.quotation:
        told = _("You told me: {quote}", quote=quote(fact.quotation))
        parts.append("" if finding.evidence else told)
    elif (current.is_parsed and current.who in ("memory", "note")) or (
        current.is_parsed and current.who not in ("history", ASSISTANT)
    ):
        if question.language == "en" or finding.evidence is None:
            parts.append(address_user(fact.text, asker))
    elif current.who == "memory":
        parts.append(_("My memory says: {quote}", quote=quote(fact.text)))
    if finding.evidence:
        parts.append(_quote_candidate(finding.evidence, asker))
    elif current.words and (current.who != "note" or not parts):
        parts.append(_quote_candidate(current, asker))
    elif current.who == "note" and current.when:
        parts.append(_("That is in my notes of {when}.", when=shown_time(current.when)))
    elif question.language == "en" and not fact.quotation and current.is_parsed:
        parts.append(_("That is in my long-term memory."))
    if finding.previous:
        before = finding.previous
        parts.append(_(CHANGED, when=shown_time(before.when), quote=quote(before.words)))
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
        return _("Not any more.")
    if " used to " in fact.text and not fact.retracts:
        return ""
    if _is_opposite_liking(question, fact):
        return "" if fact.negated else _("No.")
    if fact.negated:
        return _("No.")
    return "" if is_over(finding.source.words) else _("Yes.")


def _is_opposite_liking(question: ParsedQuestion, line: ParsedFact) -> bool:
    """Return whether one of question and fact says "like" and the other "hate"."""
    asked = frozenset().union(*question.required) & _LIKING
    return line.verb in _LIKING and bool(asked) and line.verb not in asked


def _day_asked_about(question: ParsedQuestion, asker: UserMessage) -> str:
    if not question.relative_day or not asker.date:
        return ""
    day = date.fromisoformat(asker.date)
    return (day - timedelta(days=question.relative_day == "yesterday")).isoformat()


def _unknown_answer(question: ParsedQuestion) -> str:
    if _TOLD_ABOUT.match(question.text) and question.language == "en":
        return f"{_(NEVER_TOLD)} {_(TELL_ME)}"
    if question.personal:
        return f"{_(UNKNOWN)} {_(TELL_ME)}"
    told = _(
        "I only know what I am told; tell me, and I will remember it. For general knowledge, set a real "
        "model (`TAPEBOT_MODEL` in `.env`)."
    )
    return f"{_(UNKNOWN)} {told}"


def _answer_from_notes(prompt: ParsedRequest, asker: UserMessage, question: ParsedQuestion) -> str:
    """Return the answer from the handoff, the problem's notes or shared values; else empty."""
    if prompt.handoff and _LAST_TIME.match(question.text):
        heading, line_break, rest = prompt.handoff.partition("\n")
        told = f"{translated(heading)}{line_break}{rest}"
        return _("My note from the former session: {quote}", quote=quote(told, 900))
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
) -> str:
    """Return the changes with their dates, each followed by the facts that it changes."""
    lines = []
    for change, findings in ordered:
        former = [_describe_finding(finding, asker, question) for finding in findings]
        if change is None:
            lines += former
        else:
            before = _("Before that: {facts}", facts=" ".join(former))
            lines.append(f"{_quote_candidate(change, asker)} {before}")
    return _as_list(lines)


def _calculated_answer(
    findings: Sequence[ResolvedFact], asker: UserMessage, question: ParsedQuestion
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
    return f"{calculated} {_describe_finding(findings[0], asker, question)}" if calculated else ""


def _summed_answer(
    everything: Sequence[Candidate], question: ParsedQuestion, asker: UserMessage
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
        _describe_finding(ResolvedFact(candidate), asker, question)
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
    *,
    top: int,
) -> str:
    """Return the answer if a later statement changes a found fact; empty if none does."""
    ordered = group_by_change(findings, said, question, asker)
    changes = [change for change, _ in ordered if change]
    if not changes:
        return ""
    changed_answer = _describe_changes(ordered, asker, question)
    fitting = any(answers_question(statement, question, asker) for statement in changes)
    sure = top >= 2 or fitting or _STILL.search(question.text)
    return changed_answer if sure else f"{_(UNKNOWN)} {_(CLOSEST)}\n{changed_answer}"


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
    if noted := _answer_from_notes(prompt, asker, question):
        return noted
    question_terms = " ".join(sorted(set().union(*question.required, question.optional)))
    candidates = gather_candidates(prompt, memory, recalled, asker, question_terms)
    day = _day_asked_about(question, asker)
    if day:
        dated = [one for one in candidates if one.when.startswith(day)]
        candidates = dated or (candidates if question.required else [])
    question = with_names(question, candidates)
    if summed := _summed_answer(candidates, question, asker):
        return summed
    top, best = _best_candidates(candidates, question, asker)
    findings = _resolve_best(best, candidates, question)
    if not findings:
        return _unknown_answer(question)
    former = [one.previous for one in findings if one.previous]
    if former and _BEFORE.search(question.text) and question.form == "value":
        return " ".join(_quote_candidate(one, asker) for one in former)
    if question.form != "topic" and question.language == "en":
        statements = [
            one for one in gather_candidates(prompt, memory, recalled, asker, "") if one.from_person
        ]
        if changed_answer := _answer_with_changes(findings, statements, asker, question, top=top):
            return changed_answer
        if sum_of := _calculated_answer(findings, asker, question):
            return sum_of
    return _answer_from_findings(findings, top, asker, question)


def _answer_from_findings(
    findings: Sequence[ResolvedFact],
    top: int,
    asker: UserMessage,
    question: ParsedQuestion,
) -> str:
    """Return the found facts as sentences, and say so if they may not answer the question."""
    lines = [_describe_finding(finding, asker, question) for finding in findings]
    body = _as_list(lines)
    if top == 3 or question.form == "topic" or (top == 2 and question.form == "yesno"):
        sure = top == 3 or any(_is_opposite_liking(question, one.current.line) for one in findings)
        start = _yes_or_no(question, findings) if sure else ""
        return f"{start} {body}".lstrip()
    if _STILL.search(question.text) and all(is_over(one.source.words) for one in findings):
        return body
    separator = "\n" if len(lines) > 1 else " "
    if all(finding.current.from_file for finding in findings):
        return f"{_(_FOUND_IN_FILES)}{separator}{body}"
    if _OTHER_SCRIPT.search(question.text):
        return f"{_(CLOSEST)}{separator}{body}"
    return f"{_(UNKNOWN)} {_(CLOSEST)}{separator}{body}"
