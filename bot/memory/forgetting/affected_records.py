"""How much of what the memory bus holds a request to forget is about. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from bot.memory.forgetting.bus_scrubber import BusScrubber

AffectedRecordKind = Literal["value", "belief", "notes"]

AffectedRecordKey = tuple[str, AffectedRecordKind, str]
"""A tape, what the record is, and its key or id there."""

_KINDS: tuple[tuple[str, AffectedRecordKind, str, tuple[str, ...]], ...] = (
    ("references", "value", "key", ("key", "value")),
    ("patterns", "belief", "id", ("content",)),
    ("problems", "notes", "id", ("name", "summary")),
    ("working", "notes", "problem", ()),
)
"""Where records are, what they are, what names them, and what of them is words; of none all is."""


@dataclass(frozen=True, slots=True)
class AffectedRecordCounts:
    """How many records of the memory bus lose words.

    Attributes:
        values: Shared values, each once for all its versions.
        beliefs: Conclusions, heuristics, policies and summaries.
        notes: Problems, each with its working set.
    """

    values: int = 0
    beliefs: int = 0
    notes: int = 0

    @classmethod
    def count(cls, records: Collection[AffectedRecordKey]) -> AffectedRecordCounts:
        """Count records."""
        kinds = [kind for _, kind, _ in records]
        return cls(kinds.count("value"), kinds.count("belief"), kinds.count("notes"))

    @classmethod
    def from_json(cls, record: object) -> AffectedRecordCounts:
        """Return what JSON tells; nothing where it tells of none."""
        if not isinstance(record, list) or [type(one) for one in record] != [int, int, int]:
            return cls()
        return cls(*record)

    def __bool__(self) -> bool:
        """Say whether there are any."""
        return bool(self.values or self.beliefs or self.notes)

    def as_json(self) -> list[int]:
        """Return it as JSON."""
        return [self.values, self.beliefs, self.notes]

    def descriptions(self) -> list[str]:
        """Return it in words, a part for each kind."""
        counted = (
            (self.values, "a shared value", f"{self.values} shared values"),
            (self.beliefs, "a belief", f"{self.beliefs} beliefs"),
            (self.notes, "a problem's notes", f"the notes of {self.notes} problems"),
        )
        return [one if number == 1 else more for number, one, more in counted if number]


NO_AFFECTED_RECORDS = AffectedRecordCounts()


def find_affected_records(
    tape: str, data: dict[str, Any], scrubber: BusScrubber
) -> Iterator[tuple[AffectedRecordKey, dict[str, Any]]]:
    """Yield the records that lose words, each with what it is now: evidence that goes is no words.

    Args:
        tape: That holds them.
        data: Of a change, or a whole state of the compartments.
        scrubber: Of the tape.
    """
    fresh = scrubber.scrub_records(data)
    for field, kind, name, words in _KINDS:
        for old, new in zip(data.get(field) or (), fresh.get(field, ()), strict=False):
            if not isinstance(old, dict):
                continue
            if any(old.get(one) != new.get(one) for one in words or old):
                yield (tape, kind, str(old.get(name))), old
