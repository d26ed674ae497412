"""What a consolidation writes, and when it writes nothing."""

from __future__ import annotations

from bot.consolidation.policy import Range
from bot.consolidation.worker import Consolidation, record
from bot.llm.base import Usage
from bot.memory.facts.citing import cite
from bot.memory.facts.fact import Evidence
from bot.memory.facts.proposals import Proposal
from bot.memory.load import load_fold
from bot.memory.longterm import LongTermMemory
from bot.memory.scopes import Scopes
from bot.memory.zone import MemoryZone
from bot.tape.entries import message
from bot.tape.service import TapeService
from bot.tape.stores.memory import MemoryTapeStore
from bot.testing.manual_clock import ManualClock


async def test_a_result_for_a_range_already_consolidated_is_dropped():
    """A late one writes nothing: neither its memory, nor its history, nor a cursor of its own."""
    clock, store = ManualClock(), MemoryTapeStore()
    tape = TapeService(store, "fake:1")
    await tape.ensure_bootstrap_anchor()
    fold = await load_fold(tape, max_messages=100, max_tokens=10_000)
    tape.observe(fold.apply)
    zone = MemoryZone(tape, fold=fold.zone, clock=clock)
    await zone.ensure()
    memory = LongTermMemory(tape, fold, zone, Scopes(store, clock))
    await memory.open()
    said = await tape.append(message("user", "I count early"))
    early = _result(Range(1, await tape.version()), cite(tape.name, said), "Counts early.")
    await tape.append(message("user", "second"))
    late = _result(Range(1, await tape.version()), cite(tape.name, said), "Is late.")
    assert await record(memory, early)
    before = await tape.version(), fold.window.cursor
    assert not await record(memory, late)
    assert (await tape.version(), fold.window.cursor) == before
    assert zone.read().long_term == "- Counts early."
    assert fold.window.unconsolidated == 1


def _result(covered: Range, evidence: Evidence, text: str) -> Consolidation:
    return Consolidation(
        range=covered,
        history="[2026-02-10 10:00] Talk.",
        proposals=(Proposal("add", text, evidence=(evidence,)),),
        messages=1,
        tokens=8,
        since="2026-02-10 10:00",
        until="2026-02-10 10:00",
        usage=Usage(),
        cleared=0,
        facts="fake:1",
    )
