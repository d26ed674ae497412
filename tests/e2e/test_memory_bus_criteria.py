"""The success criteria of the memory bus, each as a claim about the whole program."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from memory_bus_life import (
    HOSTILE,
    LOOK,
    PERSON,
    SESSION,
    WORKSPACE,
    Life,
    life,
    record,
)

from bot.core.clock import format_time
from bot.core.errors import MemoryRefused, VersionConflict
from bot.llm.base import ModelRequest
from bot.memory.records.compartment_records import EpisodeEntry, SynthesizedPattern
from bot.memory.records.compression import (
    decode_episodes,
    decode_patterns,
    decode_references,
    encode_episodes,
    encode_patterns,
    encode_references,
)
from bot.memory.records.fact_fold import BUS_EVENT, FACTS_EVENT, fold_entries
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.session.bus.shared_reference import SharedReferenceStore
from bot.memory.session.bus.working_set import WorkingSetStore
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL_PROBLEM
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore
from bot.testing.host import session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply

ROOT = Path(__file__).parents[2]
NOTES = ("must {}", "must-not {}", "assume {}", "ask {}?", "decide {} because {}", "draft {} {}")
T = TypeVar("T")
TALK = "We talked of {} all day."


async def noted(one: Life, problem: str, word: str) -> None:
    """Begin a problem, and note a word for it in every way."""
    await one.say(f"/problem new {problem}")
    for note in NOTES:
        await one.say(f"/problem note {note.replace('{}', word)}")


async def shown(one: Life, text: str, **more: Any) -> str:
    """Say something; return all that the model was shown for it."""
    before = len(one.model.requests)
    await one.say(text, **more)
    return _text(one.model.requests[before:])


def _text(requests: Iterable[ModelRequest]) -> str:
    return "\n".join(str(one.messages) for one in requests if one.purpose == "turn")


# 1. Working sets are strictly isolated per problem_id.


async def test_no_problem_reads_the_working_set_of_another(tmp_path):
    words = {"p1": "zebra", "p2": "yak"}
    async with life(tmp_path) as one:
        await noted(one, "Taxes", words["p1"])
        await noted(one, "Trip", words["p2"])
        await one.say("/problem new Rest")
        await one.say("/problem new Taxes", chat="2")
        for problem, own in {"Rest": set(), "Trip": {"yak"}, "Taxes": {"zebra"}}.items():
            await one.say(f"/problem switch {problem}")
            assert _found(words.values(), await shown(one, LOOK)) == own
        # The same number in another chat is another problem.
        assert _found(words.values(), await shown(one, LOOK, chat="2")) == set()
        sets = (await one.memory()).bus.working_sets
        for problem, word in words.items():
            told = await sets.get(problem)
            assert told is not None
            assert str(told).count(word) == 8
            assert _found(words.values(), str(told)) == {word}
            assert _found(words.values(), await sets.export_summary(problem)) == {word}
        assert await sets.get("p3") is None
        assert await (await one.memory("fake:2")).bus.working_sets.get("p2") is None


async def test_a_working_set_under_another_problems_name_is_not_given(tmp_path):
    async with life(tmp_path) as one:
        await noted(one, "Taxes", "zebra")
        await one.say("/problem new Trip")
        bus = (await one.memory()).bus
        held = (await one.memory()).bus.working_sets._own.compartments.working_sets
        bus.working_sets._own.compartments.working_sets["p2"] = held["p1"]
        with pytest.raises(MemoryRefused, match="is that of p1"):
            await bus.problems.get_working_set("p2")
        with pytest.raises(MemoryRefused, match="no problem"):
            await bus.write_to_working("p9", "open_questions", ["whose?"])


# 2. No cross-problem contamination possible.


async def test_what_was_said_found_and_summed_up_in_a_problem_reaches_no_other(tmp_path):
    words = ("zebra", "yak")
    async with life(tmp_path) as one:
        await one.say("/problem new Taxes")
        await one.say(TALK.format("zebra"))
        await one.say("/problem note must zebra")
        assert "zebra" in await shown(one, LOOK)
        await one.say("/new")
        await one.say(TALK.format("zebra"))
        await one.say("/problem new Trip")
        await one.say(TALK.format("yak"))
        assert _found(words, await shown(one, LOOK)) == {"yak"}
        await one.say("/new")
        assert _found(words, await shown(one, LOOK)) == {"yak"}
        await one.say("/problem switch general")
        assert _found(words, await shown(one, LOOK)) == set()
    # After a restart, too; and what is shared by design is known everywhere.
    async with life(tmp_path, first=100) as one:
        assert _found(words, await shown(one, LOOK)) == set()
        await one.say("/problem switch Taxes")
        await one.say("Remember that I like tea")
        assert _found(words, await shown(one, LOOK)) == {"zebra"}
        await one.say("/problem switch Trip")
        last = await shown(one, LOOK)
        assert _found(words, last) == {"yak"}
        assert "I like tea" in last


def _found(words: Iterable[str], text: str) -> set[str]:
    return {word for word in words if word in text}


# 3. The episodic trace is append-only, never overwritten.


async def test_every_file_of_the_tapes_only_grows_whatever_is_done_but_erasing(tmp_path):
    async with life(tmp_path) as one:
        await one.say("Hello.")
        before = [record(tmp_path)]

        def watch(step: str) -> None:
            now = record(tmp_path)
            assert not lost(before[-1], now), step
            assert now != before[-1], step
            before.append(now)

        await one.live(watch)
        episodic = (await one.memory()).bus.episodic
        old = await episodic.append(_episode(one, "It floats."))
        await episodic.supersede(old, _episode(one, "It sinks."))
        watch("superseding")
        assert (await episodic.get(old)).content == {"text": "It floats."}
        one.clock.advance(86_400)
        await one.say("Good morning.")
        watch("a day")
        await one.say("Tell me of the quokka.")
        watch("talk")
        # Only a person's wish to forget takes words away: what is compared here would show it.
        asked = await one.say("/memory forget quokka")
        before.append(record(tmp_path))
        await one.say(asked.buttons[0].command)
        assert lost(before[-1], record(tmp_path))


def lost(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """Return the names of files of which something is not as it was; a live part may have been sealed."""
    return [
        name
        for name, held in before.items()
        if not any(
            now.startswith(held)
            for other, now in after.items()
            if other == name or other.startswith(f"{name.removesuffix('.jsonl')}.")
        )
    ]


def _episode(one: Life, text: str) -> EpisodeEntry:
    return EpisodeEntry("", one.clock.now(), None, "", "delta", {"text": text})


# 4. All semantic patterns link to evidence.


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


# 5. The write gate evaluates every global write.


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
        assert len(refused) == 2
        assert all(told["reason"] and told["target_compartment"] != "shared" for told in refused)
        for tape in (PERSON, WORKSPACE):
            held = fold_entries(await one.host.tape(tape))
            assert "mallory" not in str([held.active(), held.compartments.state()]), HOSTILE


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


WRITERS = {
    # The facts' only way in is a batch, which is decided on.
    "bot/memory/session/scope/scope_memory.py: ScopeMemory.apply.compose: batch_entry",
    "bot/memory/session/scope/scope_memory.py: ScopeMemory.pause.compose: pause_entry",
    # What was decided to go elsewhere, and why.
    "bot/memory/session/bus/memory_bus.py: MemoryBus._redirect.compose: bus_entry",
    # Behind the gate: ``MemoryBus`` alone adds to them.
    "bot/memory/session/bus/shared_reference.py: SharedReferenceStore._entry: bus_entry",
    "bot/memory/session/bus/semantic_synthesis.py: SemanticSynthesisStore._change.entries: bus_entry",
    "bot/memory/session/bus/memory_bus.py: MemoryBus.write_to_shared: store.set",
    "bot/memory/session/bus/memory_bus.py: MemoryBus.add_synthesis: self.semantic.add_pattern",
    # A person's wish that all of it ends: takes away, and adds nothing.
    "bot/memory/session/bus/memory_clear.py: _change.compose: bus_entry",
    # One person's own, from the scope where the gate let it in to the one that they have now.
    "bot/memory/session/linking/identity_linker.py: IdentityLinker._hold.compose: bus_entry",
    # Local: problems and their working sets.
    "bot/memory/session/bus/problem_registry.py: ProblemRegistry._entry: bus_entry",
    "bot/memory/session/bus/problem_registry.py: ProblemRegistry.request_switch.compose: bus_entry",
    "bot/memory/session/bus/working_set.py: WorkingSetStore._edit.compose: bus_entry",
    "bot/memory/session/bus/working_set.py: WorkingSetStore.expire_stale.compose: bus_entry",
    # How these entries are made.
    "bot/memory/records/fact_fold.py: batch_entry: event FACTS_EVENT",
    "bot/memory/records/fact_fold.py: bus_entry: event BUS_EVENT",
    "bot/memory/records/fact_fold.py: pause_entry: event PAUSED_EVENT",
}
"""All that writes facts or compartments: whoever adds to it says how the gate stands before it."""


def test_nothing_writes_facts_or_compartments_but_what_is_listed():
    found = {
        f"{path.relative_to(ROOT)}: {where}"
        for folder in ("bot", "channels")
        for path in (ROOT / folder).rglob("*.py")
        if _MAY_WRITE.search(text := path.read_text(encoding="utf-8"))
        for where in _writers(ast.parse(text))
    }
    assert found == WRITERS


_MAY_WRITE = re.compile(r"_entry\(|add_pattern|\.set\([^)]|event\((BUS_|FACTS_|PAUSED_|.memory)")


def _writers(tree: ast.AST, inside: tuple[str, ...] = ()) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(node, ast.Call) and (what := _writes(node)):
            yield f"{'.'.join(inside)}: {what}"
        yield from _writers(node, (*inside, node.name) if named else inside)


def _writes(call: ast.Call) -> str:
    """Return what a call writes; empty where it writes neither facts nor compartments."""
    called = ast.unparse(call.func)
    name = called.rpartition(".")[2]
    if name in ("bus_entry", "batch_entry", "pause_entry"):
        return name
    if name == "add_pattern" or (name == "set" and len(call.args) > 1):
        return called
    first = ast.unparse(call.args[0]) if call.args else ""
    chain = {
        "BUS_EVENT",
        "FACTS_EVENT",
        "PAUSED_EVENT",
        "'memory.bus'",
        "'memory.facts'",
        "'memory.paused'",
    }
    return f"event {first}" if name == "event" and first in chain else ""


# 6. Multi-problem support works.


async def test_problems_of_several_chats_are_worked_on_at_the_same_time(tmp_path):
    held = {word: PausedStep(text_reply("Done.")) for word in ("zebra", "yak", "xerus")}

    def turn(request: ModelRequest) -> PausedStep:
        return next(step for word, step in held.items() if word in str(request.messages[-1]))

    model = ScriptedModel(turn)
    async with session_host(tmp_path, model) as host:
        sent = []
        for chat, word in enumerate(held, 1):
            for text in (f"/problem new {word}s", f"/problem note must {word}"):
                await host.channel.wait_for_answer(await host.channel.send(text, chat=str(chat)))
            sent.append(await host.channel.send(TALK.format(word), chat=str(chat)))
        # Each waits for the model while the others do: none for another.
        with anyio.fail_after(30):
            for step in held.values():
                await step.entered.wait()
        # Who comes to the model first is chance.
        asked = [_found(held, str(request.messages)) for request in model.requests]
        assert sorted(asked, key=sorted) == [{word} for word in sorted(held)]
        for step, inbound in zip(held.values(), sent, strict=True):
            step.release.set()
            assert await host.channel.wait_for_answer(inbound) == "Done."


async def test_a_chat_has_problems_in_every_state_and_works_on_one(tmp_path):
    async with life(tmp_path) as one:
        for problem in ("Taxes", "Trip", "Boat", "Move"):
            await noted(one, problem, problem.lower())
        await one.say("/problem background Trip")
        await one.say("/problem done Boat")
        problems = (await one.memory()).bus.problems
        states = {found.name: found.state for found in await problems.list_by_state()}
        assert states == {
            GENERAL_PROBLEM: "paused", "Taxes": "paused", "Trip": "background", "Boat": "completed",
            "Move": "active",
        }  # fmt: skip
        assert (await problems.get_active()).name == "Move"
        # What was paused is there as it was; of what is put away the summary.
        sets = {found.name: found.working_set for found in await problems.list_by_state()}
        assert "taxes" in str(sets["Taxes"])
        assert [sets["Trip"], sets["Boat"]] == [None, None]
        assert "trip" in (await problems.get("p2")).summary


# 7. Token efficiency is maintained.


async def test_what_is_recorded_is_read_for_less_than_35_percent_of_its_json(tmp_path):
    """Of a small life; ``test_compression`` holds the same for a large sample of each compartment."""
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


# 8. Locking prevents race conditions.


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
    chain = [entry for entry in entries if entry.name in (BUS_EVENT, FACTS_EVENT)]
    assert [entry.data["previous"] for entry in chain] == [0, *(entry.id for entry in chain[:-1])]
    await store.close()


async def surely(write: Callable[[], Awaitable[T]]) -> T:
    """Ask for a write until it is done: who comes too late several times is told so, and may ask again."""
    while True:
        with suppress(VersionConflict):
            return await write()


async def test_a_second_process_on_the_same_memory_is_refused(tmp_path):
    store = FileTapeStore(tmp_path, sync=False)
    await ScopeMemory(TapeService(store, PERSON), "person", ManualClock()).pause(paused=True)
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from bot.core.errors import TapeLocked\n"
        "from bot.tape.stores.file import FileTapeStore\n"
        "try:\n    FileTapeStore(Path(sys.argv[1]))\n"
        "except TapeLocked:\n    sys.exit(7)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    refused = await anyio.run_process(command, cwd=ROOT, check=False, stderr=subprocess.PIPE)
    assert refused.returncode == 7, refused.stderr
    await store.close()
