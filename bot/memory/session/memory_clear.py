"""Clear a session's working sets and its scope's shared values and beliefs.

Rule 1: shared values and beliefs end by new versions; the session's working sets are emptied.
Rule 2: nothing is erased: older versions stay on the tapes.
Rule 3: problems, their messages, and the workspace stay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from bot.core.reasons import Reason
from bot.memory.records.compartments import Compartments
from bot.memory.records.proposals import BatchOutcome
from bot.memory.session.bus.shared_reference import current_references
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.scope.scope_memory import Change, ScopeMemory

CLEARED_REASON = Reason("cleared")
"""Reason recorded for beliefs that were retired by clearing."""


@dataclass(frozen=True, slots=True)
class ClearPreview:
    """What clearing memory would end.

    Attributes:
        values: Keys of shared values.
        beliefs: Ids of beliefs.
        notes: Ids of problems with a working set.
    """

    values: tuple[str, ...]
    beliefs: tuple[str, ...]
    notes: tuple[str, ...]

    def __bool__(self) -> bool:
        """Say whether there is anything to clear."""
        return bool(self.values or self.beliefs or self.notes)


def preview_clear(memory: LongTermMemory) -> ClearPreview:
    """Return what clearing memory would end besides facts and daily notes."""
    home, own = memory.home.compartments, memory.fold.compartments
    return ClearPreview(
        tuple(reference.key for reference in current_references(home)),
        tuple(belief.id for belief in home.patterns.values() if belief.status != "retired"),
        tuple(problem for problem, working in own.working_sets.items() if not working.empty),
    )


async def clear_memory(memory: LongTermMemory, key: str, asker: str = "") -> BatchOutcome:
    """End all facts of the session's scope, and clear the memory bus, once per key.

    Raises:
        TapeWriteError: The storage failed; a retry with the same key continues from there.
    """
    outcome = await memory.apply(memory.clear_batch(key, asker))
    await clear_bus(memory, key)
    return outcome


async def clear_bus(memory: LongTermMemory, key: str) -> None:
    """Clear the memory bus, once per key; see ``clear_memory``."""
    now = memory.home.clock.now()
    await _change(memory.home, f"{key}:scope", lambda compartments: _ended(compartments, now))
    own = memory.scopes.home(memory.tape, memory.fold.facts, "")
    await _change(own, f"{key}:working", _emptied)


async def _change(
    scope: ScopeMemory, key: str, ends: Callable[[Compartments], dict[str, Any]]
) -> None:
    def make(_version: int) -> Change[None]:
        data = ends(scope.compartments)
        return Change(None, {**data, "by": "person"} if data else None)

    await scope.change(make, key)


def _ended(compartments: Compartments, now: datetime) -> dict[str, Any]:
    values = [
        replace(
            reference,
            value=None,
            version=1 + max(compartments.versions[reference.key]),
            source="",
            stale=False,
        )
        for reference in current_references(compartments)
    ]
    values = [
        replace(reference, updated_at=now, updated_by="person", entry=0) for reference in values
    ]
    beliefs = [
        replace(belief, status="retired", reason=CLEARED_REASON)
        for belief in compartments.patterns.values()
        if belief.status != "retired"
    ]
    data = {
        "references": [reference.as_json() for reference in values],
        "patterns": [belief.as_json() for belief in beliefs],
    }
    return {name: found for name, found in data.items() if found}


def _emptied(compartments: Compartments) -> dict[str, Any]:
    return {"expired": list(compartments.working_sets)} if compartments.working_sets else {}
