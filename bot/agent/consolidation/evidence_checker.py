"""Verify each proposed fact against the messages it cites. Pure.

Rule 1: a quote must occur in the cited message; the whole sentence around it counts.
Rule 2: words that are not a person's own keep their true origin, so the gate does not believe them.
Rule 3: a claim has no name, number, date or negation that the sentence lacks.
Rule 4: a judge decides on paraphrases; without one, rules decide.
Rule 5: if a claim is not supported, the person's statement is kept in their own words.
Rule 6: in a group a fact names its speaker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from itertools import product

from bot.agent.consolidation.claim_judge import ClaimQuestion
from bot.agent.consolidation.prompts import Citation, FactOperation
from bot.language.clauses import is_retraction, split_sentences
from bot.memory.gate.claim_support import (
    is_statement,
    is_verbatim,
    missing_detail,
    sentences_with_quote,
    unsupported_reason,
    word_overlap,
)
from bot.memory.gate.current_facts import retraction_refusal
from bot.memory.gate.instruction_detection import contains_instructions
from bot.memory.records.evidence import (
    cite,
    cite_third_party,
    may_learn_from,
    sender_text,
    third_party_texts,
)
from bot.memory.records.fact import LONGEST_QUOTE, Evidence, Fact
from bot.memory.records.proposals import Judgement, Proposal
from bot.memory.records.transcript import is_owner, sent_date, speaker_label
from bot.tape.entries import TapeEntry

_SHORT = 8
"""Maximum words of a short answer, which may omit its subject."""
_ANSWER = 25
"""Maximum words of a message that may answer a question."""
_LOOKED_BACK = 2
_LONGEST_AROUND = 600
RETRACTION_PREFIX = "No longer true:"
"""Prefix of the claim that a judge is asked about the end of a fact."""
_TEXTS = frozenset({"add", "supersede"})
_ORDERS = "it tells the assistant what to do, and the words are not {whose}"


@dataclass(frozen=True, slots=True)
class _CitedSentence:
    """A cited sentence with its message and evidence."""

    entry: TapeEntry
    evidence: Evidence
    sentence: str


@dataclass(frozen=True, slots=True)
class CheckedOperation:
    """A checked operation, and what each judgement would make of it.

    Attributes:
        proposal: The proposal without a judgement.
        question: The question for the judge; None if no judgement is needed.
        if_supported: The proposal if the words support it.
        if_unsupported: The proposal if they do not.
    """

    proposal: Proposal
    question: ClaimQuestion | None = None
    if_supported: Proposal | None = None
    if_unsupported: Proposal | None = None

    def apply_judgement(self, judgement: Judgement | None) -> Proposal:
        """Return the proposal after a judgement; None means that there was none."""
        if judgement is None or self.if_supported is None or self.if_unsupported is None:
            return self.proposal
        if judgement.is_supported:
            return replace(self.if_supported, judgement=judgement)
        if self.if_unsupported.fallback_text and judgement.ruling != "not_stated":
            return replace(
                self.if_unsupported, unsupported_reason=judgement.description, judgement=judgement
            )
        return replace(
            self.if_unsupported,
            fallback_text="",
            objection=judgement.description,
            judgement=judgement,
        )


@dataclass(frozen=True, slots=True)
class EvidenceChecker:
    """Checks the operations of one answer.

    Attributes:
        tape: The tape's name.
        entries: The messages; the model's numbers start at 1.
        facts: Active facts by number.
        timezone: The user's time zone, to resolve words such as "tomorrow".
    """

    tape: str
    entries: Sequence[TapeEntry]
    facts: dict[int, Fact]
    timezone: tzinfo

    def check_by_rules(self, operation: FactOperation) -> Proposal:
        """Return an operation as a proposal, decided by rules alone."""
        text = " ".join((operation.text or "").split())
        subject, slot = (operation.subject or "").strip(), (operation.slot or "").strip()
        made = Proposal(operation.op, text, operation.fact, subject, slot=slot)
        if operation.op == "restate":
            return made
        if not operation.evidence:
            return replace(made, objection="it cites no message")
        found, why = self._cited_sentences(operation.evidence)
        if why:
            return replace(made, objection=why)
        own = [one for one in found if one.evidence.origin in ("person", "member")]
        if not own:
            return self._foreign(made, found)
        made = replace(made, evidence=tuple(one.evidence for one in own))
        if operation.op in _TEXTS:
            return self._claimed(made, own)
        fact = self.facts.get(operation.fact or 0)
        if fact is None:
            return replace(made, objection=f"there is no fact {operation.fact}")
        if operation.op == "strengthen":
            return _resting_on(made, *self._carriers(fact.text, own))
        return self._ended(made, fact, own)

    def check(self, operation: FactOperation) -> CheckedOperation:
        """Return an operation as a proposal, with the question for the judge."""
        ruled = self.check_by_rules(operation)
        found, _ = self._cited_sentences(operation.evidence)
        own = [one for one in found if one.evidence.origin in ("person", "member")]
        own = _of_one(own, ruled.text)
        fact = self.facts.get(operation.fact or 0)
        if not own or (operation.op not in _TEXTS and fact is None):
            return CheckedOperation(ruled)
        if operation.op in _TEXTS:
            return self._to_judge(ruled, own, fact) if ruled.text else CheckedOperation(ruled)
        if operation.op == "restate" or fact is None:
            return CheckedOperation(ruled)
        claim = fact.text if operation.op == "strengthen" else f"{RETRACTION_PREFIX} {fact.text}"
        held = _resting_on(replace(ruled, objection=""), own)
        failed = replace(ruled, objection="it does not hold")
        return CheckedOperation(ruled, self._question(claim, own), held, failed)

    def question_for_fact(self, fact: Fact, before: str) -> ClaimQuestion:
        """Return the question for the judge about an existing fact.

        Args:
            fact: The fact.
            before: Text of the fact that it replaced; empty if there was none.
        """
        known = {one.id: one for one in self.entries}
        found = [
            _CitedSentence(known[one.entry], one, one.quote)
            for one in fact.evidence
            if one.tape == self.tape and one.entry in known
        ]
        if len(found) < len(fact.evidence) or not found:
            return ClaimQuestion(fact.text, fact.evidence, before)
        return self._question(fact.text, found, before)

    def _to_judge(
        self, ruled: Proposal, own: Sequence[_CitedSentence], fact: Fact | None
    ) -> CheckedOperation:
        """Return a new fact with a question for the judge, if its names and numbers were said."""
        claim, last = ruled.text, own[-1].entry
        by_rules = not ruled.objection and not ruled.fallback_text
        if by_rules and any(is_verbatim(claim, one.sentence) for one in own):
            return CheckedOperation(ruled)
        question = self._question(claim, own, fact.text if fact else "")
        grounds = [question.earlier, question.asked, question.replaces]
        said = " ".join([*grounds, *(one.quote for one in question.words)])
        when, names = sent_date(last, self.timezone), {speaker_label(one.entry) for one in own}
        if missing_detail(claim, said, when, names=names, loose=True) is not None:
            return CheckedOperation(ruled)
        made = replace(
            ruled, objection="", fallback_text="", unsupported_reason="", review_reason=""
        )
        held = self._attributed(_resting_on(made, own), own)
        failed = self._fallen_back(made, own, "")
        return CheckedOperation(replace(held, unverified=True), question, held, failed)

    def _question(
        self, claim: str, own: Sequence[_CitedSentence], replaces: str = ""
    ) -> ClaimQuestion:
        said = {one.entry.id: one for one in own}
        words = tuple(replace(one.evidence, quote=_around(one)) for one in said.values())
        return ClaimQuestion(
            claim, words, replaces, self._earlier(own[0]), self._asked(own[0].entry)
        )

    def _cited_sentences(self, cited: Sequence[Citation]) -> tuple[list[_CitedSentence], str]:
        found = []
        for one in cited:
            if not 1 <= one.message <= len(self.entries):
                return [], f"message {one.message} is not in the range"
            sentence = self._sentence(self.entries[one.message - 1], one.quote)
            if sentence is None:
                return [], f"message {one.message} does not say {one.quote.strip()[:60]!r}"
            found.append(sentence)
        return found, ""

    def _sentence(self, entry: TapeEntry, quote: str) -> _CitedSentence | None:
        said = sentences_with_quote(quote, sender_text(entry))
        if said is not None:
            evidence = cite(self.tape, entry, said)
            if evidence.origin in ("person", "member") and not may_learn_from(entry):
                return None
            return _CitedSentence(entry, evidence, said)
        for text in third_party_texts(entry):
            if (said := sentences_with_quote(quote, text)) is not None:
                return _CitedSentence(entry, cite_third_party(self.tape, entry, quote), said)
        return None

    def _foreign(self, made: Proposal, found: Sequence[_CitedSentence]) -> Proposal:
        """Return a proposal that rests on nobody's own words."""
        evidence = tuple(one.evidence for one in found)
        whole = " ".join([made.text, *(one.sentence for one in found)])
        suspect = _ORDERS.format(whose="a person's own") if contains_instructions(whole) else ""
        return replace(made, evidence=evidence, review_reason=suspect)

    def _claimed(self, made: Proposal, own: Sequence[_CitedSentence]) -> Proposal:
        if not made.text:
            return replace(made, objection="it has no text")
        fact = self.facts.get(made.fact or 0)
        carriers, why = self._carriers(made.text, own, fact.text if fact else "")
        if why:
            return self._fallen_back(made, own, why)
        return self._attributed(_resting_on(made, carriers), carriers)

    def _fallen_back(self, made: Proposal, own: Sequence[_CitedSentence], why: str) -> Proposal:
        """Return the person's statement in place of an unsupported claim; else an objection."""
        carriers = _statements(own)
        if not carriers:
            return replace(made, objection=why)
        made = self._in_own_words(made, carriers, why)
        return self._attributed(_resting_on(made, carriers), carriers)

    def _attributed(self, made: Proposal, carriers: Sequence[_CitedSentence]) -> Proposal:
        """Return a proposal with its speaker in a group; mark instructions for review."""
        suspect = ""
        if carriers[0].evidence.origin == "member":
            who = carriers[0].evidence.who
            made = made if made.text.startswith(who) else replace(made, text=f"{who}: {made.text}")
            made = (
                replace(made, fallback_text=f"{who} {made.fallback_text}")
                if made.fallback_text
                else made
            )
            said = " ".join([made.text, *(one.sentence for one in carriers)])
            if not all(is_owner(one.entry) for one in carriers) and contains_instructions(said):
                suspect = _ORDERS.format(whose="an owner's")
        return replace(made, review_reason=suspect)

    def _carriers(
        self, claim: str, own: Sequence[_CitedSentence], known: str = ""
    ) -> tuple[Sequence[_CitedSentence], str]:
        """Return the sentences that support a claim, or the reason why none do.

        Tried are single sentences, and all that one person said about the claim.

        Args:
            claim: The claim.
            own: The cited sentences.
            known: Text of the fact that the claim replaces.
        """
        tries: list[Sequence[_CitedSentence]] = [[one] for one in own]
        related = [one for one in own if word_overlap(claim, one.sentence) > 0]
        if len(related) > 1 and len({one.evidence.sender for one in related}) == 1:
            tries.append(related)
        why = ""
        grounds = dict.fromkeys(("", known, self._before(own[-1])))
        for ground, tried in product(grounds, tries):
            said = " ".join(one.sentence for one in tried)
            last = tried[-1].entry
            lacking = unsupported_reason(
                claim,
                said,
                when=sent_date(last, self.timezone),
                names=(speaker_label(last),),
                known=ground,
            )
            if lacking is None:
                return tried, ""
            # Report the reason of the last try, which had the most context.
            why = lacking
        return (), why

    def _before(self, found: _CitedSentence) -> str:
        """Return the person's words before a short answer, which give its subject."""
        return "" if len(found.sentence.split()) > _SHORT else self._earlier(found)

    def _earlier(self, found: _CitedSentence) -> str:
        """Return the person's words in the messages before this one."""
        said = [
            sender_text(one)
            for one in self.entries
            if one.id < found.entry.id
            and may_learn_from(one)
            and cite(self.tape, one).sender == found.evidence.sender
        ]
        return " ".join(said[-_LOOKED_BACK:])

    def _asked(self, entry: TapeEntry) -> str:
        """Return the assistant's questions right before a short message, which give its subject."""
        if len(sender_text(entry).split()) > _ANSWER:
            return ""
        before = [one for one in self.entries if one.id < entry.id and one.kind == "message"][-1:]
        said = [sender_text(one) for one in before if one.payload.get("role") == "assistant"]
        asked = [
            one for text in said for one in split_sentences(text) if one.endswith(("?", "？", "؟"))
        ]
        return " ".join(asked)

    def _in_own_words(self, made: Proposal, own: Sequence[_CitedSentence], why: str) -> Proposal:
        """Return a quote in place of the claim; it ends a fact only if the quote says so."""
        words = _joined(own)
        made = replace(made, fallback_text=f'said: "{words}"', unsupported_reason=why, slot="")
        fact = self.facts.get(made.fact or 0)
        day = sent_date(own[-1].entry, self.timezone)
        if (
            made.op == "supersede"
            and fact
            and retraction_refusal(fact.text, words, day) is not None
        ):
            return replace(made, op="add", fact=None)
        return made

    def _ended(self, made: Proposal, fact: Fact, own: Sequence[_CitedSentence]) -> Proposal:
        """Return the end of a fact, with the sentence that ends it."""
        why: str | None = None
        for one in own:
            why = retraction_refusal(fact.text, one.sentence, sent_date(one.entry, self.timezone))
            if why is None:
                return _resting_on(made, [one])
        return replace(made, objection=f"fact {fact.id} does not end: {why}")


def _of_one(found: Sequence[_CitedSentence], claim: str) -> list[_CitedSentence]:
    """Return the sentences of one person: the one whom the claim names, else the last cited."""
    named = [one for one in found if (who := speaker_label(one.entry)) and who in claim]
    return [one for one in found if one.evidence.sender == (named or found)[-1].evidence.sender]


def _around(found: _CitedSentence) -> str:
    """Return the whole message around a quoted sentence, unless it is long."""
    whole = sender_text(found.entry)
    return whole if len(whole) <= _LONGEST_AROUND else found.sentence


def _statements(found: Sequence[_CitedSentence]) -> list[_CitedSentence]:
    """Return one person's statements that can be kept as a fact; empty if there are none."""
    meant = [one for one in found if not any(map(is_retraction, split_sentences(one.sentence)))]
    parts = [replace(one, sentence=said) for one in meant for said in split_sentences(one.sentence)]
    stated = [
        one
        for one in parts
        if is_statement(one.sentence) and not contains_instructions(one.sentence)
    ]
    stated = [one for one in stated if one.evidence.sender == stated[-1].evidence.sender]
    words = _joined(stated)
    return stated if " " in words and len(words) <= LONGEST_QUOTE else []


def _joined(found: Sequence[_CitedSentence]) -> str:
    return " ".join(dict.fromkeys(" ".join(one.sentence.split()) for one in found))


def _resting_on(made: Proposal, carriers: Sequence[_CitedSentence], why: str = "") -> Proposal:
    if why:
        return replace(made, objection=why)
    return replace(made, evidence=tuple(one.evidence for one in carriers))
