"""What a person wants erased: numbers of facts, entries, or all that has some words. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bot.core.patterns import LazyPattern
from bot.memory.erasure.persons_entries import EntryLocation
from bot.memory.erasure.text_matcher import needles_in

_NUMBERS = LazyPattern(r"#?[1-9]\d{0,8}(?:[\s,]+#?[1-9]\d{0,8})*,?")


@dataclass(frozen=True, slots=True)
class ErasureItem:
    """One numbered item of a question, which a person may erase or keep: ids, never text."""

    kind: Literal["fact", "message", "messages", "held", "same", "near"]
    facts: tuple[int, ...] = ()
    location: EntryLocation = ("", 0)

    @property
    def is_kept(self) -> bool:
        """Whether the item stays unless the person picks it."""
        return self.kind in ("same", "near")


@dataclass(frozen=True, slots=True)
class ErasureQuery:
    """What to erase.

    Attributes:
        facts: Facts by number.
        needles: Words and phrases; what has all of them goes.
        entries: Entries by their places.
        kept: If a person picked some items of what was found, the others; they stay.
    """

    facts: frozenset[int] = frozenset()
    needles: tuple[str, ...] = ()
    entries: frozenset[EntryLocation] = frozenset()
    kept: tuple[ErasureItem, ...] = ()

    @property
    def takes_all(self) -> bool:
        """Whether all that is found goes."""
        return not self.kept

    @property
    def takes_records(self) -> bool:
        """Whether the memory bus's records lose the words."""
        return all(item.kind != "held" for item in self.kept)

    def picks(self, place: EntryLocation) -> bool:
        """Return whether a message or file that was found goes."""
        if any(item.kind == "messages" for item in self.kept):
            return place in self.entries
        return all(item.location != place for item in self.kept)

    def only(self, items: Sequence[ErasureItem], picked: Collection[int]) -> ErasureQuery:
        """Return the query for the items with these numbers alone, from 1."""
        going = [item for number, item in enumerate(items, 1) if number in picked]
        return replace(
            self,
            facts=frozenset(number for item in going for number in item.facts),
            entries=frozenset(item.location for item in going if item.kind in ("message", "near")),
            kept=tuple(item for item in items if item not in going and not item.is_kept),
        )


def parse_query(text: str, *, numbers: bool = True) -> ErasureQuery | None:
    """Parse a request; return None if it holds no word to search for."""
    if numbers and _NUMBERS.fullmatch(text.strip()):
        return ErasureQuery(frozenset(int(one) for one in re.findall(r"\d+", text)))
    needles = needles_in(text.strip())
    return ErasureQuery(needles=needles) if needles else None
