"""What a model's server refused, folded from a tape. Pure.

Rule 1: what was refused once is in no later request, after a restart, too.
Rule 2: the answer that follows tells the person, once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bot.memory.records.conversation_entries import TURN_END
from bot.tape.entries import TapeEntry, event

MODEL_REFUSED = "model.refused"
"""Name of the event that records it: ``{parts, entries, pictures}``."""


@dataclass(slots=True)
class Refusals:
    """The refused parts of requests.

    Attributes:
        parts: Digests of their texts, or of a picture's data.
        entries: Ids of the entries whose texts they are.
        untold: Whether each that no person was told of yet is a picture.
    """

    parts: set[str] = field(default_factory=set)
    entries: set[int] = field(default_factory=set)
    untold: list[bool] = field(default_factory=list)

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry."""
        if entry.kind == "event" and entry.name == MODEL_REFUSED:
            self.restore(entry.data)
            pictures = entry.data.get("pictures") or 0
            self.untold += [True] * bool(pictures)
            self.untold += [False] * (len(entry.data.get("parts") or ()) > pictures)
        elif entry.kind == "event" and entry.name == TURN_END and entry.data.get("answered"):
            self.untold = []

    def restore(self, data: dict[str, Any]) -> None:
        """Add what an event or pointers name."""
        self.parts.update(data.get("parts") or ())
        self.entries.update(data.get("entries") or ())

    def pointers(self) -> dict[str, Any]:
        """Return the fold as JSON; empty if nothing was refused."""
        named = {"parts": sorted(self.parts), "entries": sorted(self.entries)}
        return {"refused": named} if self.parts else {}


def refused_event(parts: dict[str, bool], entries: list[int]) -> TapeEntry:
    """Return the event that records refused parts, by digest whether each is a picture."""
    told = {"parts": list(parts), "entries": entries, "pictures": sum(parts.values())}
    return event(MODEL_REFUSED, told)
