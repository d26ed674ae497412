"""Collect candidate facts for a question and resolve conflicts between them.

Rule 1: only memory and people's own statements are evidence of a fact; questions are not, and the
        assistant's words and history count only if nothing else is found.
Rule 2: memory is current; of two conflicting statements the newer is current.
Rule 3: statements that a person later asked to forget are not used, though the tape may hold them.
Rule 4: nothing in a passage is ever obeyed; it is only quoted.
Rule 5: the text of a file is no statement of a person: it is quoted if nothing else is found, and
        never parsed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bot.core.patterns import LazyPattern
from bot.language.fact_terms import (
    RELATION_TERMS,
    comparison_key,
    fact_term,
    fact_terms,
    fact_words,
)
from bot.language.grammatical_person import USER
from bot.language.parsed_facts import ATTRIBUTES, ParsedFact, conflicts, parse_fact
from bot.language.remaining_facts import remaining_text
from bot.language.sentences import chat_sentences, is_code, without_code
from bot.language.statements import extract_facts
from bot.offline.files import FILE, passages_of
from bot.offline.intents import ParsedQuestion, is_specific, sentence_intents
from bot.offline.memory_text import fact_lines
from bot.offline.phrases import is_own_reply
from bot.offline.request_parser import ASSISTANT, ParsedRequest, Passage, UserMessage

_MAX_PASSAGES = 80
_PAST_ASKED = frozenset(("did", "was", "were", "used", "before", "once", "ever"))
_NAMED = LazyPattern(r"(?<=\w )[A-Z]\w+")
_CALLED = LazyPattern(
    r"(?:called |named )?(?:(?:Mr|Mrs|Ms|Dr|Frau|Herr)\.? )?(?P<name>[A-Z][\w'’-]{1,30}(?: [A-Z][\w'’-]{1,30})?)"
)
_WHO_IS = LazyPattern(r"(?:[Mm]y|[Oo]ur) (?P<kin>[a-z]{3,20}),? (?P<name>[A-Z]\w{1,30})\b")
_NAMING = frozenset(("be", fact_term("call"), fact_term("name")))
_OF_NAMES = frozenset((fact_term("name"), fact_term("best"), fact_term("new"), fact_term("here")))
_RANKS = {"memory": 3, "note": 1, "history": 0, ASSISTANT: 0}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A statement that may answer a question.

    Attributes:
        line: The parsed fact; only its text is set if it could not be parsed.
        words: The sentence that it was taken from; empty for a line of memory.
        who: The source, as in ``Passage``.
        when: Day, or day and minute; empty for memory.
    """

    line: ParsedFact
    words: str
    who: str
    when: str = ""

    @property
    def is_parsed(self) -> bool:
        """Whether the statement was parsed."""
        return bool(self.line.verb)

    @property
    def first_hand(self) -> bool:
        """Whether the source is a person, a daily note or memory."""
        return self.who not in ("history", ASSISTANT) and not self.from_file

    @property
    def from_person(self) -> bool:
        """Whether these are a person's own words."""
        return bool(self.words) and self.who not in _RANKS and not self.from_file

    @property
    def from_file(self) -> bool:
        """Whether the source is a file."""
        return self.who.startswith(FILE)

    @property
    def rank(self) -> tuple[int, str, bool]:
        """Sort key, greater is better: memory, then people's words, the newest first."""
        return (0 if self.from_file else _RANKS.get(self.who, 2), self.when, self.is_parsed)

    def newer(self, other: Candidate) -> bool:
        """Return whether this is more current than the other: memory first, then by date."""
        is_memory, other_is_memory = self.who == "memory", other.who == "memory"
        return (is_memory, self.when) > (other_is_memory, other.when)


def owner_name(who: str, asker: UserMessage) -> str:
    """Return the name that facts use for a speaker."""
    if not asker.in_group:
        return USER
    return asker.subject if who in (asker.who, asker.name) else who


_ForgetRequest = tuple[str, str, frozenset[str]]


def _was_forgotten(candidate: Candidate, forgotten: _ForgetRequest, asker: UserMessage) -> bool:
    """Return whether the person who said a statement later asked to forget it."""
    when, who, topic = forgotten
    may_forget = candidate.who == who or not asker.in_group
    return (
        may_forget
        and candidate.when <= when
        and topic <= candidate.line.terms | set(fact_terms(candidate.words))
    )


def _stated_candidates(
    passage: Passage, asker: UserMessage, forgotten: list[_ForgetRequest]
) -> Iterable[Candidate]:
    """Yield the statements of a passage, and add its requests to forget to ``forgotten``."""
    subject = owner_name(passage.who, asker)
    stated = extract_facts(passage.text, subject, passage.when[:10], passage.who)
    for fact in stated:
        yield Candidate(parse_fact(fact.line, subject), fact.words, passage.who, passage.when)
    covered = {fact.words for fact in stated}
    for sentence in chat_sentences(without_code(passage.text)):
        if sentence in covered or is_code(sentence):
            continue
        intents = sentence_intents(asker, sentence)
        forgotten.extend(
            (passage.when, passage.who, frozenset(fact_terms(intent.topic)))
            for intent in intents
            if intent.kind == "forget" and fact_terms(intent.topic)
        )
        if not intents:
            yield Candidate(ParsedFact(sentence), sentence, passage.who, passage.when)


def _messages_in_view(prompt: ParsedRequest, topic_terms: set[str]) -> list[Passage]:
    """Return people's messages in view: the newest, and older ones that share a wanted term."""
    seen = [
        Passage(message.words, message.who or USER, message.when)
        for message in (*prompt.earlier, *prompt.turn)
    ]
    older = [
        message
        for message in seen[:-_MAX_PASSAGES]
        if topic_terms & set(fact_terms(message.text[:2000]))
    ]
    return older[-_MAX_PASSAGES:] + seen[-_MAX_PASSAGES:]


def _file_passages(prompt: ParsedRequest, topic_terms: set[str]) -> list[Passage]:
    """Return passages of files in view that share a term with the question."""
    passages = [
        Passage(text, f"{FILE}{file.name}", message.when)
        for message in (*prompt.earlier, *prompt.turn)
        for file in message.files
        for text in passages_of(file)
        if topic_terms & set(fact_terms(text))
    ]
    return passages[-_MAX_PASSAGES:]


def _all_passages(
    prompt: ParsedRequest, recalled: Sequence[Passage], topic_terms: set[str]
) -> list[Passage]:
    """Return recalled passages, notes, files, then messages in view, each once."""
    passages: dict[tuple[str, str], Passage] = {}
    sources = (*recalled, *prompt.recalled, *prompt.notes, *_file_passages(prompt, topic_terms))
    for passage in (*sources, *_messages_in_view(prompt, topic_terms)):
        if passage.who != "memory" and passage.text:
            # Keep the order of the view; recall may return the same passages in another.
            name = passage.when, comparison_key(passage.text) or passage.text
            passages.pop(name, None)
            passages[name] = passage
    return list(passages.values())


def gather_candidates(
    prompt: ParsedRequest, memory: str, recalled: Sequence[Passage], asker: UserMessage, topic: str
) -> list[Candidate]:
    """Return all facts in memory, and the other candidates that share a term with a question.

    Args:
        prompt: The parsed request.
        memory: Current long-term memory.
        recalled: Passages that recall returned.
        asker: The message that asks.
        topic: Terms of the question; an empty text takes everything.
    """
    topic_terms = set(topic.split())
    from_memory = [
        Candidate(parse_fact(text, asker.subject), "", "memory") for text in fact_lines(memory)
    ]
    forgotten: list[_ForgetRequest] = []
    from_passages: list[Candidate] = []
    for passage in _all_passages(prompt, recalled, topic_terms)[: 4 * _MAX_PASSAGES]:
        if passage.from_person:
            from_passages.extend(_stated_candidates(passage, asker, forgotten))
        elif passage.from_file:
            from_passages.append(
                Candidate(ParsedFact(passage.text), passage.text, passage.who, passage.when)
            )
        elif passage.who != ASSISTANT or not is_own_reply(passage.text):
            fact = parse_fact(passage.text, asker.subject)
            from_passages.append(Candidate(fact, passage.text, passage.who, passage.when))
    from_passages = [
        candidate
        for candidate in from_passages
        if not any(_was_forgotten(candidate, request, asker) for request in forgotten)
    ]
    return from_memory + [
        candidate
        for candidate in from_passages
        if not topic_terms
        or topic_terms & (candidate.line.terms | set(fact_terms(candidate.words)))
    ]


def with_names(question: ParsedQuestion, known: Sequence[Candidate]) -> ParsedQuestion:
    """Return a question that also matches known names: "my wife" also finds Ingrid."""
    groups = list(question.required)
    for at, group in enumerate(groups):
        for candidate in known:
            named = (
                _CALLED.fullmatch(candidate.line.rest) if candidate.line.verb in _NAMING else None
            )
            subject_terms = set(candidate.line.subject) - _OF_NAMES
            if named and subject_terms and subject_terms <= group and not candidate.line.negated:
                groups[at] = groups[at] | {
                    fact_term(word) for word in fact_words(named["name"])[-1:]
                }
            who = _WHO_IS.match(candidate.words) if group & RELATION_TERMS else None
            if who and fact_term(who["kin"].lower()) in group:
                groups[at] = groups[at] | {fact_term(who["name"].lower())}
    return replace(question, required=tuple(groups))


def match_level(candidate: Candidate, question: ParsedQuestion, asker: UserMessage) -> int:
    """Return how well a candidate matches: 3 all terms, 2 the specific ones, 1 some, 0 none."""
    fact = candidate.line
    owner = fact.owner if asker.in_group else ""
    statement_terms = (
        fact.terms
        | set(fact_terms(candidate.words if not candidate.is_parsed else ""))
        | set(fact_terms(owner))
    )
    if not question.required:
        return 3 if question.relative_day or question.optional & statement_terms else 0
    if fact.former and not _PAST_ASKED & set(fact_words(question.text)):
        return 0
    matched = [group for group in question.required if group & statement_terms]
    asked_terms = frozenset().union(*question.required) | question.optional
    if of_somebody_else(candidate, question, asker, asked_terms):
        return (
            1
            if set(fact.subject) & asked_terms and not (asker.in_group and question.personal)
            else 0
        )
    if len(matched) == len(question.required):
        return 3
    specific = [group for group in question.required if is_specific(group)]
    matched_specific = sum(1 for group in specific if group & statement_terms)
    if specific and matched_specific == len(specific):
        return 2
    about = bool(fact.subject) and set(fact.subject) <= asked_terms
    return 1 if about or (specific and 2 * matched_specific >= len(specific)) else 0


def of_somebody_else(
    candidate: Candidate, question: ParsedQuestion, asker: UserMessage, asked_terms: frozenset[str]
) -> bool:
    """Return whether a statement is about somebody whom the question does not ask about."""
    fact = candidate.line
    if not candidate.is_parsed or question.form == "topic" or not question.personal:
        return False
    if asker.in_group and fact.owner and fact.owner != asker.subject.casefold():
        return question.personal
    extra = set(fact.subject) - asked_terms
    shared = set(fact.subject) & asked_terms - ATTRIBUTES
    if extra & RELATION_TERMS:
        # "My daughter Mia" matches "Mia"; "my wife's shoe" does not match "my shoe".
        return not any(fact_term(name.lower()) in shared for name in _NAMED.findall(question.text))
    return not shared and bool(extra and not fact.owner)


@dataclass(frozen=True, slots=True)
class ResolvedFact:
    """A current fact, its evidence, and the statement that it replaced.

    Attributes:
        current: The current statement.
        evidence: The newest words of a person that say so; None if none were found.
        previous: The newest statement that it replaced; None if there is none.
    """

    current: Candidate
    evidence: Candidate | None = None
    previous: Candidate | None = None

    @property
    def source(self) -> Candidate:
        """The evidence; the current statement if there is none."""
        return self.evidence or self.current


def _newer_conflicting(old: Candidate, candidates: Sequence[Candidate]) -> Candidate | None:
    same_key = comparison_key(old.line.text)
    if not old.is_parsed or any(
        candidate.who == "memory" and comparison_key(candidate.line.text) == same_key
        for candidate in candidates
    ):
        return None
    later = [
        candidate for candidate in candidates
        if candidate.is_parsed and candidate.newer(old) and comparison_key(candidate.line.text) != same_key
        and conflicts(candidate.line, old.line)
    ]  # fmt: skip
    return max(later, key=lambda candidate: candidate.rank, default=None)


def resolve_candidates(
    best: Sequence[Candidate], candidates: Sequence[Candidate], limit: int
) -> list[ResolvedFact]:
    """Return the current facts behind the best candidates, each once, the best first."""
    resolved: dict[str, ResolvedFact] = {}
    stated = {
        comparison_key(candidate.line.text) for candidate in best if candidate.who == "memory"
    }
    for candidate in sorted(best, key=lambda each: each.rank, reverse=True):
        newer = _newer_conflicting(candidate, candidates)
        if newer is not None and newer not in best:
            rest = remaining_text(newer.line, candidate.line)
            if rest and comparison_key(rest) in stated:
                continue
            newer = None if rest else newer
        current = newer or candidate
        name = comparison_key(current.line.text) or current.line.text
        fact = resolved.get(name)
        if fact is None:
            fact = ResolvedFact(current, evidence=_evidence_for(current, candidates))
        if newer is not None and fact.previous is None and candidate.words:
            fact = ResolvedFact(fact.current, fact.evidence, candidate)
        resolved[name] = fact
    return list(resolved.values())[:limit]


def _evidence_for(head: Candidate, candidates: Sequence[Candidate]) -> Candidate | None:
    same = [
        candidate
        for candidate in candidates
        if candidate.from_person
        and comparison_key(candidate.line.text) == comparison_key(head.line.text)
    ]
    if same:
        return max(same, key=lambda candidate: candidate.when)
    return head if head.from_person else None
