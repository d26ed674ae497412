"""The memory bus's success criteria on what it writes: with evidence, decided on, short and locked."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

import anyio
import pytest
from folded import fold_entries
from memory_bus_life import HOSTILE, PERSON, SESSION, WORKSPACE, life

from bot.core.clock import format_time
from bot.core.errors import MemoryRefused, VersionConflict
from bot.memory.records.compartment_records import SynthesizedPattern
from bot.memory.records.compression import (
    decode_episodes,
    decode_patterns,
    decode_references,
    encode_episodes,
    encode_patterns,
    encode_references,
)
from bot.memory.records.fact_fold import BUS_EVENT, FACTS_EVENT
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.session.bus.shared_reference import SharedReferenceStore
from bot.memory.session.bus.working_set import WorkingSetStore
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL_PROBLEM
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore
from bot.testing.manual_clock import ManualClock

T = TypeVar("T")


@pytest.mark.slow
async def test_every_belief_leads_to_entries_that_are_there(tmp_path):
    async with life(tmp_path) as one:
        await one.live()
        memory = await one.memory()
        # Also what ended: it stays on record.
        held = fold_entries(await one.host.tape(PERSON)).compartments.patterns
        patterns = [*await memory.bus.semantic.search(), *held.values()]
        kinds = {pattern.pattern_type for pattern in patterns}
        assert kinds == {"heuristic", "policy", "fact", "summary"}
        for pattern in patterns:
            chain = await memory.bus.get_evidence_chain(pattern.id)
            assert chain, pattern
            assert all(episode.content for episode in chain), pattern
            # On the tape of the talk, whose entries were sealed since.
            assert any(episode.id.startswith(f"{SESSION}#") for episode in chain), pattern


@pytest.mark.parametrize("evidence", [[], ["fake:1#99999"], ["nowhere:1#1"], ["p7"], ["12"]])
async def test_without_evidence_that_holds_nothing_is_believed(tmp_path, evidence):
    async with life(tmp_path) as one:
        await one.say("I sail.")
        bus, now = (await one.memory()).bus, one.clock.now()
        drawn = SynthesizedPattern("", "conclusion", {"text": "Ada sails"}, evidence, 0.9, now, now)
        with pytest.raises(MemoryRefused):
            await bus.semantic.add_pattern(drawn)
        await _refused(bus.add_synthesis(drawn))
        assert await bus.semantic.search() == []


async def _refused(write: Any) -> None:
    """See that a write is refused, by the gate or by the store behind it."""
    with suppress(MemoryRefused):
        assert not await write


@pytest.mark.slow
async def test_every_global_write_has_a_decision_with_its_reason(tmp_path):
    async with life(tmp_path) as one:
        await one.live()
        decided = 0
        for tape in (SESSION, PERSON, WORKSPACE):
            known: list[TapeEntry] = []
            for entry in await one.host.tape(tape):
                if entry.name == FACTS_EVENT:
                    assert all(op["verdict"] and op["reason"] for op in entry.data["ops"]), entry
                    decided += len(entry.data["ops"])
                elif entry.name == BUS_EVENT and (entry.data.keys() & {"references", "patterns"}):
                    decision = entry.data.get("decision")
                    assert decision is None or _is_whole(decision, entry.data), entry
                    # What was not decided on says nothing that was not there before.
                    assert decision is not None or _says_nothing_new(entry, known), entry
                    decided += decision is not None
                known.append(entry)
        assert decided > 15
        refused = [entry.data["content"]["decision"] for entry in await one.host.events("episode")
                   if entry.data["type"] == "decision"]  # fmt: skip
        assert len(refused) == 1
        assert all(told["reason"] and told["target_compartment"] != "shared" for told in refused)
        for tape in (PERSON, WORKSPACE):
            held = fold_entries(await one.host.tape(tape))
            assert "mallory" not in str([held.active(), held.compartments.state()]), HOSTILE
            # What a model concludes is not believed before a judge or a person says yes.
            assert all(one.status != "active" for one in held.compartments.patterns.values())


def _is_whole(decision: dict[str, Any], data: dict[str, Any]) -> bool:
    signals = {"progress_delta", "conflict_level", "source_quality", "alignment_score", "blast_radius"}  # fmt: skip
    target = "shared" if "references" in data else "semantic"
    return (
        decision["approved"] is True
        and decision["target_compartment"] == target
        and bool(decision["reason"])
        and data["signals"].keys() == signals
        and bool(data["by"])
    )


def _says_nothing_new(entry: TapeEntry, known: list[TapeEntry]) -> bool:
    """Whether a change only takes away, brings back, or judges what is there."""
    told = [
        (each["key"], each["value"]) for one in known for each in one.data.get("references", ())
    ]
    believed = [(p["id"], p["content"]) for one in known for p in one.data.get("patterns", ())]
    return all(
        one["value"] is None or (one["key"], one["value"]) in told
        for one in entry.data.get("references", ())
    ) and all((one["id"], one["content"]) in believed for one in entry.data.get("patterns", ()))


@pytest.mark.slow
async def test_what_is_recorded_is_read_for_less_than_35_percent_of_its_json(tmp_path):
    """Of a small life."""
    async with life(tmp_path) as one:
        await one.live()
        memory = await one.memory()
        episodes = await memory.bus.episodic.query(entry_type="turn")
        patterns = await memory.bus.semantic.search()
        references = list(memory.home.compartments.references.values())
    told = {
        "episodes": (episodes, encode_episodes(episodes), decode_episodes),
        "patterns": (patterns, encode_patterns(patterns), decode_patterns),
        "references": (references, encode_references(references), decode_references),
    }
    plain = short = 0
    for name, (records, text, decode) in told.items():
        assert len(records) >= 3, name
        assert decode(text) == records, name
        plain += len(json.dumps([asdict(found) for found in records], default=format_time))
        short += len(text)
    assert short < 0.35 * plain, (short, plain)


async def test_writers_of_one_persons_memory_lose_nothing_and_leave_no_gap(tmp_path):
    clock, store = ManualClock(), FileTapeStore(tmp_path, sync=False)
    # Each as a process of its own would have it: nothing is common to them but the tape.
    scopes = [ScopeMemory(TapeService(store, PERSON), "person", clock) for _ in range(2)]
    made: list[int] = []

    async def write(scope: ScopeMemory, who: int) -> None:
        shared, working = SharedReferenceStore(scope, clock), WorkingSetStore(scope, clock)
        for number in range(15):
            cause = f"{who}/{number}"
            told = Proposal("add", f"Berth {who}{number:02} costs {number} euros")
            set_ = partial(shared.set, "berth", cause, "test", cause=f"set:{cause}")
            made.append(await surely(set_))
            await surely(partial(scope.apply, ProposalBatch(cause, "person", (told,))))
            ask = partial(
                working.add, GENERAL_PROBLEM, "open_questions", cause, cause=f"ask:{cause}"
            )
            await surely(ask)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for who, scope in enumerate(scopes):
                tasks.start_soon(write, scope, who)
    assert sorted(made) == list(range(1, 31))
    fresh = ScopeMemory(TapeService(store, PERSON), "person", clock)
    await fresh.open()
    values = [
        await SharedReferenceStore(fresh, clock).get("berth", number) for number in sorted(made)
    ]
    assert {found.value for found in values} == {f"{w}/{n}" for w in (0, 1) for n in range(15)}
    assert [fact.id for fact in fresh.active()] == list(range(1, 31))
    assert len(fresh.compartments.working_sets[GENERAL_PROBLEM].open_questions) == 30
    entries = await store.read(PERSON)
    assert [entry.id for entry in entries] == list(range(1, len(entries) + 1))
    await store.close()


async def surely(write: Callable[[], Awaitable[T]]) -> T:
    """Ask for a write until it is done: who comes too late several times is told so, and may ask again."""
    while True:
        with suppress(VersionConflict):
            return await write()
