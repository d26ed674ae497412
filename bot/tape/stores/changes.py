"""Decide changes of a tape, whatever stores it: ids and times, versions, forks, tombstones. Pure."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bot.core.clock import Clock, format_time
from bot.core.errors import InvalidEntry, TapeNotFound, VersionConflict
from bot.core.i18n import _
from bot.tape.codec import encode_entries
from bot.tape.entries import TapeEntry
from bot.tape.store import HEADER_EVENT, Parent, header_entry


def stamp(entries: Sequence[TapeEntry], clock: Clock, version: int = 0) -> list[TapeEntry]:
    """Return entries with the ids after a version, and with the present time if they have none."""
    now = format_time(clock.now())
    return [
        TapeEntry(version + place, entry.kind, entry.payload, {"ts": now, **entry.meta})
        for place, entry in enumerate(entries, start=1)
    ]


def check_version(tape: str, expect: int | None, actual: int) -> None:
    """Check that a tape has the version that a writer expects, if it expects any.

    Raises:
        VersionConflict: It has another one.
    """
    if expect is not None and expect != actual:
        raise VersionConflict(tape, expected=expect, actual=actual)


def unreadable_text(count: int) -> list[str]:
    """Describe unreadable entries, as ``TapeStore.damage`` does."""
    return [f"{count} of its entries cannot be read"] if count else []


def forked_part(parent: str, copied: Sequence[TapeEntry], first: int | None, last: int) -> Parent:
    """Return the part of a tape that a fork copies.

    Args:
        parent: The tape's name.
        copied: The first of the copied entries.
        first: Id of the entry to copy from; None for the first one.
        last: Id of the last copied entry.

    Raises:
        TapeNotFound: There is no entry to copy from.
    """
    if not copied or first not in (None, copied[0].id):
        wanted = "that can be read" if first is None else first
        raise TapeNotFound(_("tape {parent} has no entry {wanted}", parent=parent, wanted=wanted))
    return Parent(parent, copied[0].id, last)


def fork_header(tape: str, title: str | None, parent: Parent) -> TapeEntry:
    """Return a fork's header: its id is right before the first copy, or 1."""
    return replace(header_entry(tape, title, parent=parent), id=max(1, parent.first - 1))


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


def pending_tombstones(
    tape: str,
    tombstones: Mapping[int, TapeEntry],
    held: Mapping[int, TapeEntry],
    heads: Container[int],
) -> list[TapeEntry]:
    """Return the tombstones that a tape's entries do not equal yet.

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
    # Encoded, since True equals 1.
    return [
        new
        for number, new in tombstones.items()
        if encode_entries([held[number]]) != encode_entries([new])
    ]


def _fixed(header: TapeEntry) -> tuple[str | None, dict[str, Any]]:
    """Return the parts of a header that locate and order a tape's files."""
    return header.name, {key: value for key, value in header.data.items() if key != "title"}
