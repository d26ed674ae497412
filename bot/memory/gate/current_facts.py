"""What stands already of what somebody proposes: the same, its rival, what took its place. Pure."""

from __future__ import annotations

from bot.memory.facts.fact import Evidence, Fact
from bot.memory.facts.fact_slot import same_slot
from bot.memory.facts.proposals import Proposal, ProposalBatch
from bot.memory.gate.fact_similarity import (
    fact_comparison_key,
    is_contradiction,
    is_same_fact,
)
from bot.memory.stemming import stemmed_words

_KEPT_WORDS = 0.3
_STEM = 4
_OF_ALL = frozenset({"user"})


class CurrentFacts:
    """Looks through the facts of a scope for one batch.

    Args:
        facts: By number; changed by whoever decides, as it goes.
        batch: What is proposed.
        entry: Id of the entry that will record it.
    """

    def __init__(self, facts: dict[int, Fact], batch: ProposalBatch, entry: int) -> None:
        self._facts = facts
        self._batch = batch
        self._entry = entry

    def find_duplicate(self, text: str) -> Fact | None:
        """Return the fact, believed or pending, that says the same; None where none does."""
        return next(
            (
                one
                for one in self._facts.values()
                if one.status in ("active", "pending") and one.text and is_same_fact(text, one.text)
            ),
            None,
        )

    def is_rewording(self, proposal: Proposal, twin: Fact, text: str) -> bool:
        """Say whether a person gives a fact other words that say nearly the same."""
        mends = proposal.op == "supersede" and proposal.fact == twin.id
        return mends and self._batch.author == "person" and text != twin.text

    def find_ended(self, text: str, evidence: tuple[Evidence, ...]) -> Fact | None:
        """Return the fact of the same words that ended after all that is said for it now."""
        newest = max((one.when for one in evidence), default="")
        if not newest or self._batch.author not in ("consolidation", "import"):
            return None
        key = fact_comparison_key(text)
        ended = (one for one in self._facts.values() if one.status in ("retired", "superseded"))
        return next(
            (
                one
                for one in ended
                if one.text and fact_comparison_key(one.text) == key and newest <= one.changed
            ),
            None,
        )

    def find_conflict(self, text: str, slot: str, evidence: tuple[Evidence, ...]) -> Fact | None:
        """Return the fact that cannot hold beside a text; None where all can.

        Args:
            text: What is proposed.
            slot: Its slot.
            evidence: What it rests on.
        """
        return next(
            (
                one
                for one in self._facts.values()
                if one.status == "active" and one.text and self.ends_fact(text, slot, evidence, one)
            ),
            None,
        )

    def ends_fact(self, text: str, slot: str, evidence: tuple[Evidence, ...], fact: Fact) -> bool:
        """Say whether a new text ends a fact: lines that an import brings stood side by side."""
        if self._batch.author == "import" and fact.admitted == self._entry:
            return False
        if same_slot(slot, fact.slot) and _speakers(evidence) <= _speakers(fact.evidence):
            return True
        return is_contradiction(text, fact.text)

    def find_replaced(self, proposal: Proposal, text: str) -> Fact | None:
        """Return the fact whose place a new one takes: the one named, if it speaks of the same."""
        named = self._facts.get(proposal.fact or 0) if proposal.op == "supersede" else None
        # Whoever proposes may have read it before something else took its place.
        named = self.current_successor(named) if named is not None else None
        if named is not None and named.status == "active":
            mine, theirs = set(stemmed_words(text)), set(stemmed_words(named.text))
            related = len(mine & theirs) >= _KEPT_WORDS * min(len(mine), len(theirs))
            known = self._batch.author == "person" or named.subject == proposal.subject != ""
            # In another language one name is enough, in whatever case; a judge says later whether it holds.
            known = known or (
                proposal.unverified and not proposal.fallback_text and _akin(mine, theirs)
            )
            if known or is_contradiction(text, named.text) or (mine & theirs and related):
                return named
        return self.find_conflict(text, proposal.slot, proposal.evidence)

    def current_successor(self, fact: Fact) -> Fact:
        """Return the fact that stands in a fact's place now; itself where none does."""
        heirs = {
            one.supersedes: one
            for one in self._facts.values()
            if one.supersedes is not None and one.status in ("active", "superseded")
        }
        while fact.status == "superseded" and (heir := heirs.pop(fact.id, None)) is not None:
            fact = heir
        return fact

    def is_same_speaker(self, proposal: Proposal, rival: Fact) -> bool:
        """Say whether the same person speaks: their newer words about something are no conflict."""
        if self._batch.author in ("person", "import"):
            return True
        own = all(one.origin in ("person", "member") for one in proposal.evidence)
        if own and _speakers(proposal.evidence) == _speakers(rival.evidence) == set():
            # One person, who may have another id on every platform.
            return True
        mine = {one.sender for one in proposal.evidence}
        theirs = {one.sender for one in rival.evidence}
        return own and (not theirs or theirs == {""} or mine <= theirs)

    def is_older(self, proposal: Proposal, rival: Fact) -> bool:
        """Say whether what is proposed was said before what stands was."""
        mine = max((one.when for one in proposal.evidence), default="")
        theirs = max((one.when for one in rival.evidence), default="")
        learned = self._batch.author in ("consolidation", "import", "assistant")
        return bool(mine) and mine < theirs and learned


def _akin(mine: set[str], theirs: set[str]) -> bool:
    """Say whether one of the words begins as one of the others does: "Borys", "Borysa"."""
    return any(
        one.startswith(other) or other.startswith(one)
        for one in mine - _OF_ALL
        for other in theirs - _OF_ALL
        if min(len(one), len(other)) >= _STEM
    )


def _speakers(evidence: tuple[Evidence, ...]) -> set[str]:
    """Return who said something in a group; nobody where all are a person's words about themselves."""
    return {one.sender for one in evidence if one.origin != "person"}
