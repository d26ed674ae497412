"""The current facts of a scope, and what its compartments hold, folded from its tape. Pure.

Rule 1: one entry ``memory.facts`` is one batch: all its operations hold, or none is there.
Rule 2: an entry says what each fact is afterwards, so that a fold decides nothing.
Rule 3: every so often an entry carries the whole state, and each entry names the one before it: a fold
    costs what is new since then.
Rule 4: a fact whose words were erased keeps its number and is never shown.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from bot.memory.bus.compartments import BUS_EVENT, Compartments
from bot.memory.facts.fact import Fact, fact_from_json
from bot.memory.facts.proposals import BatchOutcome
from bot.tape.entries import TapeEntry, event

FACTS_EVENT = "memory.facts"
PAUSED_EVENT = "memory.paused"
CHAIN_EVENTS = frozenset({FACTS_EVENT, PAUSED_EVENT, BUS_EVENT})
"""The events that a fold is made of; each names the one before it."""

_SNAPSHOT_EVERY = 50
_REMEMBERED = 1_000
"""Keys of batches that are known to be decided."""


@dataclass(slots=True)
class FactFold:
    """The state of one scope's facts.

    Attributes:
        facts: All that were ever there, by number; also those that ended.
        next_id: The next number.
        last_entry_id: Id of the last entry that is part of the fold, 0 where there is none.
        since_snapshot: Batches since the last whole state.
        decided_keys: Of batches decided, oldest first, with the entry that records each.
        paused: Nothing is learned until it is resumed.
        cleared_at: Id of the last batch that retired everything.
        version: Id of the last entry applied, of any kind.
        is_partial: What was before the first entry is not on this tape: it is a copy of a part.
        compartments: Of the memory bus.
    """

    facts: dict[int, Fact] = field(default_factory=dict)
    next_id: int = 1
    last_entry_id: int = 0
    since_snapshot: int = 0
    decided_keys: OrderedDict[str, int] = field(default_factory=OrderedDict)
    paused: bool = False
    cleared_at: int = 0
    version: int = 0
    is_partial: bool = False
    compartments: Compartments = field(default_factory=Compartments)

    def apply(self, entry: TapeEntry) -> None:
        """Take one entry in."""
        self.version = max(self.version, entry.id)
        if entry.is_reset:
            # What comes next says that there is none before it.
            self._restore({})
            self.last_entry_id = 0
        elif is_chain_entry(entry):
            self._take(entry)

    def _take(self, entry: TapeEntry) -> None:
        data = entry.data
        if self.last_entry_id == 0:
            self.is_partial = data.get("previous") not in (None, 0)
        self.last_entry_id = entry.id
        if isinstance(state := data.get("state"), dict):
            self._restore(state)
        elif is_chain_start(entry):
            # As whoever reads the tape from its end takes it: nothing of what was before counts.
            self._restore({})
            self.since_snapshot = 1
        else:
            self.since_snapshot += 1
        # A whole state is that before the entry.
        if entry.name == PAUSED_EVENT:
            self.paused = data.get("paused") is True
        elif entry.name == FACTS_EVENT:
            self._apply_batch(entry.id, data)
        elif entry.name == BUS_EVENT:
            self.compartments.apply(entry)
        # What is done without a cause has an empty one, and that is never done already.
        if isinstance(key := data.get("key"), str) and key:
            self.decided_keys[key] = entry.id
            while len(self.decided_keys) > _REMEMBERED:
                self.decided_keys.popitem(last=False)

    def active(self) -> list[Fact]:
        """Return what is believed, oldest number first."""
        return [one for one in self.facts.values() if one.status == "active" and one.text]

    def pending(self) -> list[Fact]:
        """Return what waits for a person."""
        return [one for one in self.facts.values() if one.status == "pending" and one.text]

    def get(self, number: int | None) -> Fact | None:
        """Return a fact by its number, whatever became of it; None where its words are gone."""
        found = self.facts.get(number) if number is not None else None
        return found if found is not None and found.text else None

    def history(self, fact: Fact) -> list[Fact]:
        """Return a fact and those whose place it took, newest first."""
        found = [fact]
        while (before := self.get(found[-1].supersedes)) is not None and before not in found:
            found.append(before)
        return found

    def predecessors(self, fact: Fact) -> list[Fact]:
        """Return what a fact took the place of: the one named, and those that were merged into it."""
        merged = (one for one in self.facts.values() if one.is_merged_into(fact))
        named = self.get(fact.supersedes)
        found = {one.id: one for one in (*([named] if named else []), *merged) if one.text}
        return list(found.values())

    def state(self) -> dict[str, Any]:
        """Return the whole state as JSON."""
        return {
            "facts": [one.as_json() for one in self.facts.values()],
            "next": self.next_id,
            "keys": [list(pair) for pair in self.decided_keys.items()],
            "paused": self.paused,
            "cleared": self.cleared_at,
            **({"compartments": found} if (found := self.compartments.state()) else {}),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        known = map(fact_from_json, _listed(state.get("facts")))
        self.facts = {one.id: one for one in known if one is not None}
        told = state["next"] if type(state.get("next")) is int else 1
        self.next_id = max([told, *(number + 1 for number in self.facts)])
        self.decided_keys = OrderedDict(
            (str(pair[0]), pair[1]) for pair in _listed(state.get("keys")) if _is_pair(pair)
        )
        self.paused = state.get("paused") is True
        self.cleared_at = state["cleared"] if type(state.get("cleared")) is int else 0
        self.compartments = Compartments.from_state(state.get("compartments"))
        self.since_snapshot = 0
        self.is_partial = False

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


def batch_entry(
    fold: FactFold, outcome: BatchOutcome, *, key: str, author: str, **more: Any
) -> TapeEntry:
    """Return the entry that records a batch.

    Args:
        fold: The state before it.
        outcome: The decisions.
        key: The batch's.
        author: Who proposed.
        more: What else the entry says.
    """
    data: dict[str, Any] = {"key": key, "author": author, "previous": fold.last_entry_id, **more}
    data["ops"] = [
        {
            "op": one.proposal.op,
            "text": one.proposal.text,
            "verdict": one.verdict,
            "reason": one.reason,
            "signals": one.signals,
            "cites": [{"tape": e.tape, "entry": e.entry} for e in one.proposal.evidence],
            **({"fact": one.fact.as_json()} if one.fact is not None else {}),
            **({"closed": one.ended.as_json()} if one.ended is not None else {}),
            **({"was": _standing(one.previous)} if one.previous is not None else {}),
        }
        for one in outcome.decisions
    ]
    return _with_state(fold, event(FACTS_EVENT, data))


def _standing(fact: Fact) -> dict[str, Any]:
    """Return how a fact stood, without its words: they would have to be erased here, too."""
    rests_on = [[one.tape, one.entry] for one in fact.evidence]
    return {"status": fact.status, "confidence": fact.confidence, "evidence": rests_on}


def pause_entry(fold: FactFold, *, paused: bool) -> TapeEntry:
    """Return the entry that says that nothing is learned from now on, or is again."""
    made = event(PAUSED_EVENT, {"paused": paused, "previous": fold.last_entry_id})
    return _with_state(fold, made)


def bus_entry(fold: FactFold, data: dict[str, Any], **meta: Any) -> TapeEntry:
    """Return the entry that records a change of the compartments.

    Args:
        fold: The state before it.
        data: How each record is afterwards, by compartment; ``key`` names the cause.
        meta: Of the entry.
    """
    return _with_state(fold, event(BUS_EVENT, {**data, "previous": fold.last_entry_id}, **meta))


def _with_state(fold: FactFold, entry: TapeEntry) -> TapeEntry:
    """Add the whole state as it was before the entry, every so often."""
    # A state grows with what it holds, so it is written the more seldom.
    held = len(fold.facts) + len(fold.compartments)
    if fold.since_snapshot + 1 < max(_SNAPSHOT_EVERY, held // 4):
        return entry
    data = {**entry.data, "state": fold.state()}
    return replace(entry, payload={"name": entry.name, "data": data})


def fold_entries(entries: Iterable[TapeEntry]) -> FactFold:
    """Return the fold of entries."""
    fold = FactFold()
    for entry in entries:
        fold.apply(entry)
    return fold


def is_chain_entry(entry: TapeEntry) -> bool:
    """Say whether an entry is one that a fold is made of."""
    return entry.kind == "event" and entry.name in CHAIN_EVENTS


def is_chain_start(entry: TapeEntry) -> bool:
    """Say whether an entry of a fold says that there is none before it."""
    before = entry.data.get("previous")
    return type(before) is int and before == 0


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_pair(pair: object) -> bool:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        return False
    return bool(pair[0]) and type(pair[1]) is int
