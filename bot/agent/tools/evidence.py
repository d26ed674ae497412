"""Find the messages or facts that support a text the model wants to save.

Rule 1: the first of these that supports a text is cited: a sentence of one message, the facts that
    are merged, split or reworded, all messages being answered. Where a judge checks the text, an
    earlier message is passed over if those being answered share more words with it.
Rule 2: a text with words that occur only in other people's texts must be supported by one sentence
    or the facts.
Rule 3: names, numbers and dates are always checked; the rest is left to the judge if there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from bot.agent.tools.registry import ToolContext
from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason
from bot.language.clauses import parse_clauses
from bot.language.sentences import split_sentences
from bot.memory.gate.cited_sentences import (
    INSTRUCTION_REFUSED,
    name_speaker,
    needs_owner,
    retraction_refusal,
    user_names,
)
from bot.memory.gate.claim_support import (
    best_supporting_sentences,
    is_statement,
    is_verbatim,
    missing_detail,
    unsupported_reason,
    word_overlap,
)
from bot.memory.records.evidence import (
    FROM_OUTSIDE,
    cite,
    cite_third_party,
    may_learn_from,
    sender_text,
    third_party_texts,
)
from bot.memory.records.fact import Evidence, Fact, merge_evidence
from bot.memory.records.proposals import Proposal, ProposalOperation
from bot.memory.records.stemming import stemmed_words
from bot.memory.records.transcript import sent_date, speaker_label
from bot.tape.entries import TapeEntry

_LOOKED_AT = 60
"""Maximum number of messages in view to search, newest first."""
_CARRIED = 0.5
"""Share of a text's words that must occur in another text to count as taken from it."""
PART_SEPARATOR = LazyPattern(r"[;.](?=\s|$)|\n")
"""Separator between the clauses of a text that can be checked one by one."""
_KEPT = 0.6
"""Share of a fact's words that its replacement texts must contain."""
_EARLIER = 3
"""Maximum number of earlier messages that a text may also rest on."""
_NAMED = 4
"""Maximum number of words that a refusal quotes."""
_OWN_TOOLS = frozenset(
    ("memory_save", "memory_daily", "memory_show", "memory_clear", "memory_forget", "skill_read")
)


@dataclass(frozen=True, slots=True)
class AvailableEvidence:
    """The messages and facts that texts of a call may rest on.

    Attributes:
        tape: Name of the tape.
        timezone: The user's time zone.
        answered_messages: The messages that the turn answers.
        own_messages: People's own messages, newest first, starting with those that the turn
            answers.
        quoted_texts: Texts in view that are nobody's own words (quotes, files, tool results), with
            their evidence.
        quoted_only_words: Word stems that occur only in those texts, in no person's own words and
            no active fact.
        has_judge: Whether a judge checks later what rules cannot decide.
        changed_facts: The facts that the same call changes or ends.
        user_names: The names that memory has for the user.
    """

    tape: str
    timezone: tzinfo | None
    answered_messages: Sequence[TapeEntry]
    own_messages: Sequence[TapeEntry]
    quoted_texts: Sequence[tuple[str, Evidence]]
    quoted_only_words: frozenset[str]
    has_judge: bool = False
    changed_facts: tuple[Fact, ...] = ()
    user_names: tuple[str, ...] = ()

    @property
    def changed_facts_text(self) -> str:
        """The text of the changed facts."""
        return " ".join(as_sentence(fact.text) for fact in self.changed_facts)

    @property
    def answered_text(self) -> str:
        """The words of the people that the turn answers."""
        return " ".join(
            sender_text(entry) for entry in self.answered_messages if may_learn_from(entry)
        )

    @property
    def stated_text(self) -> str:
        """The statements among them, without questions, suppositions and jokes."""
        return " ".join(filter(is_statement, split_sentences(self.answered_text)))

    def may_be_translation(self, text: str) -> bool:
        """Return whether a judge should check if the text translates a statement."""
        return (
            self.has_judge and bool(self.stated_text) and not word_overlap(text, self.answered_text)
        )


@dataclass(frozen=True, slots=True)
class _Support:
    """The evidence for a text.

    Attributes:
        evidence: The supporting quotes.
        why: Reason why nothing supports the text; empty if something does.
        unverified: Whether a judge must still confirm the support.
        merged: Whether it rests only on the facts that the call changes or ends.
    """

    evidence: tuple[Evidence, ...] = ()
    why: str = ""
    unverified: bool = False
    merged: bool = False


def collect_evidence(context: ToolContext) -> AvailableEvidence:
    """Return the evidence available to a call, without the facts that it changes."""
    earlier = context.memory.fold.window.conversation()[-_LOOKED_AT:]
    newest = [*reversed(context.answered_messages), *reversed(earlier)]
    own = [entry for entry in newest if entry.kind == "message" and may_learn_from(entry)]
    own = [
        entry
        for entry in {entry.id: entry for entry in own}.values()
        if entry.payload.get("content")
    ]
    foreign = _foreign(earlier, context.tape.name)
    others = {word for text, _ in foreign for word in stemmed_words(text)}
    if others:
        known = [*map(sender_text, own), *(fact.text for fact in context.memory.facts())]
        others -= {word for text in known for word in stemmed_words(text)}
    return AvailableEvidence(
        context.tape.name,
        context.zone.timezone,
        context.answered_messages,
        own,
        foreign,
        frozenset(others),
        user_names=user_names(context.memory.facts()),
    )


def propose(
    op: ProposalOperation, text: str, grounds: AvailableEvidence, fact: int | None = None
) -> Proposal:
    """Return a text as a proposal, with its evidence, an objection or a reason for review."""
    rest = _find_support(text, grounds)
    evidence = rest.evidence
    foreign = [one for other, one in grounds.quoted_texts if word_overlap(text, other) >= _CARRIED]
    suspect: str = ""
    if not evidence and foreign:
        evidence = (foreign[-1],)
        suspect = Reason("outside_text")
    elif needs_owner(text, grounds.answered_messages):
        evidence = evidence or tuple(
            cite(grounds.tape, entry) for entry in grounds.answered_messages
        )
        suspect = INSTRUCTION_REFUSED
    if suspect:
        return Proposal(op, text, fact, evidence=evidence, review_reason=suspect)
    named = not evidence or evidence[0].who in text
    return Proposal(
        op,
        text if named else name_speaker(text, evidence[0]),
        fact,
        evidence=evidence,
        objection=rest.why,
        unverified=rest.unverified,
        merged=rest.merged,
    )


def _find_support(text: str, grounds: AvailableEvidence) -> _Support:
    """Return what supports a text: one message, the changed facts, or the answered messages."""
    if (support := _in_one_message(text, grounds)) is not None:
        return support
    asking = [entry for entry in grounds.answered_messages if may_learn_from(entry)]
    said = grounds.answered_text
    from_others = not grounds.quoted_only_words.isdisjoint(stemmed_words(text))
    if grounds.changed_facts and (not word_overlap(text, said) or from_others):
        # Nothing of it was said now: either the facts are reorganised, or it was said in another
        # language.
        ordered = _on_facts(text, grounds)
        if ordered or from_others or not grounds.may_be_translation(text):
            return ordered or _Support(why=_unsaid(text, grounds))
    if not asking or from_others:
        return _Support(why=_unsaid(text, grounds))
    # A paraphrase or a translation: names, numbers and dates must still match.
    names = (*map(speaker_label, asking), *grounds.user_names)
    when, known = sent_date(asking[-1], grounds.timezone), grounds.changed_facts_text
    entries = [entry for entry in asking if word_overlap(text, sender_text(entry)) > 0] or asking
    cited = tuple(cite(grounds.tape, entry) for entry in entries)
    why = unsupported_reason(text, said, when=when, names=names)
    if why is not None and known:
        why = unsupported_reason(text, said, when=when, names=names, known=known) and why
    if why is None or not grounds.has_judge:
        return (
            _Support(why=why) if why is not None else _Support(cited, unverified=grounds.has_judge)
        )
    earlier = _said_beside(text, " ".join([said, known, *names]), grounds)
    said = " ".join([said, known, *map(sender_text, earlier)])
    why = missing_detail(text, said, when, names=names, loose=True)
    cited = (*(cite(grounds.tape, entry) for entry in earlier), *cited)
    if why is None:
        return _Support(cited, unverified=True)
    return (_on_facts(text, grounds) if grounds.changed_facts else None) or _Support(why=why)


def _in_one_message(text: str, grounds: AvailableEvidence) -> _Support | None:
    """Return the newest message whose sentences support a text by the rules; None if none do."""
    for entry in grounds.own_messages:
        said_then = sent_date(entry, grounds.timezone)
        sentence = best_supporting_sentences(
            text,
            sender_text(entry),
            when=said_then,
            names=(speaker_label(entry), *grounds.user_names),
        )
        if sentence is not None:
            if entry not in grounds.answered_messages and _is_nearer(text, sentence, grounds):
                return None
            unverified = grounds.has_judge and not is_verbatim(text, sentence)
            return _Support((cite(grounds.tape, entry, sentence),), unverified=unverified)
    return None


def _is_nearer(text: str, sentence: str, grounds: AvailableEvidence) -> bool:
    """Return whether a judge should compare a text with what is answered instead of an earlier sentence."""
    return grounds.has_judge and word_overlap(text, grounds.answered_text) > word_overlap(
        text, sentence
    )


def _unsaid(text: str, grounds: AvailableEvidence) -> str:
    """Return why nothing supports a text, quoting the first words that no user said."""
    said = {word for one in map(sender_text, grounds.own_messages) for word in stemmed_words(one)}
    said.update(stemmed_words(grounds.changed_facts_text))
    odd = [one for one in text.split() if (made := stemmed_words(one)) and said.isdisjoint(made)]
    named = " ".join(one.strip(".,;:!?()\"'") for one in odd[:_NAMED])
    return Reason("not_carried_words", words=named) if named else Reason("not_carried")


def _on_facts(text: str, grounds: AvailableEvidence) -> _Support | None:
    """Return how merged, split or reworded facts support a text; None if it says more."""
    known = grounds.changed_facts_text
    parts = [one for one in PART_SEPARATOR.split(text) if one.strip()]
    held = word_overlap(text, known) == 1.0 and (
        _carries(known, text)
        or all(any(_carries(fact.text, part) for fact in grounds.changed_facts) for part in parts)
    )
    names = grounds.user_names
    said = () if held else _said_beside(text, " ".join([known, *names]), grounds)
    loose = False
    if not held and grounds.has_judge:
        told = " ".join([known, *map(sender_text, said)])
        when = sent_date(said[-1], grounds.timezone) if said else None
        loose = (
            word_overlap(text, told) >= _CARRIED
            and missing_detail(text, told, when, names=names, loose=True) is None
        )
    if not held and not loose:
        return None
    evidence: tuple[Evidence, ...] = tuple(cite(grounds.tape, entry) for entry in said)
    for fact in grounds.changed_facts:
        if word_overlap(text, fact.text) > 0:
            evidence = merge_evidence(evidence, fact.evidence)
    unverified = not held or any(fact.unverified for fact in grounds.changed_facts)
    return _Support(evidence, unverified=unverified, merged=not said) if evidence else None


def _said_beside(text: str, known: str, grounds: AvailableEvidence) -> tuple[TapeEntry, ...]:
    """Return the newest own messages that say what a text adds to what is known, oldest first."""
    wanted = set(stemmed_words(text)) - set(stemmed_words(known))
    if missing_detail(text, known, None, loose=True) is None:
        # The same day or number in another message is chance.
        wanted = {word for word in wanted if not word.isdecimal()}
    entries: list[TapeEntry] = []
    for entry in grounds.own_messages:
        said = wanted.intersection(stemmed_words(sender_text(entry)))
        if said and len(entries) < _EARLIER:
            entries.insert(0, entry)
            wanted -= said
    return tuple(entries)


def _carries(fact: str, text: str) -> bool:
    """Return whether facts support a text by the rules, with the same negation."""
    denies = [any(clause.negated for clause in parse_clauses(said)) for said in (fact, text)]
    return denies[0] == denies[1] and unsupported_reason(text, as_sentence(fact)) is None


def as_sentence(text: str) -> str:
    """Return a text that ends with one full stop."""
    return f"{text.rstrip('. ')}."


def dropped_content(fact: Fact, heir: str) -> str:
    """Return what a replacement text drops of a fact; empty if nothing."""
    if (literal := missing_detail(fact.text, heir, None, loose=True)) is not None:
        return Reason("fact_detail_dropped", fact=fact.id, why=literal)
    if word_overlap(fact.text, heir) < _KEPT:
        return Reason("fact_shortened", fact=fact.id)
    return ""


def _foreign(entries: Sequence[TapeEntry], tape: str) -> list[tuple[str, Evidence]]:
    """Return the texts among entries that are nobody's own words, each with its evidence."""
    found = []
    for entry in entries:
        own = entry.payload.get("name") in _OWN_TOOLS and entry.meta.get(FROM_OUTSIDE) is not True
        if entry.kind == "tool_result" and not own:
            text = str(entry.payload.get("content", ""))
            found.append((text, cite(tape, entry)))
        found += [(text, cite_third_party(tape, entry, text)) for text in third_party_texts(entry)]
    return found


def propose_end(fact: Fact, grounds: AvailableEvidence) -> Proposal:
    """Return a proposal to end a fact: a message ends it, or another text must replace it."""
    entry, _ = find_ending_message(fact, grounds)
    if entry is not None:
        return Proposal("retire", fact=fact.id, evidence=(cite(grounds.tape, entry),))
    return Proposal("retire", fact=fact.id, evidence=fact.evidence, merged=True)


def find_ending_message(fact: Fact, grounds: AvailableEvidence) -> tuple[TapeEntry | None, str]:
    """Return the answered message that says that a fact has ended, or None and the reason."""
    why: str = Reason("user_said_nothing")
    for entry in filter(may_learn_from, grounds.answered_messages):
        found = retraction_refusal(fact.text, sender_text(entry))
        if found is None:
            return entry, ""
        why = found
    return None, why
