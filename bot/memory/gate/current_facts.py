"""Look up and change the facts of a scope while one batch is decided. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from bot.core.clock import format_time
from bot.memory.gate.fact_similarity import (
    fact_comparison_key,
    is_contradiction,
    is_same_fact,
)
from bot.memory.records.fact import Evidence, Fact, FactStatus
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.fact_slot import same_slot
from bot.memory.records.proposals import (
    Proposal,
    ProposalBatch,
    ProposalDecision,
    ProposalVerdict,
)
from bot.memory.records.stemming import stemmed_words

_KEPT_WORDS = 0.3
_STEM = 4
_OF_ALL = frozenset({"user"})


class CurrentFacts:
    """The facts of a scope while one batch is decided.

    Args:
        fold: The scope's state before the batch.
        batch: The proposals.
        now: The current time.
        entry: Id of the entry that will record the batch.

    Attributes:
        facts: The facts by number, as the decisions so far leave them.
    """

    def __init__(self, fold: FactFold, batch: ProposalBatch, *, now: datetime, entry: int) -> None:
        self.facts = dict(fold.facts)
        self._next = fold.next_id
        self._batch = batch
        self._stamp = format_time(now)
        self._entry = entry

    def take_number(self) -> int:
        """Return the number of a new fact."""
        self._next += 1
        return self._next - 1

    def close(self, fact: Fact, status: FactStatus = "superseded") -> Fact:
        """End a fact, and return it as it is afterwards."""
        closed = replace(
            fact,
            status=status,
            valid_to=self._stamp,
            batch=self._entry,
            changed=self._stamp,
        )
        self.facts[fact.id] = closed
        return closed

    def record(
        self,
        proposal: Proposal,
        fact: Fact,
        reason: str,
        *,
        verdict: ProposalVerdict = "approved",
        closed: Fact | None = None,
        signals: dict[str, object] | None = None,
        was: Fact | None = None,
    ) -> ProposalDecision:
        """Change a fact as decided, and return the decision."""
        was = was or self.facts.get(fact.id)
        fact = replace(fact, batch=self._entry, changed=self._stamp)
        self.facts[fact.id] = fact
        return ProposalDecision(proposal, verdict, reason, fact, closed, signals or {}, was)

    def find_duplicate(self, text: str) -> Fact | None:
        """Return the active or pending fact that says the same; None if there is none."""
        return next(
            (
                fact
                for fact in self.facts.values()
                if fact.status in ("active", "pending")
                and fact.text
                and is_same_fact(text, fact.text)
            ),
            None,
        )

    def is_rewording(self, proposal: Proposal, twin: Fact, text: str) -> bool:
        """Say whether a person supersedes a fact with a different wording of it."""
        mends = proposal.op == "supersede" and proposal.fact == twin.id
        return mends and self._batch.author == "person" and text != twin.text

    def find_ended(self, text: str, evidence: tuple[Evidence, ...]) -> Fact | None:
        """Return a fact of the same words that ended after all this evidence; None if none did."""
        newest = max((piece.when for piece in evidence), default="")
        if not newest or self._batch.author not in ("consolidation", "import"):
            return None
        key = fact_comparison_key(text)
        ended = (fact for fact in self.facts.values() if fact.status in ("retired", "superseded"))
        return next(
            (
                fact
                for fact in ended
                if fact.text and fact_comparison_key(fact.text) == key and newest <= fact.changed
            ),
            None,
        )

    def find_conflict(self, text: str, slot: str, evidence: tuple[Evidence, ...]) -> Fact | None:
        """Return the active fact that cannot hold beside a text; None if there is none.

        Args:
            text: The proposed text.
            slot: Slot of the text.
            evidence: Evidence for the text.
        """
        return next(
            (
                fact
                for fact in self.facts.values()
                if fact.status == "active"
                and fact.text
                and self.ends_fact(text, slot, evidence, fact)
            ),
            None,
        )

    def find_newer(self, proposal: Proposal, text: str, rival: Fact | None) -> Fact | None:
        """Return a fact that a proposal would end though its evidence is newer; None if there is none.

        Args:
            proposal: The proposal.
            text: Its text.
            rival: The fact that it replaces.
        """
        if rival is None:
            return None
        if self.is_older(proposal, rival):
            return rival
        return next(
            (
                fact
                for fact in self.facts.values()
                if fact.status == "active"
                and fact.text
                and self.is_older(proposal, fact)
                and self.ends_fact(text, proposal.slot, proposal.evidence, fact)
                and self.is_same_speaker(proposal, fact)
            ),
            None,
        )

    def ends_fact(self, text: str, slot: str, evidence: tuple[Evidence, ...], fact: Fact) -> bool:
        """Say whether a new text ends a fact; facts of one import batch do not end each other."""
        if self._batch.author == "import" and fact.admitted == self._entry:
            return False
        if same_slot(slot, fact.slot) and _speakers(evidence) <= _speakers(fact.evidence):
            return True
        return is_contradiction(text, fact.text)

    def find_replaced(self, proposal: Proposal, text: str) -> Fact | None:
        """Return the fact that a new one replaces: the one named if related, else a conflict."""
        named = self.facts.get(proposal.fact or 0) if proposal.op == "supersede" else None
        # The fact may have been replaced since the proposer read it.
        named = self.current_successor(named) if named is not None else None
        if named is not None and named.status == "active":
            mine, theirs = set(stemmed_words(text)), set(stemmed_words(named.text))
            related = len(mine & theirs) >= _KEPT_WORDS * min(len(mine), len(theirs))
            known = self._batch.author == "person" or named.subject == proposal.subject != ""
            # In another language a shared name is enough; a judge checks the claim later.
            known = known or (
                proposal.unverified and not proposal.fallback_text and _akin(mine, theirs)
            )
            if known or is_contradiction(text, named.text) or (mine & theirs and related):
                return named
        return self.find_conflict(text, proposal.slot, proposal.evidence)

    def current_successor(self, fact: Fact) -> Fact:
        """Return the latest fact that replaced a fact; the fact itself if none did."""
        heirs = {
            other.supersedes: other
            for other in self.facts.values()
            if other.supersedes is not None and other.status in ("active", "superseded")
        }
        while fact.status == "superseded" and (heir := heirs.pop(fact.id, None)) is not None:
            fact = heir
        return fact

    def replaced_by(self, refuted: Fact) -> list[Fact]:
        """Return the facts that a refuted one replaced and no other fact replaced since."""
        heirs = {
            fact.supersedes
            for fact in self.facts.values()
            if fact.status == "active" and fact.id != refuted.id
        }
        found = []
        for fact in self.facts.values():
            if fact.status != "superseded" or not fact.text or fact.id in heirs | {refuted.id}:
                continue
            ended = fact.batch == refuted.admitted and self.ends_fact(
                refuted.text, refuted.slot, refuted.evidence, fact
            )
            if refuted.supersedes == fact.id or ended or fact.is_merged_into(refuted):
                found.append(fact)
        # If several replaced each other in one batch, only the last one counts.
        before = {one.supersedes for one in found}
        return [one for one in found if one.id not in before]

    def is_same_speaker(self, proposal: Proposal, rival: Fact) -> bool:
        """Say whether one person made both statements, so that the newer one is no conflict."""
        if self._batch.author in ("person", "import"):
            return True
        own = all(evidence.is_own_words for evidence in proposal.evidence)
        if own and _speakers(proposal.evidence) == _speakers(rival.evidence) == set():
            # The user may have a different id on each platform.
            return True
        mine = {evidence.sender for evidence in proposal.evidence}
        theirs = {evidence.sender for evidence in rival.evidence}
        return own and (not theirs or theirs == {""} or mine <= theirs)

    def is_older(self, proposal: Proposal, rival: Fact) -> bool:
        """Say whether a proposal's evidence is older than that of the fact it would replace."""
        mine, theirs = _newest(proposal.evidence), _newest(rival.evidence)
        learned = self._batch.author in ("consolidation", "import", "assistant")
        if mine is None or theirs is None or not mine.when or not learned:
            return False
        if mine.when == theirs.when:
            return mine.tape == theirs.tape and mine.entry < theirs.entry
        return mine.when < theirs.when


def _akin(mine: set[str], theirs: set[str]) -> bool:
    """Say whether any word of one set starts like one of the other: "Borys", "Borysa"."""
    return any(
        one.startswith(other) or other.startswith(one)
        for one in mine - _OF_ALL
        for other in theirs - _OF_ALL
        if min(len(one), len(other)) >= _STEM
    )


def _newest(evidence: tuple[Evidence, ...]) -> Evidence | None:
    return max(evidence, key=lambda piece: (piece.when, piece.entry), default=None)


def _speakers(evidence: tuple[Evidence, ...]) -> set[str]:
    """Return the sender ids of evidence from others; empty if all is the user about themselves."""
    return {piece.sender for piece in evidence if piece.origin != "person"}
