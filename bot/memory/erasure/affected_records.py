"""Count the compartment records of the memory bus that an erasure changes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from bot.core.i18n import ngettext
from bot.memory.erasure.bus_scrubber import BusScrubber

AffectedRecordKind = Literal["value", "belief", "notes"]

AffectedRecordKey = tuple[str, AffectedRecordKind, str]
"""Tape, kind of record, and the record's key or id on that tape."""

_KINDS: tuple[tuple[str, AffectedRecordKind, str, tuple[str, ...]], ...] = (
    ("references", "value", "key", ("key", "value")),
    ("patterns", "belief", "id", ("content",)),
    ("problems", "notes", "id", ("name", "summary")),
    ("working", "notes", "problem", ()),
)
"""Field of the compartments, kind, field with the id, fields with text (empty: all fields)."""


@dataclass(frozen=True, slots=True)
class AffectedRecordCounts:
    """Number of records of the memory bus that lose text.

    Attributes:
        values: Shared values; all versions of one value count once.
        beliefs: Conclusions, heuristics, policies and summaries.
        notes: Problems; each counts once, together with its working set.
    """

    values: int = 0
    beliefs: int = 0
    notes: int = 0

    @classmethod
    def count(cls, records: Collection[AffectedRecordKey]) -> AffectedRecordCounts:
        """Count records by kind."""
        kinds = [kind for _, kind, _ in records]
        return cls(kinds.count("value"), kinds.count("belief"), kinds.count("notes"))

    @classmethod
    def from_json(cls, record: object) -> AffectedRecordCounts:
        """Parse ``as_json`` output; return zeros for anything else."""
        if not isinstance(record, list) or [type(one) for one in record] != [int, int, int]:
            return cls()
        return cls(*record)

    def __bool__(self) -> bool:
        """Return whether any count is above zero."""
        return bool(self.values or self.beliefs or self.notes)

    def as_json(self) -> list[int]:
        """Return the counts as a JSON list: values, beliefs, notes."""
        return [self.values, self.beliefs, self.notes]

    def descriptions(self) -> list[str]:
        """Return one phrase for each kind that has records."""
        counted = (
            (self.values, ngettext("a shared value", "{n} shared values", self.values)),
            (self.beliefs, ngettext("a belief", "{n} beliefs", self.beliefs)),
            (self.notes, ngettext("a problem's notes", "the notes of {n} problems", self.notes)),
        )
        return [told for number, told in counted if number]


NO_AFFECTED_RECORDS = AffectedRecordCounts()


def find_affected_records(
    tape: str, data: dict[str, Any], scrubber: BusScrubber
) -> Iterator[tuple[AffectedRecordKey, dict[str, Any]]]:
    """Yield each record that loses text, with its present content; lost evidence does not count.

    Args:
        tape: The tape that holds the records.
        data: The data of a change, or a whole state of the compartments.
        scrubber: The scrubber of that tape.
    """
    fresh = scrubber.scrub_records(data)
    for field, kind, name, words in _KINDS:
        for old, new in zip(data.get(field) or (), fresh.get(field, ()), strict=False):
            if not isinstance(old, dict):
                continue
            if any(old.get(one) != new.get(one) for one in words or old):
                yield (tape, kind, str(old.get(name))), old
