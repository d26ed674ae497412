"""Entries as rows: what goes into the tables, and what is read out of them. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.clock import Clock, iso
from bot.tape.codec import decode, encode
from bot.tape.entries import TapeEntry
from bot.tape.stores.postgres.search_terms import indexed

_ANY_ID = 1
"""Stands in each body: which id an entry gets is known only in the database."""

LARGEST_ID = 2**62
"""No tape is as long; a larger number fits into no column."""


def as_bytes(text: str) -> bytes:
    """Return a text as it is kept: it may hold the character NUL and lone surrogates."""
    return text.encode("utf-8", "surrogatepass")


def as_text(raw: bytes) -> str:
    """Return a text that was kept."""
    return raw.decode("utf-8", "surrogatepass")


def bounded(number: int) -> int:
    """Return the nearest number that an id may be compared with."""
    return max(0, min(number, LARGEST_ID))


@dataclass(frozen=True, slots=True)
class Packed:
    """Entries as arguments of the functions that write them.

    Attributes:
        kinds: Their kinds.
        names: Their names as they are kept; None for all but anchors and events.
        bodies: Their lines of JSON.
        terms: What a search knows of each.
    """

    kinds: list[str]
    names: list[bytes | None]
    bodies: list[bytes]
    terms: list[Any]

    @property
    def arguments(self) -> tuple[list[str], list[bytes | None], list[bytes], str]:
        """All of it, in the order of the functions' parameters."""
        return self.kinds, self.names, self.bodies, self.told

    @property
    def told(self) -> str:
        """What a search knows of them, as JSON."""
        return json.dumps(self.terms)

    def __add__(self, later: Packed) -> Packed:
        """Return both, one after the other."""
        return Packed(
            self.kinds + later.kinds,
            self.names + later.names,
            self.bodies + later.bodies,
            self.terms + later.terms,
        )


def stamp(entries: Sequence[TapeEntry], clock: Clock) -> list[TapeEntry]:
    """Return entries with the time in their ``meta``, unless they bring one."""
    now = iso(clock.now())
    return [replace(entry, id=0, meta={"ts": now, **entry.meta}) for entry in entries]


def pack(tape: str, entries: Sequence[TapeEntry]) -> Packed:
    """Return entries as they are written on a tape.

    Raises:
        InvalidEntry: One would not read back as it is.
    """
    bodies = [encode([replace(entry, id=_ANY_ID)])[:-1] for entry in entries]
    names = [None if entry.name is None else as_bytes(entry.name) for entry in entries]
    terms = [indexed(tape, entry) for entry in entries]
    return Packed([entry.kind for entry in entries], names, bodies, terms)


def entry_of(number: int, body: bytes) -> TapeEntry | None:
    """Return a row as an entry; None where its body cannot be read."""
    line = decode(body)
    return None if line is None else replace(line.entry, id=number)
