"""Fold a tape's facts, with who decided each change, how often each text ended, and what has no reason. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bot.core.i18n import N_, _
from bot.memory.records.fact import Fact, comparison_key, fact_from_json
from bot.memory.records.fact_fold import CHANGE_EVENTS, FACTS_EVENT, FactFold
from bot.tape.entries import TapeEntry

_ACCEPTED = N_("accepted")
_AUTHORS = {
    "person": N_("a person asked for it"),
    "consolidation": N_("learned by a consolidation"),
    "assistant": N_("saved by the assistant"),
    "import": N_("added by an import"),
    "undo": N_("restored by an undo"),
    "client": N_("proposed by a program"),
    "judge": N_("ruled by the judge"),
}
_HELD = ("active", "pending")


@dataclass(frozen=True, slots=True)
class FactAdmission:
    """Who added or changed a fact, and when.

    Attributes:
        op: Name of the operation.
        author: Kind of author, a key of ``_AUTHORS``.
        asker: Platform id of the person who asked; empty if nobody did.
        day: ISO date.
    """

    op: str
    author: str
    asker: str
    day: str

    def description(self) -> str:
        """Return a short phrase."""
        if self.op == "accept":
            what = _("accepted by {who}", who=self.asker or _("a person"))
        else:
            by = f" ({self.asker})" if self.asker else ""
            what = f"{_(_AUTHORS.get(self.author, _ACCEPTED))}{by}"
        return _("{what} on {day}", what=what, day=self.day) if self.day else what


@dataclass(slots=True)
class FactReplay:
    """Facts with the history of their changes.

    Attributes:
        fold: The resulting facts.
        admissions: Origin of each change, by id of the batch's entry and number of the fact.
        endings: Numbers of ended facts by normalized text, one number for each ending.
        entries_without_reason: Ids of entries that record a decision without a reason.
    """

    fold: FactFold = field(default_factory=FactFold)
    admissions: dict[tuple[int, int], FactAdmission] = field(default_factory=dict)
    endings: dict[str, list[int]] = field(default_factory=dict)
    entries_without_reason: list[int] = field(default_factory=list)

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry."""
        changes = entry.kind == "event" and entry.name in CHANGE_EVENTS
        for operation in _operations(entry) if entry.name == FACTS_EVENT else ():
            self._note(entry, operation)
        decision = entry.data.get("decision") if changes else None
        if isinstance(decision, dict) and not str(decision.get("reason") or "").strip():
            self.entries_without_reason.append(entry.id)
        self.fold.apply(entry)

    def _note(self, entry: TapeEntry, operation: dict[str, Any]) -> None:
        data = entry.data
        for place in ("fact", "closed"):
            fact = fact_from_json(operation.get(place))
            if fact is None:
                continue
            self._count(fact)
            # All operations of a batch have the same author, so the last one may overwrite others.
            self.admissions[entry.id, fact.id] = FactAdmission(
                str(operation.get("op", "")),
                str(data.get("author", "")),
                str(data.get("asker") or ""),
                str(entry.meta.get("ts") or "")[:10],
            )

    def _count(self, fact: Fact) -> None:
        before = self.fold.facts.get(fact.id)
        held = before is not None and before.status in _HELD
        if held and fact.status not in _HELD and fact.text:
            self.endings.setdefault(comparison_key(fact.gloss), []).append(fact.id)


def _operations(entry: TapeEntry) -> list[dict[str, Any]]:
    found = entry.data.get("ops")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
