"""Checks what a model wants to learn against the messages that it cites. Pure.

Rule 1: a quote occurs in the message cited; what counts is the whole sentence around it.
Rule 2: words that are not a person's own keep their true origin: the gate does not believe them.
Rule 3: a claim holds no name, number, date or negation that the sentence does not.
Rule 4: what it says in words of its own is for a judge to decide, where there is one; else rules do.
Rule 5: where a claim does not hold, what the person stated is kept as they said it.
Rule 6: in a group a fact says who said it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from itertools import product

from bot.agent.consolidation.judging import Question
from bot.agent.consolidation.prompts import Cited, OperationAnswer
from bot.language.clauses import sentences, takes_back
from bot.memory.facts.citing import cite, cite_others, is_own, others_words, words_in
from bot.memory.facts.fact import LONGEST_QUOTE, Evidence, Fact
from bot.memory.facts.proposals import Judgement, Proposal
from bot.memory.gate.claims import (
    holding,
    is_statement,
    is_verbatim,
    missing,
    overlap,
    unsupported,
)
from bot.memory.gate.ending import not_ended
from bot.memory.gate.orders import gives_orders
from bot.memory.transcript import is_owner, said_on, speaker
from bot.tape.entries import TapeEntry

_SHORT = 8
"""Words of an answer that leaves out what it is about."""
_ANSWER = 25
"""Words of a message that may be the answer to a question."""
_LOOKED_BACK = 2
_LONGEST_AROUND = 600
NO_LONGER = "No longer true:"
"""Begins what a judge is asked about the end of a fact."""
_TEXTS = frozenset({"add", "supersede"})
_ORDERS = "it tells the assistant what to do, and the words are not {whose}"


@dataclass(frozen=True, slots=True)
class _Found:
    """A cited sentence: where it stands, and whose it is."""

    entry: TapeEntry
    evidence: Evidence
    sentence: str


@dataclass(frozen=True, slots=True)
class Checked:
    """An operation that was checked, and what a judge's word makes of it.

    Attributes:
        proposal: As it is until somebody judges.
        question: What a judge is asked; None where nobody has to judge.
        held: As it is where the words carry it.
        failed: As it is where they do not.
    """

    proposal: Proposal
    question: Question | None = None
    held: Proposal | None = None
    failed: Proposal | None = None

    def judged(self, judgement: Judgement | None) -> Proposal:
        """Return the proposal after a judge's word on it; None: there was none."""
        if judgement is None or self.held is None or self.failed is None:
            return self.proposal
        if judgement.holds:
            return replace(self.held, judgement=judgement)
        if self.failed.instead and judgement.ruling != "not_stated":
            return replace(self.failed, lacking=judgement.told, judgement=judgement)
        return replace(self.failed, instead="", why=judgement.told, judgement=judgement)


@dataclass(frozen=True, slots=True)
class Checker:
    """Checks the operations of one answer.

    Attributes:
        tape: The tape's name.
        entries: The messages by number, from 1.
        facts: That are believed, by number.
        timezone: The user's: what "tomorrow" was.
    """

    tape: str
    entries: Sequence[TapeEntry]
    facts: dict[int, Fact]
    timezone: tzinfo

    def proposal(self, operation: OperationAnswer) -> Proposal:
        """Return an operation as a proposal, with what it rests on or why it does not hold."""
        text = " ".join((operation.text or "").split())
        subject, slot = (operation.subject or "").strip(), (operation.slot or "").strip()
        made = Proposal(operation.op, text, operation.fact, subject, slot=slot)
        if operation.op == "restate":
            return made
        if not operation.evidence:
            return replace(made, why="it cites no message")
        found, why = self._found(operation.evidence)
        if why:
            return replace(made, why=why)
        own = [one for one in found if one.evidence.origin in ("person", "member")]
        if not own:
            return self._foreign(made, found)
        made = replace(made, evidence=tuple(one.evidence for one in own))
        if operation.op in _TEXTS:
            return self._claimed(made, own)
        fact = self.facts.get(operation.fact or 0)
        if fact is None:
            return replace(made, why=f"there is no fact {operation.fact}")
        if operation.op == "strengthen":
            return _resting_on(made, *self._carriers(fact.text, own))
        return self._ended(made, fact, own)

    def checked(self, operation: OperationAnswer) -> Checked:
        """Return an operation as a proposal, with what a judge is to be asked about it."""
        ruled = self.proposal(operation)
        found, _ = self._found(operation.evidence)
        own = [one for one in found if one.evidence.origin in ("person", "member")]
        own = _of_one(own, ruled.text)
        fact = self.facts.get(operation.fact or 0)
        if not own or (operation.op not in _TEXTS and fact is None):
            return Checked(ruled)
        if operation.op in _TEXTS:
            return self._to_judge(ruled, own, fact) if ruled.text else Checked(ruled)
        if operation.op == "restate" or fact is None:
            return Checked(ruled)
        claim = fact.text if operation.op == "strengthen" else f"{NO_LONGER} {fact.text}"
        held = _resting_on(replace(ruled, why=""), own)
        failed = replace(ruled, why="it does not hold")
        return Checked(ruled, self._question(claim, own), held, failed)

    def question(self, fact: Fact, before: str) -> Question:
        """Return what a judge is asked of a fact that is believed already.

        Args:
            fact: The fact.
            before: The text of the fact whose place it took; empty where there was none.
        """
        known = {one.id: one for one in self.entries}
        found = [
            _Found(known[one.entry], one, one.quote)
            for one in fact.evidence
            if one.tape == self.tape and one.entry in known
        ]
        if len(found) < len(fact.evidence) or not found:
            return Question(fact.text, fact.evidence, before)
        return self._question(fact.text, found, before)

    def _to_judge(self, ruled: Proposal, own: Sequence[_Found], fact: Fact | None) -> Checked:
        """Return a new fact with what is to be judged of it, as far as its names and numbers were said."""
        claim, last = ruled.text, own[-1].entry
        by_rules = not ruled.why and not ruled.instead
        if by_rules and any(is_verbatim(claim, one.sentence) for one in own):
            return Checked(ruled)
        question = self._question(claim, own, fact.text if fact else "")
        grounds = [question.earlier, question.asked, question.replaces]
        said = " ".join([*grounds, *(one.quote for one in question.words)])
        when, names = said_on(last, self.timezone), {speaker(one.entry) for one in own}
        if missing(claim, said, when, names=names, loose=True) is not None:
            return Checked(ruled)
        made = replace(ruled, why="", instead="", lacking="", suspect="")
        held = self._attributed(_resting_on(made, own), own)
        failed = self._fallen_back(made, own, "")
        return Checked(replace(held, unverified=True), question, held, failed)

    def _question(self, claim: str, own: Sequence[_Found], replaces: str = "") -> Question:
        said = {one.entry.id: one for one in own}
        words = tuple(replace(one.evidence, quote=_around(one)) for one in said.values())
        return Question(claim, words, replaces, self._earlier(own[0]), self._asked(own[0].entry))

    def _found(self, cited: Sequence[Cited]) -> tuple[list[_Found], str]:
        found = []
        for one in cited:
            if not 1 <= one.message <= len(self.entries):
                return [], f"message {one.message} is not in the range"
            sentence = self._sentence(self.entries[one.message - 1], one.quote)
            if sentence is None:
                return [], f"message {one.message} does not say {one.quote.strip()[:60]!r}"
            found.append(sentence)
        return found, ""

    def _sentence(self, entry: TapeEntry, quote: str) -> _Found | None:
        said = holding(quote, words_in(entry))
        if said is not None:
            evidence = cite(self.tape, entry, said)
            if evidence.origin in ("person", "member") and not is_own(entry):
                return None
            return _Found(entry, evidence, said)
        for text in others_words(entry):
            if (said := holding(quote, text)) is not None:
                return _Found(entry, cite_others(self.tape, entry, quote), said)
        return None

    def _foreign(self, made: Proposal, found: Sequence[_Found]) -> Proposal:
        """Return a proposal that rests on no person's own words."""
        evidence = tuple(one.evidence for one in found)
        whole = " ".join([made.text, *(one.sentence for one in found)])
        suspect = _ORDERS.format(whose="a person's own") if gives_orders(whole) else ""
        return replace(made, evidence=evidence, suspect=suspect)

    def _claimed(self, made: Proposal, own: Sequence[_Found]) -> Proposal:
        if not made.text:
            return replace(made, why="it has no text")
        fact = self.facts.get(made.fact or 0)
        carriers, why = self._carriers(made.text, own, fact.text if fact else "")
        if why:
            return self._fallen_back(made, own, why)
        return self._attributed(_resting_on(made, carriers), carriers)

    def _fallen_back(self, made: Proposal, own: Sequence[_Found], why: str) -> Proposal:
        """Return what a person stated in place of a claim that does not hold; else why it does not."""
        carriers = _statements(own)
        if not carriers:
            return replace(made, why=why)
        made = self._in_own_words(made, carriers, why)
        return self._attributed(_resting_on(made, carriers), carriers)

    def _attributed(self, made: Proposal, carriers: Sequence[_Found]) -> Proposal:
        """Return a proposal of a group with who said it, and as suspect where it gives orders."""
        suspect = ""
        if carriers[0].evidence.origin == "member":
            who = carriers[0].evidence.who
            made = made if made.text.startswith(who) else replace(made, text=f"{who}: {made.text}")
            made = replace(made, instead=f"{who} {made.instead}") if made.instead else made
            said = " ".join([made.text, *(one.sentence for one in carriers)])
            if not all(is_owner(one.entry) for one in carriers) and gives_orders(said):
                suspect = _ORDERS.format(whose="an owner's")
        return replace(made, suspect=suspect)

    def _carriers(
        self, claim: str, own: Sequence[_Found], known: str = ""
    ) -> tuple[Sequence[_Found], str]:
        """Return the sentences that carry a claim: one of them, or all that one person said of it.

        Args:
            claim: The claim.
            own: The sentences that are cited.
            known: The text of the fact whose place it is to take.
        """
        tries: list[Sequence[_Found]] = [[one] for one in own]
        related = [one for one in own if overlap(claim, one.sentence) > 0]
        if len(related) > 1 and len({one.evidence.sender for one in related}) == 1:
            tries.append(related)
        why = ""
        grounds = dict.fromkeys(("", known, self._before(own[-1])))
        for ground, tried in product(grounds, tries):
            said = " ".join(one.sentence for one in tried)
            last = tried[-1].entry
            lacking = unsupported(
                claim,
                said,
                when=said_on(last, self.timezone),
                names=(speaker(last),),
                known=ground,
            )
            if lacking is None:
                return tried, ""
            # The reason of the try with most to go by is told.
            why = lacking
        return (), why

    def _before(self, found: _Found) -> str:
        """Return what the person had said right before a short answer, which tells what it is about."""
        return "" if len(found.sentence.split()) > _SHORT else self._earlier(found)

    def _earlier(self, found: _Found) -> str:
        """Return what the person had said in the messages before this one."""
        said = [
            words_in(one)
            for one in self.entries
            if one.id < found.entry.id
            and is_own(one)
            and cite(self.tape, one).sender == found.evidence.sender
        ]
        return " ".join(said[-_LOOKED_BACK:])

    def _asked(self, entry: TapeEntry) -> str:
        """Return what the assistant asked right before a message, which tells what a short answer is about."""
        if len(words_in(entry).split()) > _ANSWER:
            return ""
        before = [one for one in self.entries if one.id < entry.id and one.kind == "message"][-1:]
        said = [words_in(one) for one in before if one.payload.get("role") == "assistant"]
        asked = [one for text in said for one in sentences(text) if one.endswith(("?", "？", "؟"))]
        return " ".join(asked)

    def _in_own_words(self, made: Proposal, own: Sequence[_Found], why: str) -> Proposal:
        """Return what a person said in place of what was made of it; it ends a fact only if it says so."""
        words = _joined(own)
        made = replace(made, instead=f'said: "{words}"', lacking=why, slot="")
        fact = self.facts.get(made.fact or 0)
        day = said_on(own[-1].entry, self.timezone)
        if made.op == "supersede" and fact and not_ended(fact.text, words, day) is not None:
            return replace(made, op="add", fact=None)
        return made

    def _ended(self, made: Proposal, fact: Fact, own: Sequence[_Found]) -> Proposal:
        """Return the end of a fact, resting on the sentences that end it."""
        why: str | None = None
        for one in own:
            why = not_ended(fact.text, one.sentence, said_on(one.entry, self.timezone))
            if why is None:
                return _resting_on(made, [one])
        return replace(made, why=f"fact {fact.id} does not end: {why}")


def _of_one(found: Sequence[_Found], claim: str) -> list[_Found]:
    """Return what one person said: whoever a claim names, else whoever is cited last."""
    named = [one for one in found if (who := speaker(one.entry)) and who in claim]
    return [one for one in found if one.evidence.sender == (named or found)[-1].evidence.sender]


def _around(found: _Found) -> str:
    """Return what somebody said around a quoted sentence: all of it, unless that is long."""
    whole = words_in(found.entry)
    return whole if len(whole) <= _LONGEST_AROUND else found.sentence


def _statements(found: Sequence[_Found]) -> list[_Found]:
    """Return what one person states, as far as it can be kept as a fact; nothing where it cannot."""
    meant = [one for one in found if not any(map(takes_back, sentences(one.sentence)))]
    parts = [replace(one, sentence=said) for one in meant for said in sentences(one.sentence)]
    stated = [one for one in parts if is_statement(one.sentence) and not gives_orders(one.sentence)]
    stated = [one for one in stated if one.evidence.sender == stated[-1].evidence.sender]
    words = _joined(stated)
    return stated if " " in words and len(words) <= LONGEST_QUOTE else []


def _joined(found: Sequence[_Found]) -> str:
    return " ".join(dict.fromkeys(" ".join(one.sentence.split()) for one in found))


def _resting_on(made: Proposal, carriers: Sequence[_Found], why: str = "") -> Proposal:
    if why:
        return replace(made, why=why)
    return replace(made, evidence=tuple(one.evidence for one in carriers))
