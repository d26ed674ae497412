"""Labels of a call's arguments: where each value comes from, as the tape records it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from bot.core.reasons import Reason
from bot.memory.records.record_json import RecordJson


class Origin(IntEnum):
    """Where a value comes from, weakest first.

    Attributes:
        OUTSIDE: Text from outside could have shaped it.
        MODEL: The model wrote it, and nothing from outside was in view.
        MEMORY: It stands in words that a fact rests on.
        PERSON: It stands in the own words of a person who is answered.
        OWNER: Likewise, of an owner of the bot.
    """

    OUTSIDE = 0
    MODEL = 1
    MEMORY = 2
    PERSON = 3
    OWNER = 4


@dataclass(frozen=True, slots=True)
class ArgumentLabel:
    """The label of one argument.

    Attributes:
        name: The argument's name.
        role: What it is to the call, such as ``recipient``.
        origin: The weakest origin of its values.
        sensitive: Whether it must stand in a person's own words.
        entry: Id of the entry on this tape that the value stands in; 0 if in none.
    """

    name: str
    role: str
    origin: Origin
    sensitive: bool = True
    entry: int = 0

    @property
    def is_said(self) -> bool:
        """Whether a person said the value."""
        return self.origin >= Origin.MEMORY

    def as_json(self) -> dict[str, Any]:
        """Return the label as JSON."""
        return _LABELS.write(self)

    def describe(self) -> Reason:
        """Return where the value comes from, for people."""
        code = f"origin_{self.origin.name.lower()}"
        if self.entry and self.origin is not Origin.MODEL:
            return Reason(f"{code}_at", entry=f"#{self.entry}")
        return Reason(code)

    def line(self) -> str:
        """Return the label as a line for people."""
        role = f" ({self.role})" if self.role not in ("", "value", self.name) else ""
        return f"{self.name}{role}: {self.describe()}"


_LABELS = RecordJson(ArgumentLabel)


def labels_from_json(record: object) -> tuple[ArgumentLabel, ...]:
    """Read a list of labels; leave out malformed ones."""
    return tuple(_LABELS.read_list(record))
