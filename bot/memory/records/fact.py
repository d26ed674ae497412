"""Facts and the evidence that they rest on, with their JSON. Pure.

Rule 1: a fact is never changed; an operation makes a new version with the same number.
Rule 2: numbers belong to a scope, grow by one, and are never reused.
Rule 3: a fact's origin is that of its weakest evidence.
Rule 4: until a judge or a person has said that a model's sentence holds, the fact is what was said:
    ``Fact.text`` is a dated quotation, wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal

from bot.memory.records.record_json import RecordJson

EvidenceOrigin = Literal["person", "member", "import", "assistant", "tool", "quoted", "client"]
"""Author of a piece of evidence: ``person`` for the user, ``member`` for a group member (or an
owner who gave a command in a group), ``import``, ``assistant``, ``tool``, ``quoted`` for quoted and
forwarded text, or ``client`` for a program that uses memory."""

OWN_WORDS = frozenset({"person", "member"})
"""Origins of what a person said themselves."""

FactStatus = Literal["active", "pending", "superseded", "retired", "dropped"]

ORIGIN_TRUST: dict[str, float] = {
    "person": 1.0,
    "member": 0.9,
    "import": 0.7,
    "assistant": 0.5,
    "tool": 0.3,
    "quoted": 0.3,
    "client": 0.3,
}
"""Upper limit on a fact's confidence by origin; the weakest evidence counts."""

MAX_FACT_TEXT = 2_000
LONGEST_SUBJECT = 40
LONGEST_QUOTE = 600
LONGEST_CONTEXT = 200
_LONGEST_NAME = 24
MOST_EVIDENCE = 12
"""Pieces of evidence that a fact keeps: the oldest one and the newest ones."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Words on a tape that a fact rests on.

    Attributes:
        tape: Name of the tape that holds them.
        entry: Id of the entry on that tape.
        quote: The words, exactly as they stand there; shortened to ``LONGEST_QUOTE`` characters if a
            whole message is cited.
        who: Display name of the author; in groups with the platform's user id.
        when: Time of the words, ISO 8601 in UTC; empty if unknown.
        origin: Kind of author.
        sender: The author's user id on the platform; empty if there is none.
        inbound: The platform's message id, for a link to the message.
        context: What a short quote answers, which is not the person's; empty if it needs none.
        context_entry: Id of the entry with the context; 0 if there is none.
    """

    tape: str
    entry: int
    quote: str = ""
    who: str = ""
    when: str = ""
    origin: EvidenceOrigin = "person"
    sender: str = ""
    inbound: str = ""
    context: str = ""
    context_entry: int = 0

    @property
    def place(self) -> tuple[str, int]:
        """Tape and entry id."""
        return self.tape, self.entry

    @property
    def span(self) -> tuple[str, int, str]:
        """Tape, entry id and words, which identify what was said."""
        return self.tape, self.entry, self.quote

    @property
    def is_own_words(self) -> bool:
        """Whether these are a person's own words."""
        return self.origin in OWN_WORDS


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement in long-term memory, with its evidence and status.

    Attributes:
        id: Number of the fact in its scope.
        gloss: A model's sentence for what was said, or the words themselves; not to be shown as it
            is: see ``text``.
        subject: What the fact is about, in a word or two; empty if unknown.
        evidence: What the fact rests on, oldest first.
        origin: Origin of the weakest evidence.
        confidence: From 0 to 1.
        valid_from: Start of validity, ISO 8601 in UTC.
        valid_to: End of validity; None while the fact holds.
        status: ``active`` facts are believed; ``pending`` ones wait for a person.
        supersedes: Number of the fact that it replaced; of several, the first.
        batch: Id of the entry that last changed the fact.
        admitted: Id of the entry that admitted the fact.
        changed: Time of the last change, ISO 8601 in UTC.
        quoted: Neither a judge nor a person has said that the gloss holds.
        judged: Id of the entry that holds the judge's verdict; 0 if there is none.
        replaces: Numbers of the facts that it is to replace, or replaced.
        ends: It says only that the facts in ``replaces`` are over.
        standing: A rule of life or health, or a wish how to be answered: it is in every prompt.
        pinned: A person said so, not a model: a judge does not say otherwise.
    """

    id: int
    gloss: str
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
    quoted: bool = False
    judged: int = 0
    replaces: tuple[int, ...] = ()
    ends: bool = False
    standing: bool = False
    pinned: bool = False

    @property
    def text(self) -> str:
        """The fact in English: the gloss, or the quotation; empty if its words were erased."""
        return self.told()

    def told(self, timezone: tzinfo | None = None) -> str:
        """Return the fact in English, with days in a time zone (UTC by default); see ``text``."""
        return quotation(self.evidence, timezone) if self.quoted and self.gloss else self.gloss

    @property
    def is_own_words(self) -> bool:
        """Whether the fact rests only on persons' own words."""
        return self.origin in OWN_WORDS

    @property
    def awaits_judge(self) -> bool:
        """Whether a judge is still to say whether the gloss holds."""
        return self.quoted and not self.judged and self.status == "active" and bool(self.gloss)

    @property
    def proposes_change(self) -> bool:
        """Whether it waits to replace or end other facts."""
        return self.quoted and bool(self.replaces) and self.status == "active"

    @property
    def is_refuted(self) -> bool:
        """Whether a judge's verdict ended the fact."""
        return self.status == "retired" and 0 < self.judged == self.batch and bool(self.gloss)

    def as_json(self) -> dict[str, Any]:
        """Return the fact as JSON."""
        return _FACTS.write(self)


_MONTHS = (
    "January February March April May June July August September October November December".split()
)


def quotation(evidence: Iterable[Evidence], timezone: tzinfo | None = None) -> str:
    """Return what people said in English, with days in a time zone: ``On 3 March 2026 ... said: "..."``."""
    parts: list[str] = []
    said_by = ""
    for one in evidence:
        if not (words := " ".join(one.quote.split())):
            continue
        who = "the user" if one.origin == "person" else speaker_name(one.who)  # for the model
        head = f"{_day(one.when, timezone)} {who} said:"  # for the model
        # What others wrote enters no prompt beside the answer to it.
        answered = one.context if one.context_entry != one.entry else ""
        answers = f' (in answer to: "{answered}")' if answered else ""  # for the model
        told = f'"{words}"{answers}'
        parts.append(told if head == said_by else f"{head[0].upper()}{head[1:]} {told}")
        said_by = head
    return "; ".join(parts)


def speaker_name(who: str) -> str:
    """Return a person's name, as long as names are: a long one may say anything."""
    name, _, number = who.rpartition(" (")
    if len(name) <= _LONGEST_NAME:
        return who or "somebody"
    return f"{name[:_LONGEST_NAME].rstrip()}… ({number}"


def _day(stamp: str, timezone: tzinfo | None) -> str:
    try:
        day = datetime.fromisoformat(stamp).astimezone(timezone or UTC).date()
    except (ValueError, OverflowError):
        return "once"
    return f"on {day.day} {_MONTHS[day.month - 1]} {day.year}"  # for the model


def newer_first(facts: Iterable[Fact]) -> list[Fact]:
    """Return facts in their order, but each before the facts that it is to replace or end."""
    found: list[Fact] = []
    for fact in facts:
        places = [at for at, other in enumerate(found) if other.id in fact.replaces]
        found.insert(min(places, default=len(found)) if fact.proposes_change else len(found), fact)
    return found


def comparison_key(text: str) -> str:
    """Return a text without what is no difference: case, white space, a last full stop."""
    return " ".join(text.casefold().split()).rstrip(". ")


def weakest_origin(evidence: Iterable[Evidence]) -> EvidenceOrigin:
    """Return the origin of the weakest evidence; ``assistant`` if there is none."""
    return min((other.origin for other in evidence), key=lambda origin: ORIGIN_TRUST[origin],
               default="assistant")  # fmt: skip


def merge_evidence(old: Iterable[Evidence], new: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Combine evidence, drop quotes contained in others, and keep ``MOST_EVIDENCE`` pieces."""
    found: list[Evidence] = []
    for other in (*old, *new):
        same = [
            evidence
            for evidence in found
            if (evidence.tape, evidence.entry) == (other.tape, other.entry)
        ]
        if any(other.quote in evidence.quote for evidence in same):
            continue
        found = [
            evidence
            for evidence in found
            if evidence not in same or evidence.quote not in other.quote
        ]
        found.append(other)
    ordered = sorted(found, key=lambda evidence: (evidence.when, evidence.entry))
    if len(ordered) > MOST_EVIDENCE:
        ordered = [ordered[0], *ordered[1 - MOST_EVIDENCE :]]
    return tuple(ordered)


_EVIDENCE = RecordJson(Evidence)
_FACTS = RecordJson(Fact, gloss="text")


def evidence_list_from_json(record: object) -> tuple[Evidence, ...]:
    """Read a JSON list of evidence, leaving out malformed items."""
    return tuple(_EVIDENCE.read_list(record))


def fact_from_json(record: object) -> Fact | None:
    """Read a fact from JSON; return None if it is malformed."""
    found = _FACTS.read(record)
    return found if found is not None and 0 <= found.confidence <= 1 else None
