"""Fold a scope's tape into its current facts and compartments, and build the entries. Pure.

Rule 1: one ``memory.facts`` entry is one batch: all its operations apply, or none.
Rule 2: an entry holds each fact as it is afterwards, so that the fold decides nothing.
Rule 3: a fact whose words were erased keeps its number and is never shown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bot.core.reasons import reason_json
from bot.memory.records.compartments import BUS_EVENT, Compartments
from bot.memory.records.fact import Fact, fact_from_json
from bot.memory.records.proposals import BatchOutcome
from bot.tape.entries import TapeEntry, event
from bot.tape.store import HEADER_EVENT

FACTS_EVENT = "memory.facts"
PAUSED_EVENT = "memory.paused"
CHANGE_EVENTS = frozenset({FACTS_EVENT, PAUSED_EVENT, BUS_EVENT})
"""Names of the events that make up the fold."""

_REMEMBERED = 1_000
"""Batch keys that the fold remembers as decided."""


@dataclass(slots=True)
class FactFold:
    """The state of one scope's memory.

    Attributes:
        facts: All facts by number, including ended ones.
        next_id: The next fact number.
        changes: Ids of the entries that changed something, oldest first.
        decided_keys: Keys of decided batches, oldest first, with the entry that records each.
        paused: Memory is paused: nothing is learned until it is resumed.
        cleared_at: Id of the last batch that retired all facts.
        version: Id of the last entry applied, of any kind.
        is_partial: The tape is a copy of another one's end: earlier changes may be missing.
        compartments: The compartments of the memory bus.
    """

    facts: dict[int, Fact] = field(default_factory=dict)
    next_id: int = 1
    changes: list[int] = field(default_factory=list)
    decided_keys: dict[str, int] = field(default_factory=dict)
    paused: bool = False
    cleared_at: int = 0
    version: int = 0
    is_partial: bool = False
    compartments: Compartments = field(default_factory=Compartments)

    @property
    def last_change(self) -> int:
        """Id of the newest entry that changed something; 0 if there is none."""
        return self.changes[-1] if self.changes else 0

    def changes_back(self, last: int | None = None) -> Iterator[int]:
        """Return the ids of the entries that changed something, newest first, from the last or a given one on."""
        known = self.changes
        return reversed(known[: None if last is None else bisect_right(known, last)])

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry."""
        version = max(self.version, entry.id)
        if entry.is_reset:
            for name in self.__slots__:
                setattr(self, name, getattr(FactFold(), name))
        elif entry.kind == "event" and entry.name in CHANGE_EVENTS:
            self._take(entry)
        elif entry.name == HEADER_EVENT:
            parent = entry.data.get("parent")
            self.is_partial |= isinstance(parent, dict) and parent.get("first") != 1
        self.version = version

    def _take(self, entry: TapeEntry) -> None:
        data = entry.data
        self.changes.append(entry.id)
        if entry.name == PAUSED_EVENT:
            self.paused = data.get("paused") is True
        elif entry.name == FACTS_EVENT:
            self._apply_batch(entry.id, data)
        elif entry.name == BUS_EVENT:
            self.compartments.apply(entry)
        # Batches without a cause have an empty key, which never counts as decided.
        if isinstance(key := data.get("key"), str) and key:
            self.decided_keys[key] = entry.id
            while len(self.decided_keys) > _REMEMBERED:
                del self.decided_keys[next(iter(self.decided_keys))]

    def active(self) -> list[Fact]:
        """Return the facts that hold, judged or quoted, by number.

        What is to replace facts without new words of a person is none until a judge said yes.
        """
        return [
            fact
            for fact in self.facts.values()
            if fact.status == "active" and fact.text and not self._says_nothing_new(fact)
        ]

    def awaiting_judge(self) -> list[Fact]:
        """Return the facts that a judge is still to rule on, by number."""
        return [fact for fact in self.facts.values() if fact.awaits_judge]

    def _says_nothing_new(self, fact: Fact) -> bool:
        if not fact.proposes_change or fact.ends:
            return False
        known = {
            evidence.span
            for number in fact.replaces
            if (other := self.facts.get(number)) is not None and other.status == "active"
            for evidence in other.evidence
        }
        return all(evidence.span in known for evidence in fact.evidence)

    def pending(self) -> list[Fact]:
        """Return the facts that wait for a person, among them what is to end others."""
        return [
            fact
            for fact in self.facts.values()
            if fact.text and (fact.status == "pending" or (fact.proposes_change and fact.ends))
        ]

    def get(self, number: int | None) -> Fact | None:
        """Return a fact by number, whatever its status; None if unknown or erased."""
        fact = self.facts.get(number) if number is not None else None
        return fact if fact is not None and fact.text else None

    def history(self, fact: Fact) -> list[Fact]:
        """Return a fact and its chain of superseded facts, newest first."""
        found = [fact]
        while (before := self.get(found[-1].supersedes)) is not None and before not in found:
            found.append(before)
        return found

    def predecessors(self, fact: Fact) -> list[Fact]:
        """Return the facts that a fact replaced."""
        if fact.supersedes is None:
            return []
        numbers = dict.fromkeys((fact.supersedes, *fact.replaces))
        return [before for number in numbers if (before := self.get(number)) is not None]

    def successors(self, fact: Fact) -> list[Fact]:
        """Return the facts that replaced a fact."""
        return [
            other
            for other in self.facts.values()
            if other.supersedes is not None
            and other.status != "pending"
            and fact.id in (other.supersedes, *other.replaces)
            and other.gloss
        ]

    def _apply_batch(self, entry: int, data: dict[str, Any]) -> None:
        for operation in _listed(data.get("ops")):
            if not isinstance(operation, dict):
                continue
            for place in ("fact", "closed"):
                if (fact := fact_from_json(operation.get(place))) is not None:
                    self.facts[fact.id] = fact
                    self.next_id = max(self.next_id, fact.id + 1)
        if data.get("clears") is True:
            self.cleared_at = entry


def batch_entry(outcome: BatchOutcome, *, key: str, author: str, **more: Any) -> TapeEntry:
    """Return the ``memory.facts`` entry that records a batch."""
    data: dict[str, Any] = {"key": key, "author": author, **more}
    data["ops"] = [
        {
            "op": decision.proposal.op,
            "text": decision.proposal.text,
            "verdict": decision.verdict,
            "reason": reason_json(decision.reason),
            "signals": {
                name: reason_json(signal) if isinstance(signal, str) else signal
                for name, signal in decision.signals.items()
            },
            "cites": [{"tape": e.tape, "entry": e.entry} for e in decision.proposal.evidence],
            **({"fact": decision.fact.as_json()} if decision.fact is not None else {}),
            **({"closed": decision.ended.as_json()} if decision.ended is not None else {}),
        }
        for decision in outcome.decisions
    ]
    return event(FACTS_EVENT, data)


def pause_entry(*, paused: bool) -> TapeEntry:
    """Return the entry that pauses or resumes memory."""
    return event(PAUSED_EVENT, {"paused": paused})


def bus_entry(data: dict[str, Any], **meta: Any) -> TapeEntry:
    """Return the entry that records a change to the compartments.

    ``data`` has each changed record as it is afterwards, by compartment; its ``key`` names the cause.
    """
    return event(BUS_EVENT, data, **meta)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
