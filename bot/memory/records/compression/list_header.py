"""List headers: state years, tapes and common values once, and shorten the lines. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from typing import Any, TypeVar

from bot.core.patterns import LazyPattern
from bot.memory.records.compression.notation import (
    LineParser,
    encode_cell,
    encode_word,
    quote_text,
)

T = TypeVar("T")

_MOMENT = LazyPattern(
    r"(?:(?:(\d{4})-)?(\d\d)-(\d\d))?T?(?:(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?", re.ASCII
)
_ID = LazyPattern(r"(.*)#(0|[1-9][0-9]*)", re.DOTALL)
_SHORT_ID = LazyPattern(r"([b-z]?)([0-9]+)")
_LETTERS = "bcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class TimeNotation:
    """Write and read times in UTC without a known year, to the microsecond if needed."""

    year: int | None = None

    @classmethod
    def of(cls, moments: Iterable[datetime]) -> TimeNotation:
        """Return a notation that omits the most common year."""
        return cls(most_common([moment.astimezone(UTC).year for moment in moments]))

    def cells(self) -> list[str]:
        """Return the header's cells."""
        return [] if self.year is None else [f"year {self.year}"]

    def write(self, moment: datetime, day: date | None = None) -> str:
        """Write a time, without its date if that is ``day``."""
        moment = moment.astimezone(UTC)
        clock = f"{moment:%H:%M}"
        if moment.second or moment.microsecond:
            clock += f":{moment:%S}"
        if moment.microsecond:
            clock += f".{moment.microsecond:06}".rstrip("0")
        if moment.date() == day:
            return clock
        year = "" if moment.year == self.year else f"{moment.year:04}-"
        rest = "" if clock == "00:00" else f"T{clock}"
        return f"{year}{moment:%m-%d}{rest}"

    def read(self, text: str, day: date | None = None) -> datetime:
        """Read a time.

        Raises:
            ValueError: The text is not a time.
        """
        hit = _MOMENT.fullmatch(text)
        if hit is None or not text:
            raise ValueError(f"not a time: {text!r}")
        year, month, of_month, hour, minute, second, part = hit.groups()
        if month is not None:
            day = date(int(year or self.year or 0), int(month), int(of_month))
        if day is None:
            raise ValueError(f"a time without a day: {text!r}")
        clock = time(
            int(hour or 0), int(minute or 0), int(second or 0), int((part or "").ljust(6, "0"))
        )
        return datetime.combine(day, clock, UTC)


@dataclass(frozen=True, slots=True)
class EntryIdNotation:
    """Write entry ids briefly: ``12`` on the most common tape, ``b12`` on others in the header.

    Attributes:
        tapes: Tape by letter; the empty string stands for the most common tape.
    """

    tapes: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, ids: Iterable[str]) -> EntryIdNotation:
        """Return a notation that states each tape named more than once in the header."""
        found = Counter(hit[1] for other in ids if (hit := _ID.fullmatch(other)))
        named = [tape for tape, times in found.most_common(1 + len(_LETTERS)) if times > 1]
        return cls(dict(zip(("", *_LETTERS), named, strict=False)))

    def cells(self) -> list[str]:
        """Return the header's cells."""
        return [encode_cell(letter or "tape", tape) for letter, tape in self.tapes.items()]

    def write(self, entry: str) -> str:
        """Write an id, or any other word in its place."""
        hit = _ID.fullmatch(entry)
        letter = next((one for one, tape in self.tapes.items() if hit and tape == hit[1]), None)
        if hit and letter is not None:
            return f"{letter}{hit[2]}"
        return quote_text(entry) if _SHORT_ID.fullmatch(entry) else encode_word(entry, " |")

    def read(self, text: str, was_quoted: bool) -> str:
        """Read an id.

        Raises:
            ValueError: The header names no tape for it.
        """
        hit = None if was_quoted else _SHORT_ID.fullmatch(text)
        if hit is None:
            return text
        if hit[1] not in self.tapes:
            raise ValueError(f"not in this notation, no tape is named for {text}")
        return f"{self.tapes[hit[1]]}#{hit[2]}"


def most_common(values: Sequence[T]) -> T | None:
    """Return the most common value, the first of several; None if there is none."""
    return Counter(values).most_common(1)[0][0] if values else None


def parse_header(text: str, title: str) -> tuple[dict[str, Any], EntryIdNotation, list[str]]:
    """Parse a list's header; return its cells, the id notation, and the lines below.

    Raises:
        ValueError: The header has another title.
    """
    header, *lines = text.split("\n")
    reader = LineParser(header)
    reader.require_sign(title)
    said = reader.read_cells()
    tapes = {"": said["tape"]} if "tape" in said else {}
    return said, EntryIdNotation(tapes | {one: said[one] for one in _LETTERS if one in said}), lines
