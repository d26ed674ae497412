"""Shared reference: versioned values by key for a scope, with citations and prompt text.

Rule 1: a version never changes; setting, rolling back and removing each make a new one.
Rule 2: a version without a value means that the key was removed; older versions stay readable.
Rule 3: a write with a cause happens once; the same cause again returns the same version.
Rule 4: the store checks size and form; the gate decides what may be believed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from bot.core.clock import Clock, format_time
from bot.core.errors import MemoryRefused
from bot.core.i18n import N_, _
from bot.memory.gate.reference_values import (
    check_key,
    check_no_secret_value,
    check_value,
    strip_erased,
)
from bot.memory.records.compartment_records import (
    NORTH_STARS_KEY,
    PRIORITIES_KEY,
    REFERENCES,
    SharedReference,
)
from bot.memory.records.compartment_text import WORKSPACE_MARK
from bot.memory.records.compartments import Compartments
from bot.memory.records.tombstones import is_erased
from bot.memory.session.scope.scope_memory import Change, ScopeMemory

MAX_REFERENCES = 200
"""Limit on the values of one scope, not counting removed ones."""


class SharedReferenceStore:
    """Read and change the shared reference of one scope.

    Args:
        scope: The scope.
        clock: The current time.
    """

    def __init__(self, scope: ScopeMemory, clock: Clock) -> None:
        self.scope = scope
        self._clock = clock

    async def get(self, key: str, version: int | None = None) -> SharedReference | None:
        """Return the current version of a value, or a numbered one; None if there is none.

        Words that were erased are no part of it. Of a removed key there is no current version; the
        numbered one that removed it has the value None.
        """
        await self.scope.open()
        current = self.scope.compartments.references.get(key)
        if version is None or (current is not None and current.version == version):
            found = _left(current) if current is not None else None
            return found if version is not None or (found and found.value is not None) else None
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
            value: JSON of at most 4,000 bytes; a list of texts for ``north_stars`` and
                ``priorities``.
            source: The entry it rests on, as ``tape#id``, or who set it.
            by: Author of the version.
            cause: Key of the cause: a repetition changes nothing. Empty for none.
            record: Further data for the event, such as the gate's decision.

        Raises:
            MemoryRefused: Key or value is invalid, or looks like a secret and no person asked.
            TapeWriteError: The storage failed; nothing was changed.
        """
        check_key(key)
        value = check_value(key, value)
        if by != "person":
            check_no_secret_value(key, value)

        def make(_: int) -> Change[int]:
            return self._version(key, value, source, by, record)

        done = await self.scope.change(make, cause)
        return done or int((await self.scope.changed_by(cause, "references")).get("version", 0))

    async def list_versions(self, key: str) -> list[int]:
        """Return all version numbers, oldest first; empty if there never was one."""
        await self.scope.open()
        return sorted(self.scope.compartments.versions.get(key, ()))

    async def rollback(self, key: str, to_version: int, *, cause: str = "") -> bool:
        """Add a version with the value of an older one.

        Returns:
            False, with nothing changed, if that version does not exist, has no value, or is the
            current one.

        Raises:
            MemoryRefused: It would bring back a removed key, and there are too many values.
        """
        wanted = await self.get(key, to_version)

        def make(_: int) -> Change[int]:
            current = self.scope.compartments.references.get(key)
            if wanted is None or wanted.value is None or current is None:
                return Change(0)
            if current.version == to_version:
                return Change(0)
            restores = {"restores": to_version}
            return self._version(key, wanted.value, wanted.source, "rollback", restores)

        return await self.scope.change(make, cause) != 0

    async def remove(self, key: str, cause: str = "") -> bool:
        """Remove a value by adding a version without one; return False if there is none."""

        def make(_: int) -> Change[int]:
            known = any(one.key == key for one in current_references(self.scope.compartments))
            return self._version(key, None, "", "person") if known else Change(0)

        return await self.scope.change(make, cause) != 0

    async def cite(self, key: str) -> str:
        """Return a citation of the current version; empty if there is none.

        For example ``[deadline v3, set 2026-11-22 by you, telegram:1#12]``. The day is in UTC.
        Whose words a value of the workspace rests on is not for everybody: there the entry is left
        out.
        """
        reference = await self.get(key)
        return "" if reference is None else citation(reference, self.scope)

    async def keys(self) -> list[str]:
        """Return the keys that have a value: north stars and priorities first, then by name."""
        await self.scope.open()
        return [reference.key for reference in current_references(self.scope.compartments)]

    def _version(
        self, key: str, value: Any, source: str, by: str, record: dict[str, Any] | None = None
    ) -> Change[int]:
        """Return the change that adds a version."""
        now, compartments = self._clock.now(), self.scope.compartments
        before = compartments.references.get(key)
        if value is not None and (before is None or before.value is None):
            _check_room(compartments)
        version = 1 + max(compartments.versions.get(key, ()), default=0)
        created = before.created_at if before is not None else now
        made = SharedReference(key, value, version, source, created, now, by)
        return Change(version, {**(record or {}), "references": [made.as_json()], "by": by})

    async def _recorded(self, key: str, version: int) -> SharedReference | None:
        """Return an older version from the entry that recorded it."""
        at = self.scope.compartments.versions.get(key, {}).get(version)
        entries = await self.scope.tape.read_entries(at, at) if at else []
        if not entries or is_erased(entries[0]):
            return None
        recorded = entries[0].data.get("references")
        for reference in REFERENCES.read_list(recorded, entry=entries[0].id):
            if (reference.key, reference.version) == (key, version):
                return _left(reference)
        return None


def _check_room(compartments: Compartments) -> None:
    if len(current_references(compartments)) >= MAX_REFERENCES:
        raise MemoryRefused(
            _(
                "there are {limit} shared values already: `/reference remove KEY` makes room",
                limit=MAX_REFERENCES,
            )
        )


def current_references(compartments: Compartments) -> list[SharedReference]:
    """Return the current versions, north stars and priorities first, then by key."""
    known = filter(None, map(_left, compartments.references.values()))
    return sort_references(reference for reference in known if reference.value is not None)


def sort_references(references: Iterable[SharedReference]) -> list[SharedReference]:
    """Sort references for display: north stars and priorities first, then by key."""
    return sorted(
        references,
        key=lambda one: (one.key != NORTH_STARS_KEY, one.key != PRIORITIES_KEY, one.key),
    )


def _left(reference: SharedReference) -> SharedReference | None:
    """Return a version without erased parts; None if all of it was erased."""
    left = strip_erased(reference.value)
    if left is reference.value:
        return reference
    return replace(reference, value=left) if left is not None else None


def citation(reference: SharedReference, scope: ScopeMemory) -> str:
    """Return a citation of a version in a scope; see ``SharedReferenceStore.cite``."""
    parts = [f"{reference.key} v{reference.version}", _changed(reference, scope)]
    parts += [_("out of date")] if reference.stale else []
    parts += [reference.source] if reference.source and scope.kind != "workspace" else []
    return f"[{', '.join(parts)}]"


def _changed(reference: SharedReference, scope: ScopeMemory) -> str:
    """Return what made a version, when, and who did it."""
    date, who = format_time(reference.updated_at)[:10], reference.updated_by
    removed = reference.value is None
    if who == "rollback":
        return _("removed {date}", date=date) if removed else _("rolled back {date}", date=date)
    known = _REMOVED if removed else _SET
    told = known.get(scope.kind if who == "person" else who)
    if told is not None:
        return _(told, date=date)
    if removed:
        return _("removed {date} by {who}", date=date, who=who)
    return _("set {date} by {who}", date=date, who=who)


_SET = {
    "person": N_("set {date} by you"),
    "session": N_("set {date} by a person"),
    "workspace": N_("set {date} by an owner"),
    "assistant": N_("set {date} by the assistant"),
}
_REMOVED = {
    "person": N_("removed {date} by you"),
    "session": N_("removed {date} by a person"),
    "workspace": N_("removed {date} by an owner"),
    "assistant": N_("removed {date} by the assistant"),
}
"""Who made a version: the kind of the scope that a person changed, or the assistant."""


def readable_references(home: Compartments, workspace: Compartments) -> list[SharedReference]:
    """Return the values that a session reads: its scope's, and the workspace's for other keys.

    The source of a workspace value is hidden, because it may name a private chat.
    """
    own = current_references(home)
    keys = {reference.key for reference in own}
    others = (
        replace(reference, source=WORKSPACE_MARK)
        for reference in current_references(workspace)
        if reference.key not in keys
    )
    return sort_references([*own, *others])
