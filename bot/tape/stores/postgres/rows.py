"""Convert entries to rows and back, and their documents to JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.tape.codec import decode_line, encode_line
from bot.tape.entries import NON_BOUNDARY_ANCHORS, TapeEntry
from bot.tape.index.documents import Document, documents_of
from bot.tape.index.labels import Labels, serialize_labels
from bot.tape.store import HEADER_EVENT

_ANY_ID = 1
"""The id in each stored body, since the database assigns the real one."""

MAX_ROW_ID = 2**62
"""Larger than any tape's id, and within the range of the id columns."""


def text_to_bytea(text: str) -> bytes:
    """Encode text for storage, since it may hold NUL and lone surrogates."""
    return text.encode("utf-8", "surrogatepass")


def bytea_to_text(raw: bytes) -> str:
    """Decode stored text."""
    return raw.decode("utf-8", "surrogatepass")


def clamp_id(number: int) -> int:
    """Return the nearest number that can be compared with an id."""
    return max(0, min(number, MAX_ROW_ID))


@dataclass(frozen=True, slots=True)
class EntryColumns:
    """Entries as arguments of the SQL functions that write them.

    Attributes:
        kinds: Their kinds.
        names: Their encoded names; None for kinds without a name.
        bodies: Their lines of JSON, with their CRC.
        terms: Their search documents; None if they are indexed later.
    """

    kinds: list[str]
    names: list[bytes | None]
    bodies: list[bytes]
    terms: list[Any] | None

    @property
    def arguments(self) -> tuple[list[str], list[bytes | None], list[bytes], str | None]:
        """All columns in the order of the functions' parameters."""
        return self.kinds, self.names, self.bodies, self.documents_json

    @property
    def documents_json(self) -> str | None:
        """The search documents as JSON."""
        return None if self.terms is None else json.dumps(self.terms)

    def __add__(self, later: EntryColumns) -> EntryColumns:
        """Return both, one after the other."""
        return EntryColumns(
            self.kinds + later.kinds,
            self.names + later.names,
            self.bodies + later.bodies,
            None if self.terms is None or later.terms is None else self.terms + later.terms,
        )


def pack(tape: str, entries: Sequence[TapeEntry], *, indexed: bool = True) -> EntryColumns:
    """Convert entries of a tape to columns.

    Args:
        tape: The session's key.
        entries: The entries.
        indexed: Whether they are indexed with the write, or later.

    Raises:
        InvalidEntry: An entry would not read back exactly.
    """
    bodies = [encode_line(replace(entry, id=_ANY_ID))[:-1] for entry in entries]
    names = [None if entry.name is None else text_to_bytea(entry.name) for entry in entries]
    terms = [index_document(tape, entry) for entry in entries] if indexed else None
    return EntryColumns([entry.kind for entry in entries], names, bodies, terms)


def entry_of(number: int, body: bytes) -> TapeEntry | None:
    """Return a row's entry; None if it does not match its CRC."""
    line = decode_line(body)
    return None if line is None else replace(line.entry, id=number)


_HIGHEST = 2**63 - 1


def index_document(tape: str, entry: TapeEntry) -> dict[str, Any] | None:
    """Return an entry's search documents as ``tapebot.put_documents`` takes them.

    Args:
        tape: The session's key.
        entry: The entry to append; its id is ignored, since it may not have one yet.

    Returns:
        JSON that PostgreSQL's ``jsonb`` can hold; None if there is nothing to store.
    """
    made: dict[str, Any] = {}
    if documents := [_kept(document) for document in documents_of(entry)]:
        made["documents"] = documents
    if (gap := _gap(tape, entry)) is not None:
        made["gap"] = gap
    return made or None


def _kept(document: Document) -> dict[str, Any]:
    kept: dict[str, Any] = {
        "kind": document.kind,
        "spoken": document.spoken,
        "said_at": document.ts,
        "length": document.length,
        "terms": document.terms,
    }
    if any(document.sender):
        kept["speaker"] = _hex(json.dumps(document.sender, ensure_ascii=False))
    if document.labels != Labels():
        kept["label"] = _hex(serialize_labels(document.labels))
    return kept


def _gap(tape: str, entry: TapeEntry) -> int | None:
    """Return whether an entry separates the turns before it from those after it.

    Returns:
        None if it does not; 0 if it always does. For an anchor, the id that it points at: only if
        that is no earlier entry does it separate the turns.
    """
    if entry.name == HEADER_EVENT and entry.data.get("session") == tape:
        return 0
    if entry.kind != "anchor" or entry.name is None or entry.name in NON_BOUNDARY_ANCHORS:
        return None
    points_at = entry.payload.get("entry")
    return min(points_at, _HIGHEST) if type(points_at) is int and points_at > 0 else 0


def _hex(text: str) -> str:
    """Return any text, lone surrogates included, as hexadecimal digits."""
    return text.encode("utf-8", "surrogatepass").hex()
