"""The files of an archive that tell of the memory bus, read from the tapes a record at a time."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from datetime import datetime, tzinfo

from bot.core.clock import SystemClock
from bot.memory.bus.patterns import is_shown, ranked
from bot.memory.bus.provenance import entry_of
from bot.memory.bus.shared import SharedReferenceStore, citation, in_order, living
from bot.memory.scope import Kind, ScopeMemory
from bot.tape.service import TapeService
from bot.tape.store import TapeStore
from bot.transfer.bus_files import belief_md, reference_md
from bot.transfer.remembering import Remembering


def reference_json(known: Remembering) -> str:
    """Return ``reference.json``: the values as they are now, for programs."""
    values = [one.as_json() for one in living(known.facts.compartments)]
    head = {"session": known.session, "home": known.home, "references": values}
    return json.dumps(head, indent=1) + "\n"


async def references_pieces(store: TapeStore, known: Remembering) -> AsyncGenerator[bytes, None]:
    """Yield ``references.md``: each value with its versions, newest first."""
    kind: Kind = "session" if known.home == known.session else "person"
    scope = ScopeMemory(TapeService(store, known.home), kind, SystemClock(), known.facts)
    values = SharedReferenceStore(scope, scope.clock)
    for current in in_order(known.facts.compartments.references.values()):
        numbers = sorted(known.facts.compartments.versions[current.key], reverse=True)
        found = [await values.get(current.key, number) for number in numbers]
        kept = [one for one in found if one is not None]
        # Of a key whose words were erased nothing is left that could be told.
        if any(one.value is not None for one in kept):
            yield reference_md((one, citation(one, scope)) for one in kept).encode(
                "utf-8", "backslashreplace"
            )


async def beliefs_pieces(
    store: TapeStore, known: Remembering, moment: datetime, timezone: tzinfo
) -> AsyncGenerator[bytes, None]:
    """Yield ``beliefs.md``: what is believed or stale, the surest first."""
    shown = [one for one in known.facts.compartments.patterns.values() if is_shown(one)]
    for one in ranked(shown, moment):
        entries = {ground: await entry_of(store, ground) for ground in one.evidence_ids}
        told = belief_md(one, known.facts, entries, moment, timezone)
        yield told.encode("utf-8", "backslashreplace")
