"""Validate tombstones, which replace erased entries. Pure."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from bot.core.errors import InvalidEntry
from bot.tape.codec import encode_entries
from bot.tape.entries import TapeEntry
from bot.tape.store import HEADER_EVENT


def index_tombstones(tombstones: Sequence[TapeEntry]) -> dict[int, TapeEntry]:
    """Return tombstones by id.

    Raises:
        InvalidEntry: A tombstone has no id or the id of another one, or is not plain JSON.
    """
    found: dict[int, TapeEntry] = {}
    for entry in tombstones:
        if entry.id < 1:
            raise InvalidEntry("a tombstone has the id of the entry that it replaces")
        if entry.id in found:
            raise InvalidEntry(f"there are two tombstones for entry {entry.id}")
        encode_entries([entry])
        found[entry.id] = entry
    return found


def check_tombstones(
    tape: str,
    tombstones: Mapping[int, TapeEntry],
    held: Mapping[int, TapeEntry],
    heads: Container[int],
) -> None:
    """Check that tombstones may replace a tape's entries.

    Args:
        tape: The session's key.
        tombstones: Tombstones by id.
        held: The tape's entries of these ids.
        heads: Ids of the parts' first entries.

    Raises:
        InvalidEntry: An entry does not exist or has another kind, or a part's header loses more
            than its title.
    """
    for number, entry in tombstones.items():
        old = held.get(number)
        if old is None:
            raise InvalidEntry(f"tape {tape} has no entry {number}; nothing was erased")
        if old.kind != entry.kind:
            raise InvalidEntry(
                f"entry {number} of tape {tape} is of kind {old.kind}, not {entry.kind}; nothing "
                "was erased"
            )
        if number in heads and old.name == HEADER_EVENT and _fixed(old) != _fixed(entry):
            raise InvalidEntry(
                f"entry {number} of tape {tape} is the header of a part: only its title may go"
            )


def entries_differ(old: TapeEntry, new: TapeEntry) -> bool:
    """Return whether two entries differ when encoded, since ``True`` equals 1."""
    return encode_entries([old]) != encode_entries([new])


def _fixed(header: TapeEntry) -> tuple[str | None, dict[str, Any]]:
    """Return the parts of a header that locate and order a tape's files."""
    return header.name, {key: value for key, value in header.data.items() if key != "title"}
