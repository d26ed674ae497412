"""Entries as rows: what goes into the tables, and what is read out of them. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.core.clock import Clock, iso
from bot.tape.chain import ChainLink, link_from_bytes
from bot.tape.codec import decode, encode
from bot.tape.entries import TapeEntry
from bot.tape.stores.postgres.search_terms import indexed

_ANY_ID = 1
"""Stands in each body: which id an entry gets is known only in the database."""

_OPENING = b'{"id":%d,' % _ANY_ID

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


def link_of(number: int, link: bytes | None, more: int | None) -> ChainLink | None:
    """Return a row's link in the chain of digests; None where it has none."""
    return None if link is None else link_from_bytes(link, number, more or 0)


def entry_of(number: int, body: bytes, link: bytes | None, more: int | None) -> TapeEntry | None:
    """Return a row as an entry; None where it cannot be read, or is not what its digest says."""
    if link is not None:
        held, content = link_of(number, link, more), body[len(_OPENING) : -1]
        if held is None or not body.startswith(_OPENING) or not held.covers(content):
            return None
    line = decode(body)
    return None if line is None else replace(line.entry, id=number)
