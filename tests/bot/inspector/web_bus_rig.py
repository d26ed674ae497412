"""The memory bus of a conversation, as its own process has it: to write what no command writes."""

from __future__ import annotations

from web_rig import Rig

from bot.bus import Sender
from bot.memory.records.compartment_records import SynthesizedPattern
from bot.memory.records.episodes import episode_id
from bot.memory.session.bus.memory_bus import MemoryBus
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.zone import MemoryZone
from bot.tape.service import TapeService

DAY = 86_400
TAPE = "telegram:42"
EVE = Sender("9", "Eve")


async def open_bus(rig: Rig, tape: str = TAPE) -> MemoryBus:
    """Open a conversation's memory bus beside its worker; nobody may talk there afterwards."""
    service, clock = TapeService(rig.store, tape), rig.host.clock
    fold = await load_fold(service, max_messages=40, max_tokens=4_000)
    service.observe(fold.apply)
    zone = MemoryZone(service, retention_days=30, fold=fold.zone, clock=clock)
    memory = LongTermMemory(service, fold, zone, ScopeRegistry(rig.store, clock))
    await memory.open()
    return memory.bus


async def said(rig: Rig, text: str, tape: str = TAPE) -> str:
    """Return the id of the entry that holds a person's message, as ``tape#id``."""
    for entry in await rig.store.read(tape, 1, await rig.store.version(tape)):
        if entry.kind == "message" and entry.payload.get("content") == text:
            return episode_id(tape, entry.id)
    raise AssertionError(f"nobody said {text!r}")


async def believes(rig: Rig, bus: MemoryBus, text: str, *evidence: str, sure: float = 0.8) -> str:
    """Add a belief past the gate; return its name."""
    now = rig.host.clock.now()
    made = SynthesizedPattern("", "conclusion", {"text": text}, [*evidence], sure, now, now)
    record = {"decision": {"approved": True, "reason": "it is grounded"}, "by": "assistant"}
    return await bus.semantic.add_pattern(made, record={**record, "signals": {"source_quality": 1}})
