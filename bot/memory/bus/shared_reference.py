"""Shared reference: values by key that every problem of a scope goes by, in versions, with citations.

Rule 1: a version is never changed; to set, to roll back and to take away each make a new one.
Rule 2: a version without a value says that the key was taken away; its older versions stay readable.
Rule 3: whatever a write has a cause for is done once: the same cause again gives the same version.
Rule 4: the store keeps bounds and form; whether something may be believed is the gate's to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from bot.core.clock import Clock, format_time
from bot.core.errors import MemoryRefused
from bot.memory.bus.compartment_records import SharedReference, reference_from_json
from bot.memory.bus.compartments import Compartments
from bot.memory.bus.reference_values import (
    check_key,
    check_no_secret,
    check_value,
    strip_erased,
)
from bot.memory.facts.fact_fold import bus_entry
from bot.memory.forgetting.tombstones import is_erased
from bot.memory.gate.alignment import NORTH_STARS_KEY, PRIORITIES_KEY
from bot.memory.scope_memory import ScopeMemory
from bot.tape.entries import TapeEntry

MAX_REFERENCES = 200
"""Of one scope, those that were taken away not counted."""


class SharedReferenceStore:
    """The shared reference of one scope.

    Args:
        scope: Whose.
        clock: Dates versions.
    """

    def __init__(self, scope: ScopeMemory, clock: Clock) -> None:
        self.scope = scope
        self._clock = clock

    async def get(self, key: str, version: int | None = None) -> SharedReference | None:
        """Return a version.

        Args:
            key: Which value.
            version: From 1; by default the current one.

        Returns:
            None where there is none, or its words were erased, or, of the current one, where the key
            was taken away. A version that was taken away is returned with the value None.
        """
        await self.scope.open()
        held = self.scope.compartments
        current = held.references.get(key)
        if version is None:
            return next((one for one in current_references(held) if one.key == key), None)
        if current is not None and current.version == version:
            return _left(current)
        return await self._recorded(key, version)

    async def set(
        self,
        key: str,
        value: Any,
        source: str,
        *,
        by: str = "person",
        cause: str = "",
        record: dict[str, Any] | None = None,
    ) -> int:
        """Add a version and return its number.

        Args:
            key: 1 to 64 characters on one line.
            value: JSON of at most 4,000 bytes; of ``north_stars`` and ``priorities`` a list of texts.
            source: What it rests on: an entry as ``tape#id``, or who set it.
            by: Who sets it.
            cause: What makes it happen: the same cause again changes nothing. Empty for none.
            record: What else the event says, such as the gate's decision.

        Raises:
            MemoryRefused: A bound was passed, or it looks like a secret that no person asked to keep.
            TapeWriteError: The storage refused; nothing was changed.
        """
        check_key(key)
        value = check_value(key, value)
        if by != "person":
            check_no_secret(key, value)

        def compose(_: int) -> tuple[list[TapeEntry], int]:
            if (done := self._done(key, cause)) is not None:
                return [], done
            made = self._next(key, value, source, by)
            return [self._entry(made, cause, record)], made.version

        return await self.scope.append_change(compose)

    async def list_versions(self, key: str) -> list[int]:
        """Return the numbers of all versions, oldest first; empty where there never was one."""
        await self.scope.open()
        return sorted(self.scope.compartments.versions.get(key, ()))

    async def rollback(self, key: str, to_version: int, *, cause: str = "") -> bool:
        """Add a version with the value of an older one.

        Returns:
            False, and nothing is changed, where that version is not there, has no value (any more), or
            is the current one.

        Raises:
            MemoryRefused: It is the value of a key that was taken away, and there are too many others.
            TapeWriteError: The storage refused; nothing was changed.
        """
        wanted = await self.get(key, to_version)

        def compose(_: int) -> tuple[list[TapeEntry], bool]:
            if self._done(key, cause) is not None:
                return [], True
            current = self.scope.compartments.references.get(key)
            if wanted is None or wanted.value is None or current is None:
                return [], False
            if current.version == to_version:
                return [], False
            made = self._next(key, wanted.value, wanted.source, "rollback")
            return [self._entry(made, cause, {"restores": to_version})], True

        return await self.scope.append_change(compose)

    async def remove(self, key: str, cause: str = "") -> bool:
        """Take a value away, by a version that has none; False where there is no such value.

        Raises:
            TapeWriteError: The storage refused; nothing was changed.
        """

        def compose(_: int) -> tuple[list[TapeEntry], bool]:
            if self._done(key, cause) is not None:
                return [], True
            if all(one.key != key for one in current_references(self.scope.compartments)):
                return [], False
            return [self._entry(self._next(key, None, "", "person"), cause)], True

        return await self.scope.append_change(compose)

    async def cite(self, key: str) -> str:
        """Return a citation of the current version; empty where there is none.

        For example ``[deadline v3, set 2026-11-22 by you, telegram:1#12]``. The day is in UTC. Whose words a value of the workspace rests on is not for everybody: there the
        entry is left out.
        """
        found = await self.get(key)
        return "" if found is None else citation(found, self.scope)

    async def keys(self) -> list[str]:
        """Return the keys that have a value: north stars and priorities first, then by name."""
        await self.scope.open()
        return [one.key for one in current_references(self.scope.compartments)]

    def _done(self, key: str, cause: str) -> int | None:
        """Return the version that a cause made already."""
        entry = self.scope.fold.decided_keys.get(cause) if cause else None
        if entry is None:
            return None
        versions = self.scope.compartments.versions.get(key, {})
        return next((version for version, at in versions.items() if at == entry), None)

    def _next(self, key: str, value: Any, source: str, by: str) -> SharedReference:
        now, held = self._clock.now(), self.scope.compartments
        before = held.references.get(key)
        if value is not None and (before is None or before.value is None):
            _check_room(held)
        version = 1 + max(held.versions.get(key, ()), default=0)
        created = before.created_at if before is not None else now
        return SharedReference(key, value, version, source, created, now, by)

    def _entry(
        self, made: SharedReference, cause: str, record: dict[str, Any] | None = None
    ) -> TapeEntry:
        data = {**(record or {}), "references": [made.as_json()], "by": made.updated_by}
        return bus_entry(self.scope.fold, {**data, "key": cause} if cause else data)

    async def _recorded(self, key: str, version: int) -> SharedReference | None:
        """Return an older version from the entry that recorded it."""
        at = self.scope.compartments.versions.get(key, {}).get(version)
        found = await self.scope.tape.read_entries(at, at) if at else []
        if not found or is_erased(found[0]):
            return None
        kept = found[0].data.get("references")
        for record in kept if isinstance(kept, list) else []:
            reference = reference_from_json(record, found[0].id)
            if reference is not None and (reference.key, reference.version) == (key, version):
                return _left(reference)
        return None


def _check_room(held: Compartments) -> None:
    if len(current_references(held)) >= MAX_REFERENCES:
        raise MemoryRefused(
            f"there are {MAX_REFERENCES} shared values already: `/reference remove KEY` makes room"
        )


def current_references(compartments: Compartments) -> list[SharedReference]:
    """Return the current version of each value, north stars and priorities first, then by key."""
    known = filter(None, map(_left, compartments.references.values()))
    return sort_references(one for one in known if one.value is not None)


def sort_references(references: Iterable[SharedReference]) -> list[SharedReference]:
    """Return references as they are listed: north stars and priorities first, then by key."""
    return sorted(
        references, key=lambda one: (one.key != NORTH_STARS_KEY, one.key != PRIORITIES_KEY, one.key)
    )


def _left(reference: SharedReference) -> SharedReference | None:
    """Return a version with what is left of its value; None where that was erased."""
    left = strip_erased(reference.value)
    if left is reference.value:
        return reference
    return replace(reference, value=left) if left is not None else None


def citation(reference: SharedReference, scope: ScopeMemory) -> str:
    """Return a citation of a version of a scope; see ``SharedReferenceStore.cite``."""
    did = "rolled back" if reference.updated_by == "rollback" else "set"
    if reference.value is None:
        did = "removed"
    by = {"person": _WHO[scope.kind], "rollback": "", "assistant": "the assistant"}.get(
        reference.updated_by, reference.updated_by
    )
    parts = [f"{reference.key} v{reference.version}"]
    parts.append(f"{did} {format_time(reference.updated_at)[:10]}{f' by {by}' if by else ''}")
    parts += ["out of date"] if reference.stale else []
    parts += [reference.source] if reference.source and scope.kind != "workspace" else []
    return f"[{', '.join(parts)}]"


_WHO = {"person": "you", "session": "a person", "workspace": "an owner"}
