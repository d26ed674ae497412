"""What somebody wants to change about the facts of a scope, and what became of it. Pure.

Rule 1: a batch has a key; what has been decided under a key is decided once.
Rule 2: whoever proposes reports no signals of trust: those are computed from the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from bot.memory.facts.fact import Evidence, Fact, FactStatus

ProposalOperation = Literal[
    "add",
    "strengthen",
    "supersede",
    "retire",
    "restate",
    "reopen",
    "accept",
    "drop",
    "weaken",
    "verify",
    "refute",
]

ProposalAuthor = Literal["person", "consolidation", "assistant", "import", "undo", "judge"]
"""Who proposes: a person by a command or in words that code recognises, a consolidation, the
assistant by a tool, an import, an undo, or the judge."""

ProposalVerdict = Literal["approved", "pending", "logged", "refused", "known"]
"""``pending`` waits for a person; ``logged`` is on record and not believed; ``known`` was so."""


Ruling = Literal[
    "supported", "not_supported", "contradicted", "other_person", "overstated", "not_stated"
]
"""What a judge says of a claim; ``not_stated``: the words only ask, suppose, joke or quote."""


_RULED: dict[Ruling, str] = {
    "supported": "the judge finds that the words carry it",
    "not_supported": "the judge finds that the words do not say it",
    "contradicted": "the judge finds that the words say the opposite",
    "other_person": "the judge finds that the words speak of somebody else",
    "overstated": "the judge finds that it says more than the words",
    "not_stated": "the judge finds that the words only ask, suppose, joke or quote",
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge said of a claim.

    Attributes:
        ruling: In one word.
        reason: In the judge's own words.
        model: The model that judged.
    """

    ruling: Ruling
    reason: str = ""
    model: str = ""

    @property
    def is_supported(self) -> bool:
        """Whether the words carry the claim."""
        return self.ruling == "supported"

    @property
    def description(self) -> str:
        """The ruling in plain words, with the reason and who judged."""
        by = f" ({self.model})" if self.model else ""
        return f"{_RULED[self.ruling]}{by}{f': {self.reason}' if self.reason else ''}"


@dataclass(frozen=True, slots=True)
class PriorState:
    """How a fact stood before an operation, without its words.

    Attributes:
        status: Its status.
        confidence: How sure it was.
        evidence: Tape and entry of each piece that it rested on.
    """

    status: FactStatus
    confidence: float
    evidence: frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Proposal:
    """One operation.

    Attributes:
        op: ``add``; ``strengthen``, ``supersede``, ``retire``, ``restate`` (what stays true of a fact
            that goes), ``reopen``, ``weaken`` (take the newest evidence away) a fact; ``accept`` or
            ``drop`` a pending one; ``verify`` or ``refute`` an unverified one, with the text that takes its place.
        text: Of ``add``, ``supersede`` and ``restate``.
        fact: Number of the fact that it is about.
        fallback_text: What is to be believed in place of the text, which is kept beside it: words of the person's own.
        unsupported_reason: Why the text itself is not to be believed; empty without ``instead``.
        subject: What the text is about, in a word or two.
        slot: Of what the text gives the one current value, as of a fact.
        evidence: What it rests on; every piece was found on a tape.
        objection: Says against it what the proposer's own checks found; empty where it holds.
        review_reason: The words give orders, or are not a person's own: a person must decide.
        before: How the fact is to stand again; of ``reopen`` and ``weaken``.
        unverified: Nobody has judged yet whether the evidence carries the text.
        judgement: What the judge said of it; None where none was asked, or none answered.
        merged: Nothing new was said: other facts, or texts of the same batch, say what it says.
    """

    op: ProposalOperation
    text: str = ""
    fact: int | None = None
    subject: str = ""
    evidence: tuple[Evidence, ...] = ()
    objection: str = ""
    review_reason: str = ""
    fallback_text: str = ""
    unsupported_reason: str = ""
    before: PriorState | None = None
    unverified: bool = False
    judgement: Judgement | None = None
    merged: bool = False
    slot: str = ""


@dataclass(frozen=True, slots=True)
class ProposalBatch:
    """Operations that are decided together.

    Attributes:
        key: Made of what caused it, such as the tape and the entry; the same for a repetition.
        author: Who proposes.
        proposals: In order.
        asker: The platform's id of the person who asked for it; empty where nobody did.
        undone_entry: Id of the entry whose batch this takes back.
        clears_all: All is retired: what was said before is not learned again.
        usage: What the model consumed that proposes it, where that stands nowhere else.
    """

    key: str
    author: ProposalAuthor
    proposals: tuple[Proposal, ...]
    asker: str = ""
    undone_entry: int | None = None
    clears_all: bool = False
    usage: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ProposalDecision:
    """What became of a proposal.

    Attributes:
        proposal: The proposal.
        verdict: The gate's.
        reason: In plain words.
        fact: The fact as it is afterwards; None where there is none.
        ended: The fact that it ended.
        signals: What the gate went by.
        previous: The fact as it was; None where it is new.
    """

    proposal: Proposal
    verdict: ProposalVerdict
    reason: str
    fact: Fact | None = None
    ended: Fact | None = None
    signals: dict[str, Any] = field(default_factory=dict)
    previous: Fact | None = None


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """What became of a batch.

    Attributes:
        decisions: In the order of the proposals; empty where it had been decided before and is not
            remembered in detail.
        entry: Id of the entry that records it, 0 where nothing was recorded.
        repeated: It had been decided before.
    """

    decisions: tuple[ProposalDecision, ...] = ()
    entry: int = 0
    repeated: bool = False

    def with_verdict(self, *verdicts: ProposalVerdict) -> list[ProposalDecision]:
        """Return the decisions with one of these verdicts."""
        return [one for one in self.decisions if one.verdict in verdicts]
