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

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

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
from bot.offline.request_parser import ASSISTANT, ParsedRequest, Passage, UserMessage

_MAX_PASSAGES = 80
_OWN_PHRASES = re.compile(
    r"offline responder|I don't know|That changed|\bsaid on \d{4}|^(?:Noted|Notiert|C'est noté|Anotado"
    r"|Forgotten|I'll remember|I have that already|I could not|To erase|This is what I know|My )"
)
_PAST_ASKED = frozenset(("did", "was", "were", "used", "before", "once", "ever"))
_NAMED = re.compile(r"(?<=\w )[A-Z]\w+")
_CALLED = re.compile(
    r"(?:called |named )?(?:(?:Mr|Mrs|Ms|Dr|Frau|Herr)\.? )?(?P<name>[A-Z][\w'’-]{1,30}(?: [A-Z][\w'’-]{1,30})?)"
)
_WHO_IS = re.compile(r"(?:[Mm]y|[Oo]ur) (?P<kin>[a-z]{3,20}),? (?P<name>[A-Z]\w{1,30})\b")
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
        mine, theirs = self.who == "memory", other.who == "memory"
        return (mine, self.when) > (theirs, other.when)


def owner_name(who: str, asker: UserMessage) -> str:
    """Return the name that facts use for a speaker."""
    if not asker.in_group:
        return USER
    return asker.subject if who in (asker.who, asker.name) else who


_ForgetRequest = tuple[str, str, frozenset[str]]


def _was_forgotten(one: Candidate, forgotten: _ForgetRequest, asker: UserMessage) -> bool:
    """Return whether the person who said a statement later asked to forget it."""
    when, who, topic = forgotten
    mine = one.who == who or not asker.in_group
    return mine and one.when <= when and topic <= one.line.terms | set(fact_terms(one.words))


def _stated_candidates(
    passage: Passage, asker: UserMessage, forgotten: list[_ForgetRequest]
) -> Iterable[Candidate]:
    """Yield the statements of a passage, and add its requests to forget to ``forgotten``."""
    subject = owner_name(passage.who, asker)
    stated = extract_facts(passage.text, subject, passage.when[:10], passage.who)
    for fact in stated:
        yield Candidate(parse_fact(fact.line, subject), fact.words, passage.who, passage.when)
    covered = {fact.words for fact in stated}
    for spoken in chat_sentences(without_code(passage.text)):
        if spoken in covered or is_code(spoken):
            continue
        wanted = sentence_intents(asker, spoken)
        forgotten.extend(
            (passage.when, passage.who, frozenset(fact_terms(act.topic)))
            for act in wanted
            if act.kind == "forget" and fact_terms(act.topic)
        )
        if not wanted:
            yield Candidate(ParsedFact(spoken), spoken, passage.who, passage.when)


def _messages_in_view(prompt: ParsedRequest, wanted: set[str]) -> list[Passage]:
    """Return people's messages in view: the newest, and older ones that share a wanted term."""
    seen = [
        Passage(one.words, one.who or USER, one.when) for one in (*prompt.earlier, *prompt.turn)
    ]
    older = [one for one in seen[:-_MAX_PASSAGES] if wanted & set(fact_terms(one.text[:2000]))]
    return older[-_MAX_PASSAGES:] + seen[-_MAX_PASSAGES:]


def _file_passages(prompt: ParsedRequest, wanted: set[str]) -> list[Passage]:
    """Return passages of files in view that share a term with the question."""
    found = [
        Passage(text, f"{FILE}{file.name}", one.when)
        for one in (*prompt.earlier, *prompt.turn)
        for file in one.files
        for text in passages_of(file)
        if wanted & set(fact_terms(text))
    ]
    return found[-_MAX_PASSAGES:]


def _all_passages(
    prompt: ParsedRequest, recalled: Sequence[Passage], wanted: set[str]
) -> list[Passage]:
    """Return recalled passages, notes, files, then messages in view, each once."""
    found: dict[tuple[str, str], Passage] = {}
    written = (*recalled, *prompt.recalled, *prompt.notes, *_file_passages(prompt, wanted))
    for passage in (*written, *_messages_in_view(prompt, wanted)):
        if passage.who != "memory" and passage.text:
            # Keep the order of the view; recall may return the same passages in another.
            name = passage.when, comparison_key(passage.text) or passage.text
            found.pop(name, None)
            found[name] = passage
    return list(found.values())


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
    wanted = set(topic.split())
    found = [
        Candidate(parse_fact(text, asker.subject), "", "memory") for text in fact_lines(memory)
    ]
    forgotten: list[_ForgetRequest] = []
    heard: list[Candidate] = []
    for passage in _all_passages(prompt, recalled, wanted)[: 4 * _MAX_PASSAGES]:
        if passage.from_person:
            heard.extend(_stated_candidates(passage, asker, forgotten))
        elif passage.from_file:
            heard.append(
                Candidate(ParsedFact(passage.text), passage.text, passage.who, passage.when)
            )
        elif passage.who != ASSISTANT or not _OWN_PHRASES.search(passage.text):
            line = parse_fact(passage.text, asker.subject)
            heard.append(Candidate(line, passage.text, passage.who, passage.when))
    heard = [
        one for one in heard if not any(_was_forgotten(one, gone, asker) for gone in forgotten)
    ]
    return found + [
        one for one in heard if not wanted or wanted & (one.line.terms | set(fact_terms(one.words)))
    ]


def with_names(question: ParsedQuestion, known: Sequence[Candidate]) -> ParsedQuestion:
    """Return a question that also matches known names: "my wife" also finds Ingrid."""
    groups = list(question.required)
    for at, group in enumerate(groups):
        for one in known:
            named = _CALLED.fullmatch(one.line.rest) if one.line.verb in _NAMING else None
            mine = set(one.line.subject) - _OF_NAMES
            if named and mine and mine <= group and not one.line.negated:
                groups[at] = groups[at] | {
                    fact_term(word) for word in fact_words(named["name"])[-1:]
                }
            who = _WHO_IS.match(one.words) if group & RELATION_TERMS else None
            if who and fact_term(who["kin"].lower()) in group:
                groups[at] = groups[at] | {fact_term(who["name"].lower())}
    return replace(question, required=tuple(groups))


def match_level(candidate: Candidate, question: ParsedQuestion, asker: UserMessage) -> int:
    """Return how well a candidate matches: 3 all terms, 2 the specific ones, 1 some, 0 none."""
    line = candidate.line
    owner = line.owner if asker.in_group else ""
    held = (
        line.terms
        | set(fact_terms(candidate.words if not candidate.is_parsed else ""))
        | set(fact_terms(owner))
    )
    if not question.required:
        return 3 if question.relative_day or question.optional & held else 0
    if line.former and not _PAST_ASKED & set(fact_words(question.text)):
        return 0
    hit = [group for group in question.required if group & held]
    wanted = frozenset().union(*question.required) | question.optional
    if of_somebody_else(candidate, question, asker, wanted):
        return 1 if set(line.subject) & wanted and not (asker.in_group and question.personal) else 0
    if len(hit) == len(question.required):
        return 3
    named = [group for group in question.required if is_specific(group)]
    hit_named = sum(1 for group in named if group & held)
    if named and hit_named == len(named):
        return 2
    about = bool(line.subject) and set(line.subject) <= wanted
    return 1 if about or (named and 2 * hit_named >= len(named)) else 0


def of_somebody_else(
    candidate: Candidate, question: ParsedQuestion, asker: UserMessage, wanted: frozenset[str]
) -> bool:
    """Return whether a statement is about somebody whom the question does not ask about."""
    line = candidate.line
    if not candidate.is_parsed or question.form == "topic" or not question.personal:
        return False
    if asker.in_group and line.owner and line.owner != asker.subject.casefold():
        return question.personal
    extra = set(line.subject) - wanted
    shared = set(line.subject) & wanted - ATTRIBUTES
    if extra & RELATION_TERMS:
        # "My daughter Mia" matches "Mia"; "my wife's shoe" does not match "my shoe".
        return not any(fact_term(name.lower()) in shared for name in _NAMED.findall(question.text))
    return not shared and bool(extra and not line.owner)


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


def _newer_conflicting(old: Candidate, everything: Sequence[Candidate]) -> Candidate | None:
    same = comparison_key(old.line.text)
    if not old.is_parsed or any(
        one.who == "memory" and comparison_key(one.line.text) == same for one in everything
    ):
        return None
    later = [
        one for one in everything
        if one.is_parsed and one.newer(old) and comparison_key(one.line.text) != same
        and conflicts(one.line, old.line)
    ]  # fmt: skip
    return max(later, key=lambda one: one.rank, default=None)


def resolve_candidates(
    best: Sequence[Candidate], everything: Sequence[Candidate], limit: int
) -> list[ResolvedFact]:
    """Return the current facts behind the best candidates, each once, the best first."""
    found: dict[str, ResolvedFact] = {}
    stated = {comparison_key(one.line.text) for one in best if one.who == "memory"}
    for one in sorted(best, key=lambda each: each.rank, reverse=True):
        newer = _newer_conflicting(one, everything)
        if newer is not None and newer not in best:
            rest = remaining_text(newer.line, one.line)
            if rest and comparison_key(rest) in stated:
                continue
            newer = None if rest else newer
        head = newer or one
        name = comparison_key(head.line.text) or head.line.text
        known = found.get(name)
        if known is None:
            known = ResolvedFact(head, evidence=_evidence_for(head, everything))
        if newer is not None and known.previous is None and one.words:
            known = ResolvedFact(known.current, known.evidence, one)
        found[name] = known
    return list(found.values())[:limit]


def _evidence_for(head: Candidate, everything: Sequence[Candidate]) -> Candidate | None:
    same = [
        one
        for one in everything
        if one.from_person and comparison_key(one.line.text) == comparison_key(head.line.text)
    ]
    if same:
        return max(same, key=lambda one: one.when)
    return head if head.from_person else None
