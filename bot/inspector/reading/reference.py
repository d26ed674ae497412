"""Read shared reference: the current values by key, and the versions of each.

Rule 1: versions are read from the entries that recorded them, so erased ones are gone here, too.
Rule 2: a list reads no entries; a page of versions reads one or two per version.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import anyio.to_thread
from pydantic import Field

from bot.bus import WebUser
from bot.core.clock import format_time
from bot.core.errors import TapeNotFound
from bot.core.i18n import _
from bot.core.reasons import reason_text
from bot.inspector.dependencies import WebContext
from bot.inspector.reading import ReadModel
from bot.inspector.reading.beliefs import SupportingEntry, supporting_entry
from bot.inspector.reading.decisions import Signal, signals
from bot.inspector.reading.diffs import DiffLine, diff_lines
from bot.inspector.reading.facts import load_memory
from bot.memory.records.compartment_records import SharedReference
from bot.memory.session.bus.shared_reference import (
    SharedReferenceStore,
    citation,
    current_references,
)
from bot.memory.session.scope.scope_memory import ScopeMemory


class ReferenceValue(ReadModel):
    """The current value of a key."""

    key: str
    value: Any = Field(description="Any JSON.")
    told: str = Field(description="The value as text, or as JSON on several lines.")
    given: str = Field(description="The value as `/reference set` takes it.")
    version: int
    by: str = Field(description="`person`, `assistant`, `consolidation` or `rollback`.")
    created: str = Field(description="When its first version was set, ISO 8601 in UTC.")
    updated: str = Field(description="When this version was set.")
    source: str = Field(description="Its source, an entry as `tape#id`; may be empty.")
    stale: bool = Field(description="Whether its source was superseded or erased.")
    citation: str = Field(description="As the model cites it.")
    entry: int = Field(description="Id of the entry of the scope's tape that records it.")
    overridden: bool = Field(description="Whether another value of this key overrides it here.")


class ReferenceList(ReadModel):
    """The reference values in effect for a conversation or scope."""

    tape: str
    scope: str = Field(description="The tape that stores them.")
    session: str = Field(
        description="The conversation in which commands change them; may be empty."
    )
    values: list[ReferenceValue] = Field(
        description="North stars and priorities first, then by key."
    )
    everybodys: list[ReferenceValue] = Field(
        description="Shared values; they apply if the scope has no value of the same key."
    )
    taken_away: list[str] = Field(description="Keys that had a value; their versions still exist.")


class ReferenceVersion(ReadModel):
    """One version of a value."""

    version: int
    state: Literal["there", "removed", "erased"] = Field(
        description="`removed`: this version removed the value; `erased`: its text was erased."
    )
    current: bool
    value: Any = Field(description="Null if it does not exist.")
    told: str = Field(description="The value as text.")
    at: str = Field(description="Time, ISO 8601 in UTC; empty if it no longer exists.")
    by: str = Field(description="`person`, `assistant`, `consolidation` or `rollback`.")
    restores: int | None = Field(description="For a rollback: the restored version.")
    citation: str
    rests: SupportingEntry | None = Field(description="Its source.")
    entry: int = Field(description="Id of the entry of the scope's tape that records it.")
    reason: str = Field(description="The write gate's reason; empty if it was not asked.")
    signals: list[Signal] = Field(description="The gate's signals.")
    changes: list[DiffLine] = Field(description="Changed lines since the previous version.")


class ReferenceVersionList(ReadModel):
    """Versions of a value, newest first."""

    key: str
    scope: str
    session: str
    count: int
    versions: list[ReferenceVersion]
    before: int | None = Field(
        description="Value of `before` for older versions; null if there are none."
    )


async def reference_in(web: WebContext, visitor: WebUser, tape: str) -> ReferenceList:
    """Return the reference values of a conversation's scope, or of a scope, and the workspace's.

    Raises:
        TapeNotFound: There is no such tape.
    """
    memory = await load_memory(web, visitor, tape)
    scope = memory.scope
    own = current_references(scope.compartments)
    keys = {reference.key for reference in own}
    workspace = web.scopes.workspace()
    shared = [] if memory.is_workspace else current_references(workspace.compartments)
    return ReferenceList(
        tape=tape,
        scope=scope.name,
        session=memory.session,
        values=[_value(reference, scope) for reference in own],
        everybodys=[
            _value(reference, workspace, overridden=reference.key in keys) for reference in shared
        ],
        taken_away=sorted(
            key
            for key, reference in scope.compartments.references.items()
            if reference.value is None and key not in keys
        ),
    )


async def versions_of(
    web: WebContext, visitor: WebUser, tape: str, key: str, *, before: int | None, limit: int
) -> ReferenceVersionList:
    """Return the versions of a value, newest first, each with its changes.

    Raises:
        TapeNotFound: There is no such tape, or no such key.
    """
    memory = await load_memory(web, visitor, tape)
    scope = memory.scope
    store = SharedReferenceStore(scope, web.agent.clock)
    numbers = await store.list_versions(key)
    if not numbers:
        scope = web.scopes.workspace()
        store = SharedReferenceStore(scope, web.agent.clock)
        numbers = await store.list_versions(key)
    if not numbers:
        raise TapeNotFound(
            _("there has never been a value {key} in {tape}", key=repr(key[:80]), tape=tape)
        )
    wanted = [number for number in numbers if before is None or number < before][-limit - 1 :]
    # One version more than the page, to compare its oldest one with.
    found = [await store.get(key, number) for number in wanted]
    told = ["" if reference is None else as_text(reference.value) for reference in found]
    first = len(wanted) > limit
    reference_versions = [
        await _version(web, scope, (key, number), found[at], (told[at], told[at - 1] if at else ""))
        for at, number in enumerate(wanted)
        if at >= first
    ]
    current = scope.compartments.references[key].version
    return ReferenceVersionList(
        key=key,
        scope=scope.name,
        session=memory.session if scope.name == memory.scope_tape.name else "",
        count=len(numbers),
        versions=[
            reference_version.model_copy(update={"current": reference_version.version == current})
            for reference_version in reversed(reference_versions)
        ],
        before=wanted[first] if first and wanted else None,
    )


def as_text(value: Any) -> str:
    """Return a value as readable text on several lines; empty for None."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False, indent=2)


def _given(key: str, value: Any) -> str:
    """Return a value as the command ``/reference set`` takes it."""
    if isinstance(value, list) and key in ("north_stars", "priorities"):
        return "; ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value(
    reference: SharedReference, scope: ScopeMemory, *, overridden: bool = False
) -> ReferenceValue:
    return ReferenceValue(
        key=reference.key,
        value=reference.value,
        told=as_text(reference.value),
        given=_given(reference.key, reference.value),
        version=reference.version,
        by=reference.updated_by,
        created=format_time(reference.created_at),
        updated=format_time(reference.updated_at),
        source=reference.source,
        stale=reference.stale,
        citation=citation(reference, scope),
        entry=reference.entry,
        overridden=overridden,
    )


async def _version(
    web: WebContext,
    scope: ScopeMemory,
    place: tuple[str, int],
    reference: SharedReference | None,
    told: tuple[str, str],
) -> ReferenceVersion:
    key, number = place
    at = scope.compartments.versions.get(key, {}).get(number, 0)
    read = await scope.tape.read_entries(at, at) if at else []
    data = read[0].data if read else {}
    # Diffing long values that are very similar takes a while.
    changes = (
        await anyio.to_thread.run_sync(diff_lines, told[1], told[0])
        if reference is not None
        else []
    )
    decision, went_by, restores = (data.get(n) for n in ("decision", "signals", "restores"))
    return ReferenceVersion(
        version=number,
        state="erased" if reference is None else "removed" if reference.value is None else "there",
        current=False,
        value=reference.value if reference is not None else None,
        told=told[0],
        at=format_time(reference.updated_at) if reference is not None else "",
        by=reference.updated_by if reference is not None else "",
        restores=restores if type(restores) is int else None,
        citation=citation(reference, scope) if reference is not None else "",
        rests=await supporting_entry(web.store, reference.source)
        if reference is not None and reference.source
        else None,
        entry=at,
        reason=reason_text(decision.get("reason")) if isinstance(decision, dict) else "",
        signals=signals(went_by) if isinstance(went_by, dict) else [],
        changes=changes,
    )
