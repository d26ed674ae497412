"""What somebody wants to change about the facts of a scope, and what became of it. Pure.

Rule 1: a batch has a key; what has been decided under a key is decided once.
Rule 2: whoever proposes reports no signals of trust: those are computed from the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from bot.memory.facts.fact import Evidence, Fact, Status

Operation = Literal[
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

Author = Literal["person", "consolidation", "assistant", "import", "undo", "judge"]
"""Who proposes: a person by a command or in words that code recognises, a consolidation, the
assistant by a tool, an import, an undo, or the judge."""

Verdict = Literal["approved", "pending", "logged", "refused", "known"]
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
    def holds(self) -> bool:
        """Whether the words carry the claim."""
        return self.ruling == "supported"

    @property
    def told(self) -> str:
        """The ruling in plain words, with the reason and who judged."""
        by = f" ({self.model})" if self.model else ""
        return f"{_RULED[self.ruling]}{by}{f': {self.reason}' if self.reason else ''}"


@dataclass(frozen=True, slots=True)
class Before:
    """How a fact stood before an operation, without its words.

    Attributes:
        status: Its status.
        confidence: How sure it was.
        evidence: Tape and entry of each piece that it rested on.
    """

    status: Status
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
        instead: What is to be believed in place of the text, which is kept beside it: words of the person's own.
        lacking: Why the text itself is not to be believed; empty without ``instead``.
        subject: What the text is about, in a word or two.
        slot: Of what the text gives the one current value, as of a fact.
        evidence: What it rests on; every piece was found on a tape.
        why: Says against it what the proposer's own checks found; empty where it holds.
        suspect: The words give orders, or are not a person's own: a person must decide.
        before: How the fact is to stand again; of ``reopen`` and ``weaken``.
        unverified: Nobody has judged yet whether the evidence carries the text.
        judgement: What the judge said of it; None where none was asked, or none answered.
        merged: Nothing new was said: other facts, or texts of the same batch, say what it says.
    """

    op: Operation
    text: str = ""
    fact: int | None = None
    subject: str = ""
    evidence: tuple[Evidence, ...] = ()
    why: str = ""
    suspect: str = ""
    instead: str = ""
    lacking: str = ""
    before: Before | None = None
    unverified: bool = False
    judgement: Judgement | None = None
    merged: bool = False
    slot: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Operations that are decided together.

    Attributes:
        key: Made of what caused it, such as the tape and the entry; the same for a repetition.
        author: Who proposes.
        proposals: In order.
        asker: The platform's id of the person who asked for it; empty where nobody did.
        undoes: Id of the entry whose batch this takes back.
        clears: All is retired: what was said before is not learned again.
        usage: What the model consumed that proposes it, where that stands nowhere else.
    """

    key: str
    author: Author
    proposals: tuple[Proposal, ...]
    asker: str = ""
    undoes: int | None = None
    clears: bool = False
    usage: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """What became of a proposal.

    Attributes:
        proposal: The proposal.
        verdict: The gate's.
        reason: In plain words.
        fact: The fact as it is afterwards; None where there is none.
        closed: The fact that it ended.
        signals: What the gate went by.
        was: The fact as it was; None where it is new.
    """

    proposal: Proposal
    verdict: Verdict
    reason: str
    fact: Fact | None = None
    closed: Fact | None = None
    signals: dict[str, Any] = field(default_factory=dict)
    was: Fact | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a batch.

    Attributes:
        decided: In the order of the proposals; empty where it had been decided before and is not
            remembered in detail.
        entry: Id of the entry that records it, 0 where nothing was recorded.
        repeated: It had been decided before.
    """

    decided: tuple[Decided, ...] = ()
    entry: int = 0
    repeated: bool = False

    def of(self, *verdicts: Verdict) -> list[Decided]:
        """Return the decisions with one of these verdicts."""
        return [one for one in self.decided if one.verdict in verdicts]
