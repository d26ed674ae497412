"""What a model's server refused, folded from a tape: it is in no later request. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from bot.memory.records.conversation_entries import TURN_END
from bot.tape.entries import TapeEntry

MODEL_REFUSED = "model.refused"
"""Name of the event that records it: ``{parts, entries, kinds}``."""


@dataclass(slots=True)
class Refusals:
    """The refused parts of requests.

    Attributes:
        parts: Digests of their texts, or of a picture's data.
        entries: Ids of the entries whose texts they are.
        untold: What no answer has told yet: ``picture`` or ``text``.
    """

    parts: set[str] = field(default_factory=set)
    entries: set[int] = field(default_factory=set)
    untold: set[str] = field(default_factory=set)

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry."""
        if entry.kind == "event" and entry.name == MODEL_REFUSED:
            self.parts.update(entry.data.get("parts", ()))
            self.entries.update(entry.data.get("entries", ()))
            self.untold.update(entry.data.get("kinds", ()))
        elif entry.kind == "event" and entry.name == TURN_END and entry.data.get("answered"):
            self.untold = set()
