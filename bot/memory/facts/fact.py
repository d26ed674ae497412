"""A fact, and what it rests on. Pure.

Rule 1: a fact is never changed; an operation gives a new one with the same number.
Rule 2: a fact's number belongs to its scope, grows by one, and is never given again.
Rule 3: a fact's origin is that of its weakest evidence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard, get_args

EvidenceOrigin = Literal["person", "member", "import", "assistant", "tool", "quoted"]
"""Whose words: the person's own, somebody else's (a group member's, or an owner's who gave a command there),
an import's, the assistant's, a tool's, or quoted and forwarded ones."""

EVIDENCE_ORIGINS: tuple[str, ...] = get_args(EvidenceOrigin)

FactStatus = Literal["active", "pending", "superseded", "retired", "dropped"]

ORIGIN_TRUST: dict[str, float] = {
    "person": 1.0,
    "member": 0.9,
    "import": 0.7,
    "assistant": 0.5,
    "tool": 0.3,
    "quoted": 0.3,
}
"""How much a belief may be worth that rests on such words; the weakest evidence counts."""

MAX_FACT_TEXT = 2_000
LONGEST_SUBJECT = 40
LONGEST_QUOTE = 300
MOST_EVIDENCE = 12
"""Pieces of evidence that a fact keeps: the first and the newest."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Words that a fact rests on.

    Attributes:
        tape: The tape that holds them.
        entry: Id of the entry there.
        quote: The words, cut where they are long.
        who: Who said them, as shown; in groups with the platform's id.
        when: When, ISO 8601 in UTC; empty where that is unknown.
        origin: Whose words they are.
        sender: The platform's id of who said them; empty where nobody did.
        inbound: The platform's id of the message, for a link to it.
    """

    tape: str
    entry: int
    quote: str
    who: str
    when: str = ""
    origin: EvidenceOrigin = "person"
    sender: str = ""
    inbound: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something believed.

    Attributes:
        id: Its number in its scope.
        text: One line.
        subject: What it is about, in a word or two; empty where nobody said.
        evidence: What it rests on, oldest first.
        origin: Of the weakest evidence.
        confidence: 0 to 1.
        valid_from: Since when, ISO 8601 in UTC.
        valid_to: Until when; None where it still holds.
        status: ``active`` is believed; ``pending`` waits for a person.
        supersedes: The fact whose place it took.
        batch: Id of the entry that last changed it.
        admitted: Id of the entry whose decision admitted it.
        changed: When that was, ISO 8601 in UTC.
        unverified: Nobody has judged yet whether the evidence carries the text.
        judged: Id of the entry with the judge's word on it; 0 where there is none.
        slot: Of what it gives the one current value, such as ``aspirin: dose``; see ``slot.py``.
    """

    id: int
    text: str
    subject: str = ""
    evidence: tuple[Evidence, ...] = ()
    origin: EvidenceOrigin = "person"
    confidence: float = 0.8
    valid_from: str = ""
    valid_to: str | None = None
    status: FactStatus = "active"
    supersedes: int | None = None
    batch: int = 0
    admitted: int = 0
    changed: str = ""
    unverified: bool = False
    judged: int = 0
    slot: str = ""

    @property
    def is_refuted(self) -> bool:
        """Whether a judge's word has ended it."""
        return self.status == "retired" and 0 < self.judged == self.batch and bool(self.text)

    def is_merged_into(self, other: Fact) -> bool:
        """Say whether it ended with the batch that made another, which rests on all that it rests on."""
        mine, theirs = ({(said.tape, said.entry) for said in one.evidence} for one in (self, other))
        return (self.status, self.batch) == ("superseded", other.admitted) and mine <= theirs

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        # Not ``asdict``: that copies deeply, and a whole state has thousands of these.
        plain = {name: getattr(self, name) for name in Fact.__slots__}
        if not self.slot:
            del plain["slot"]
        plain["evidence"] = [
            {name: getattr(one, name) for name in Evidence.__slots__} for one in self.evidence
        ]
        return plain


def weakest_origin(evidence: Iterable[Evidence]) -> EvidenceOrigin:
    """Return the origin of the weakest evidence; ``assistant`` where there is none."""
    return min((one.origin for one in evidence), key=lambda origin: ORIGIN_TRUST[origin],
               default="assistant")  # fmt: skip


def merge_evidence(old: Iterable[Evidence], new: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return evidence with more of it, as much as is kept; of an entry, each of its sentences once."""
    found: list[Evidence] = []
    for one in (*old, *new):
        same = [kept for kept in found if (kept.tape, kept.entry) == (one.tape, one.entry)]
        if any(one.quote in kept.quote for kept in same):
            continue
        found = [kept for kept in found if kept not in same or kept.quote not in one.quote]
        found.append(one)
    ordered = sorted(found, key=lambda one: (one.when, one.entry))
    if len(ordered) > MOST_EVIDENCE:
        ordered = [ordered[0], *ordered[1 - MOST_EVIDENCE :]]
    return tuple(ordered)


def evidence_from_json(record: object) -> Evidence | None:
    """Return the evidence that JSON holds; None where it holds none that can be read."""
    if not isinstance(record, dict) or type(record.get("entry")) is not int:
        return None
    origin = record.get("origin")

    def text(key: str) -> str:
        value = record.get(key)
        return value if isinstance(value, str) else ""

    return Evidence(
        tape=text("tape"),
        entry=record["entry"],
        quote=text("quote"),
        who=text("who"),
        when=text("when"),
        origin=origin if origin in EVIDENCE_ORIGINS else "quoted",
        sender=text("sender"),
        inbound=text("inbound"),
    )


def evidence_list_from_json(record: object) -> tuple[Evidence, ...]:
    """Return all evidence in a JSON list."""
    found = map(evidence_from_json, record) if isinstance(record, list) else ()
    return tuple(one for one in found if one is not None)


def fact_from_json(record: object) -> Fact | None:
    """Return the fact that JSON holds; None where it holds none that can be read."""
    if not isinstance(record, dict) or type(record.get("id")) is not int:
        return None
    evidence = evidence_list_from_json(record.get("evidence"))
    confidence, supersedes = record.get("confidence"), record.get("supersedes")
    valid_to = record.get("valid_to")

    def text(key: str) -> str:
        value = record.get(key)
        return value if isinstance(value, str) else ""

    def number(key: str) -> int:
        value = record.get(key)
        return value if type(value) is int else 0

    return Fact(
        id=record["id"],
        text=text("text"),
        subject=text("subject"),
        evidence=evidence,
        origin=record["origin"]
        if record.get("origin") in EVIDENCE_ORIGINS
        else weakest_origin(evidence),
        confidence=float(confidence) if _is_share(confidence) else 0.5,
        valid_from=text("valid_from"),
        valid_to=valid_to if isinstance(valid_to, str) else None,
        status=_status(record.get("status")),
        supersedes=supersedes if type(supersedes) is int else None,
        batch=number("batch"),
        admitted=number("admitted"),
        changed=text("changed"),
        unverified=record.get("unverified") is True,
        judged=number("judged"),
        slot=text("slot"),
    )


def _is_share(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and 0 <= value <= 1


def _status(value: object) -> FactStatus:
    return next((one for one in get_args(FactStatus) if one == value), "retired")
