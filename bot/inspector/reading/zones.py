"""Find the versions of a conversation's memory zone, read them, and tell what caused each.

Rule 1: versions are found by the anchors that open and seal them; only the zones that are returned
    are read.
Rule 2: versions count as in the tape's fold: sealed, and not lower than an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import anyio.to_thread
from pydantic import Field

from bot.core.errors import HttpError
from bot.core.i18n import N_, _
from bot.inspector.dependencies import WebContext
from bot.inspector.reading import ReadModel
from bot.inspector.reading.diffs import ZonePartDiff, zone_part_diffs
from bot.memory.records.conversation_entries import TURN_END
from bot.memory.records.event_names import (
    COMMAND,
    HISTORY_EVENT,
)
from bot.memory.session.state.session_fold import SCOPE_EVENT
from bot.memory.session.state.zone_snapshot import (
    MemorySnapshot,
    ZoneFold,
)
from bot.memory.session.state.zone_versions import MEMORY_UNDONE_EVENT
from bot.tape.entries import MEMORY_CONSOLIDATED, MEMORY_OPEN, MEMORY_SEAL, TapeEntry
from bot.tape.store import Anchor, TapeStore

_BEFORE, _BEHIND = 6, 3
"""Entries before and after a zone that tell its cause: of the same append, or right before it."""

_SPAN = 500
"""The most entries between an open and its seal; a zone is one append and has far fewer."""

Cause = Literal[
    "first", "consolidation", "undo", "clear", "command", "said", "tool", "moved", "update"
]
CAUSES: dict[Cause, str] = {
    "first": N_("the first version"),
    "consolidation": N_("a consolidation"),
    "undo": N_("an undo"),
    "clear": N_("memory was cleared"),
    "command": N_("a command"),
    "said": N_("a message"),
    "tool": N_("the assistant, by a tool"),
    "moved": N_("it belongs to another person's memory from now on"),
    "update": N_("updated to the current facts"),
}


class ZoneLocation(ReadModel):
    """Where a version of a memory zone is on its tape."""

    version: int
    opened: int = Field(description="Id of the anchor that opens it.")
    sealed: int = Field(description="Id of the anchor that seals it.")
    at: str = Field(description="When it was written, ISO 8601 in UTC.")


class ZoneView(ZoneLocation):
    """A version of a memory zone."""

    cause: Cause = Field(description="Cause of the change.")
    because: str = Field(description="The cause in words, with the command if there is one.")
    restores: int | None = Field(description="The version that it restored, if recorded.")
    cleared: bool = Field(description="Whether a person cleared memory.")
    facts: int = Field(description="Lines of long-term memory.")
    notes: int = Field(description="Days that have notes.")
    size: int = Field(description="Total characters.")


class ZonePage(ReadModel):
    """A page of a zone's versions, newest first."""

    tape: str
    total: int = Field(description="Number of versions.")
    newest: int = Field(description="The current version; 0 if there is none.")
    versions: list[ZoneView]
    before: int | None = Field(
        description="Value of `before` for the next page; null if there is none."
    )


class ZoneDiff(ReadModel):
    """The difference between two versions of a zone."""

    tape: str
    old: int = Field(
        description="The version on the old side; 0 is the empty one before the first."
    )
    new: int = Field(description="The version on the new side.")
    parts: list[ZonePartDiff] = Field(
        description="By part: long-term memory, notes by day, shared, reference; in lines and words."
    )


async def list_zones(store: TapeStore, tape: str) -> list[ZoneLocation]:
    """Return the locations of a tape's versions, newest first.

    Raises:
        TapeNotFound: There is no such tape.
    """
    # For a missing tape, a store may return no anchors instead of raising.
    await store.version(tape)
    return locate_zones(await store.list_anchors(tape))


def locate_zones(anchors: Iterable[Anchor]) -> list[ZoneLocation]:
    """Return the locations of versions, newest first, from anchors, oldest first. Pure."""
    found: dict[int, ZoneLocation] = {}
    newest = 1
    opened: Anchor | None = None
    for anchor in anchors:
        if anchor.name == MEMORY_OPEN:
            opened = anchor
        elif anchor.name == MEMORY_SEAL and opened is not None:
            version = _version(anchor)
            if version == _version(opened) and newest <= version and anchor.at - opened.at <= _SPAN:
                newest = version
                # Of equal versions, the last one counts.
                found.pop(version, None)
                found[version] = ZoneLocation(
                    version=version, opened=opened.at, sealed=anchor.at, at=anchor.ts
                )
            opened = None
    return list(found.values())[::-1]


def _version(anchor: Anchor) -> int:
    version = anchor.state.get("version")
    return version if type(version) is int else 0


async def read_zone(store: TapeStore, tape: str, zone_location: ZoneLocation) -> MemorySnapshot:
    """Return the content of a version."""
    return _folded(await store.read(tape, zone_location.opened, zone_location.sealed)).snapshot


async def zone_view(store: TapeStore, tape: str, zone_location: ZoneLocation) -> ZoneView:
    """Return a version with its cause."""
    first, last = max(1, zone_location.opened - _BEFORE), zone_location.sealed + _BEHIND
    around = await store.read(tape, first, last)
    fold = _folded(
        entry for entry in around if zone_location.opened <= entry.id <= zone_location.sealed
    )
    before = [entry for entry in around if entry.id < zone_location.opened]
    behind = [entry for entry in around if entry.id > zone_location.sealed]
    cleared, zone = fold.cleared != 0, fold.snapshot
    cause, because = _cause(zone_location.version, before, behind, cleared=cleared)
    parts = (
        zone.long_term,
        zone.shared,
        zone.reference,
        *(daily_note.content for daily_note in zone.dailies),
    )
    return ZoneView(
        **zone_location.model_dump(),
        cause=cause,
        because=because,
        restores=_restored(before),
        cleared=cleared,
        facts=sum(bool(line.strip()) for line in zone.long_term.splitlines()),
        notes=len(zone.dailies),
        size=sum(map(len, parts)),
    )


async def zone_page(
    web: WebContext,
    tape: str,
    before: int | None,
    limit: int,
    known: list[ZoneLocation] | None = None,
) -> ZonePage:
    """Return a page of versions, newest first.

    Raises:
        TapeNotFound: There is no such tape.
    """
    zone_locations = known if known is not None else await list_zones(web.store, tape)
    fitting = [
        zone_location
        for zone_location in zone_locations
        if before is None or zone_location.version < before
    ]
    shown = fitting[:limit]
    return ZonePage(
        tape=tape,
        total=len(zone_locations),
        newest=zone_locations[0].version if zone_locations else 0,
        versions=[await zone_view(web.store, tape, zone_location) for zone_location in shown],
        before=shown[-1].version if len(fitting) > limit else None,
    )


async def zone_diff(
    web: WebContext, tape: str, old: int, new: int, zone_locations: list[ZoneLocation] | None = None
) -> ZoneDiff:
    """Return the difference of two versions, by part; version 0 is empty.

    Raises:
        TapeNotFound: There is no such tape.
        HttpError: 404 if there is no such version.
    """
    listed = zone_locations if zone_locations is not None else await list_zones(web.store, tape)
    found = {zone_location.version: zone_location for zone_location in listed}

    async def zone(version: int) -> MemorySnapshot:
        if version == 0:
            return MemorySnapshot()
        if version not in found:
            detail = _(
                "{tape} has no version {version} of its memory zone; /zones lists them",
                tape=tape,
                version=version,
            )
            raise HttpError(404, "not_found", detail)
        return await read_zone(web.store, tape, found[version])

    memory_snapshot, other = await zone(old), await zone(new)
    parts = await anyio.to_thread.run_sync(zone_part_diffs, memory_snapshot, other)
    return ZoneDiff(tape=tape, old=old, new=new, parts=parts)


def _folded(entries: Iterable[TapeEntry]) -> ZoneFold:
    fold = ZoneFold()
    for entry in entries:
        fold.apply(entry)
    return fold


def _restored(before: list[TapeEntry]) -> int | None:
    last = before[-1] if before else None
    to = last.data.get("to") if last is not None and last.name == MEMORY_UNDONE_EVENT else None
    return to if type(to) is int else None


def _cause(
    version: int, before: list[TapeEntry], behind: list[TapeEntry], *, cleared: bool
) -> tuple[Cause, str]:
    """Return what caused a zone, from the entries of its append right before and after it."""
    last = before[-1] if before else None
    name = last.name if last is not None else None
    cause: Cause = "update"
    if name == MEMORY_UNDONE_EVENT:
        cause = "undo"
    elif cleared:
        cause = "clear"
    elif name == HISTORY_EVENT or (behind and behind[0].name == MEMORY_CONSOLIDATED):
        cause = "consolidation"
    elif name == SCOPE_EVENT:
        cause = "moved"
    elif behind and behind[0].kind == "tool_result":
        return "tool", _(
            "{cause}: {detail}", cause=_(CAUSES["tool"]), detail=behind[0].payload.get("name")
        )
    elif _ends_command(behind):
        cause = "command"
    elif version == 1:
        cause = "first"
    elif _was_heard(before):
        cause = "said"
    command = _command(before) if _ends_command(behind) else ""
    told = _(CAUSES[cause])
    return cause, _("{cause}: {detail}", cause=told, detail=command) if command else told


def _was_heard(before: list[TapeEntry]) -> bool:
    """Return whether a user's message precedes the zone within the turn in progress."""
    for entry in reversed(before):
        if entry.name == TURN_END:
            return False
        if entry.kind == "message":
            return entry.payload.get("role") == "user"
    return False


def _ends_command(behind: list[TapeEntry]) -> bool:
    return any(entry.name == TURN_END and entry.data.get("status") == "command" for entry in behind)


def _command(before: list[TapeEntry]) -> str:
    """Return the last command among these entries."""
    entries = [entry for entry in before if entry.kind == "event" and entry.name == COMMAND]
    if not entries:
        return ""
    name, arguments = entries[-1].data.get("name"), entries[-1].data.get("arguments")
    told = f"/{name} {arguments if isinstance(arguments, str) else ''}".strip()
    return told if len(told) <= 120 else f"{told[:120].rstrip()}…"
