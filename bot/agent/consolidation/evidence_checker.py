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
from itertools import pairwise, product

from bot.agent.consolidation.claim_judge import ClaimQuestion
from bot.agent.consolidation.prompts import Citation, FactOperation
from bot.core.reasons import Reason
from bot.language.clauses import is_retraction
from bot.language.sentences import split_sentences
from bot.memory.gate.cited_sentences import (
    CitedSentence,
    cite_quote,
    is_quotable,
    join_quotable,
    name_speaker,
    names_given,
    needs_owner,
    resting_on,
    retraction_refusal,
)
from bot.memory.gate.claim_support import (
    is_verbatim,
    missing_detail,
    unsupported_reason,
    word_overlap,
)
from bot.memory.gate.instruction_detection import contains_instructions
from bot.memory.records.evidence import may_learn_from, sender_text
from bot.memory.records.fact import Fact
from bot.memory.records.proposals import Judgement, Proposal
from bot.memory.records.transcript import sender_id, sent_date, speaker_label
from bot.tape.entries import TapeEntry

_SHORT = 8
"""Maximum words of a short answer or question, which may omit its subject."""
_ANSWER = 25
"""Maximum words of a message that may answer a question."""
_LOOKED_BACK = 2
_LONGEST_AROUND = 600
RETRACTION_PREFIX = "No longer true:"
"""Prefix of the claim that a judge is asked about the end of a fact."""
_TEXTS = frozenset({"add", "supersede"})


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
        user_names: The names that memory has for the user.
    """

    tape: str
    entries: Sequence[TapeEntry]
    facts: dict[int, Fact]
    timezone: tzinfo
    user_names: tuple[str, ...] = ()

    def with_introduced_names(self, operations: Sequence[FactOperation]) -> EvidenceChecker:
        """Return a checker that also takes for the user's the name by which they introduce themselves.

        Args:
            operations: Operations of the same answer; one of them may give the name.
        """
        names = list(self.user_names)
        for operation in operations:
            given = names_given(operation.text or "", operation.slot or "")
            cited, _ = self._cite(operation.evidence)
            ruled = self._rule(operation, cited, "") if given else None
            if ruled is None or ruled.objection or ruled.fallback_text:
                continue
            said = [one.sentence for one in cited if one.evidence.origin == "person"]
            names += [name for name in given if any(name in sentence for sentence in said)]
        return replace(self, user_names=tuple(dict.fromkeys(names)))

    def check_by_rules(self, operation: FactOperation) -> Proposal:
        """Return an operation as a proposal, decided by rules alone."""
        return self._rule(operation, *self._cite(operation.evidence))

    def check(self, operation: FactOperation) -> CheckedOperation:
        """Return an operation as a proposal, with the question for the judge."""
        cited, why = self._cite(operation.evidence)
        ruled = self._rule(operation, cited, why)
        own = _of_one(
            [cited_sentence for cited_sentence in cited if cited_sentence.evidence.is_own_words],
            ruled.text,
        )
        fact = self.facts.get(operation.fact or 0)
        if not own or operation.op == "restate":
            return CheckedOperation(ruled)
        if operation.op in _TEXTS:
            return self._to_judge(ruled, own, fact) if ruled.text else CheckedOperation(ruled)
        if fact is None:
            return CheckedOperation(ruled)
        claim = fact.text if operation.op == "strengthen" else f"{RETRACTION_PREFIX} {fact.text}"
        proposal = resting_on(replace(ruled, objection=""), own)
        failed = replace(ruled, objection=Reason("does_not_hold"))
        return CheckedOperation(ruled, self._question(claim, own), proposal, failed)

    def question_for_fact(self, fact: Fact, before: str) -> ClaimQuestion:
        """Return the question for the judge about an existing fact.

        Args:
            fact: The fact.
            before: Text of the fact that it replaced; empty if there was none.
        """
        known = {entry.id: entry for entry in self.entries}
        cited_sentences = [
            CitedSentence(known[evidence.entry], evidence, evidence.quote)
            for evidence in fact.evidence
            if evidence.tape == self.tape and evidence.entry in known
        ]
        if len(cited_sentences) < len(fact.evidence) or not cited_sentences:
            return ClaimQuestion(fact.text, fact.evidence, before, called=self._called())
        return self._question(fact.text, cited_sentences, before)

    def _to_judge(
        self, ruled: Proposal, own: Sequence[CitedSentence], fact: Fact | None
    ) -> CheckedOperation:
        """Return a new fact with a question for the judge, if its names and numbers were said."""
        claim, last = ruled.text, own[-1].entry
        by_rules = not ruled.objection and not ruled.fallback_text
        if by_rules and any(is_verbatim(claim, cited_sentence.sentence) for cited_sentence in own):
            return CheckedOperation(ruled)
        question = self._question(claim, own, fact.text if fact else "")
        grounds = [question.earlier, question.asked, question.replaces]
        said = " ".join([*grounds, *(evidence.quote for evidence in question.words)])
        when, names = (
            sent_date(last, self.timezone),
            {*(speaker_label(cited_sentence.entry) for cited_sentence in own), *self.user_names},
        )
        if missing_detail(claim, said, when, names=names, loose=True) is not None:
            return CheckedOperation(ruled)
        proposal = replace(
            ruled, objection="", fallback_text="", unsupported_reason="", review_reason=""
        )
        held = _attribute(proposal, own)
        failed = self._fall_back(proposal, own, "")
        return CheckedOperation(replace(held, unverified=True), question, held, failed)

    def _question(
        self, claim: str, own: Sequence[CitedSentence], replaces: str = ""
    ) -> ClaimQuestion:
        said = {cited_sentence.entry.id: cited_sentence for cited_sentence in own}
        words = tuple(
            replace(cited_sentence.evidence, quote=_around(cited_sentence))
            for cited_sentence in said.values()
        )
        return ClaimQuestion(
            claim,
            words,
            replaces,
            self._earlier(own[0]),
            " ".join(dict.fromkeys(filter(None, map(self._asked, (one.entry for one in own))))),
            self._called(),
        )

    def _called(self) -> str:
        """Return the user's name in full; empty if memory has none."""
        return next(iter(self.user_names), "")

    def _cite(self, cited: Sequence[Citation]) -> tuple[list[CitedSentence], str]:
        """Return the cited sentences, or the reason why one of them cannot be cited."""
        found = []
        for citation in cited:
            if not 1 <= citation.message <= len(self.entries):
                return [], Reason("message_out_of_range", message=citation.message)
            sentence = cite_quote(self.tape, self.entries[citation.message - 1], citation.quote)
            if sentence is None:
                return (
                    [],
                    Reason(
                        "message_lacks_quote",
                        message=citation.message,
                        quote=citation.quote.strip()[:60],
                    ),
                )
            found.append(sentence)
        return found, ""

    def _rule(self, operation: FactOperation, cited: list[CitedSentence], why: str) -> Proposal:
        """Return an operation as a proposal that rests on the sentences that support it."""
        text = " ".join((operation.text or "").split())
        subject, slot = (operation.subject or "").strip(), (operation.slot or "").strip()
        proposal = Proposal(operation.op, text, operation.fact, subject, slot=slot)
        if operation.op == "restate":
            return proposal
        if why or not cited:
            return replace(proposal, objection=why or Reason("cites_nothing"))
        own = [cited_sentence for cited_sentence in cited if cited_sentence.evidence.is_own_words]
        if not own:
            # It rests on nobody's own words.
            whole = " ".join([text, *(cited_sentence.sentence for cited_sentence in cited)])
            suspect = Reason("order_not_own") if contains_instructions(whole) else ""
            return resting_on(replace(proposal, review_reason=suspect), cited)
        proposal = resting_on(proposal, own)
        fact = self.facts.get(operation.fact or 0)
        if operation.op in _TEXTS:
            return self._claim(proposal, own, fact)
        if fact is None:
            return replace(proposal, objection=Reason("fact_missing", fact=operation.fact))
        if operation.op == "retire":
            return self._end(proposal, fact, own)
        carriers, why = self._carriers(fact.text, own)
        return replace(proposal, objection=why) if why else resting_on(proposal, carriers)

    def _claim(
        self, proposal: Proposal, own: Sequence[CitedSentence], fact: Fact | None
    ) -> Proposal:
        """Return a new text with the sentences that support it, or the person's own words."""
        if not proposal.text:
            return replace(proposal, objection=Reason("no_text"))
        carriers, why = self._carriers(proposal.text, own, fact.text if fact else "")
        return self._fall_back(proposal, own, why) if why else _attribute(proposal, carriers)

    def _end(self, proposal: Proposal, fact: Fact, own: Sequence[CitedSentence]) -> Proposal:
        """Return the end of a fact, with the sentence that ends it."""
        why: str | None = None
        for cited_sentence in own:
            why = retraction_refusal(
                fact.text, cited_sentence.sentence, sent_date(cited_sentence.entry, self.timezone)
            )
            if why is None:
                return resting_on(proposal, [cited_sentence])
        return replace(proposal, objection=Reason("fact_does_not_end", fact=fact.id, why=why))

    def _fall_back(self, proposal: Proposal, own: Sequence[CitedSentence], why: str) -> Proposal:
        """Return the person's statement in place of an unsupported claim; else an objection.

        It ends a fact only if it says so.
        """
        stated = _statements(own)
        words = join_quotable([cited_sentence.sentence for cited_sentence in stated])
        if not words:
            return replace(proposal, objection=why)
        proposal = replace(
            proposal, fallback_text=f'said: "{words}"', unsupported_reason=why, slot=""
        )
        fact = self.facts.get(proposal.fact or 0)
        if proposal.op == "supersede" and fact is not None:
            day = sent_date(stated[-1].entry, self.timezone)
            if retraction_refusal(fact.text, words, day) is not None:
                proposal = replace(proposal, op="add", fact=None)
        return _attribute(proposal, stated)

    def _carriers(
        self, claim: str, own: Sequence[CitedSentence], known: str = ""
    ) -> tuple[Sequence[CitedSentence], str]:
        """Return the sentences that support a claim, or the reason why none do.

        Tried are single sentences, and all that one person said about the claim.

        Args:
            claim: The claim.
            own: The cited sentences.
            known: Text of the fact that the claim replaces.
        """
        tries: list[Sequence[CitedSentence]] = [[cited_sentence] for cited_sentence in own]
        related = [
            cited_sentence
            for cited_sentence in own
            if word_overlap(claim, cited_sentence.sentence) > 0
        ]
        if (
            len(related) > 1
            and len({cited_sentence.evidence.sender for cited_sentence in related}) == 1
        ):
            tries.append(related)
        why = ""
        # A short answer gets its subject from the person's words before it.
        short = len(own[-1].sentence.split()) <= _SHORT
        grounds = dict.fromkeys(("", known, self._earlier(own[-1]) if short else ""))
        for ground, tried in product(grounds, tries):
            said = " ".join(cited_sentence.sentence for cited_sentence in tried)
            last = tried[-1].entry
            lacking = unsupported_reason(
                claim,
                said,
                when=sent_date(last, self.timezone),
                names=(speaker_label(last), *self.user_names),
                known=ground,
            )
            if lacking is None:
                return tried, ""
            # Report the reason of the last try, which had the most context.
            why = lacking
        return (), why

    def _earlier(self, cited_sentence: CitedSentence) -> str:
        """Return the person's words in the messages before this one."""
        said = [
            sender_text(entry)
            for entry in self.entries
            if entry.id < cited_sentence.entry.id
            and may_learn_from(entry)
            and sender_id(entry) == cited_sentence.evidence.sender
        ]
        return " ".join(said[-_LOOKED_BACK:])

    def _asked(self, entry: TapeEntry) -> str:
        """Return the assistant's questions right before a short message, which give its subject.

        A short question ("Do you?") gets its own from the sentence before it.
        """
        if len(sender_text(entry).split()) > _ANSWER:
            return ""
        before = [
            other for other in self.entries if other.id < entry.id and other.kind == "message"
        ][-1:]
        said = [sender_text(other) for other in before if other.payload.get("role") == "assistant"]
        asked: list[str] = []
        for previous, sentence in (
            pair for text in said for pair in pairwise(["", *split_sentences(text)])
        ):
            if sentence.endswith(("?", "？", "؟")):
                is_short = len(sentence.split()) <= _SHORT
                asked += [previous, sentence] if is_short else [sentence]
        return " ".join(dict.fromkeys(filter(None, asked)))


def _of_one(cited_sentences: Sequence[CitedSentence], claim: str) -> list[CitedSentence]:
    """Return the sentences of one person: the one whom the claim names, else the last cited."""
    named = [
        cited_sentence
        for cited_sentence in cited_sentences
        if (who := speaker_label(cited_sentence.entry)) and who in claim
    ]
    return [
        cited_sentence
        for cited_sentence in cited_sentences
        if cited_sentence.evidence.sender == (named or cited_sentences)[-1].evidence.sender
    ]


def _around(cited_sentence: CitedSentence) -> str:
    """Return the whole message around a quoted sentence, unless it is long."""
    whole = sender_text(cited_sentence.entry)
    return whole if len(whole) <= _LONGEST_AROUND else cited_sentence.sentence


def _statements(found: Sequence[CitedSentence]) -> list[CitedSentence]:
    """Return the statements of the person who made the last one."""
    cited_sentences = [
        cited_sentence
        for cited_sentence in found
        if not any(map(is_retraction, split_sentences(cited_sentence.sentence)))
    ]
    parts = [
        replace(cited_sentence, sentence=said)
        for cited_sentence in cited_sentences
        for said in split_sentences(cited_sentence.sentence)
    ]
    stated = [cited_sentence for cited_sentence in parts if is_quotable(cited_sentence.sentence)]
    return [
        cited_sentence
        for cited_sentence in stated
        if cited_sentence.evidence.sender == stated[-1].evidence.sender
    ]


def _attribute(proposal: Proposal, carriers: Sequence[CitedSentence]) -> Proposal:
    """Return a proposal that rests on sentences, with their speaker if they are from a group.

    Instructions of people who may not give them are marked for review.
    """
    proposal, first = resting_on(proposal, carriers), carriers[0].evidence
    proposal = replace(proposal, text=name_speaker(proposal.text, first))
    if proposal.fallback_text and first.origin == "member":
        proposal = replace(proposal, fallback_text=f"{first.who} {proposal.fallback_text}")
    said = " ".join([proposal.text, *(cited_sentence.sentence for cited_sentence in carriers)])
    suspect = needs_owner(said, [cited_sentence.entry for cited_sentence in carriers])
    return replace(proposal, review_reason=Reason("order_not_owner") if suspect else "")
