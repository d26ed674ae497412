"""What a model's server refused, folded from a tape: it is in no later request. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from bot.memory.records.conversation_entries import TURN_END
from bot.tape.entries import TapeEntry

T = TypeVar("T")

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
            self.parts.update(_items(entry.data.get("parts"), str))
            self.entries.update(_items(entry.data.get("entries"), int))
            self.untold.update(_items(entry.data.get("kinds"), str))
        elif entry.kind == "event" and entry.name == TURN_END and entry.data.get("answered"):
            self.untold = set()


def _items(value: object, kind: type[T]) -> list[T]:
    return [one for one in value if type(one) is kind] if isinstance(value, list) else []
