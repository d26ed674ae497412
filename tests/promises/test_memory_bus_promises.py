"""What the memory bus promises: working sets that end, shared values, episodes, beliefs, and the gate's figures."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from bot.core.errors import MemoryRefused
from bot.memory.gate.write_gate import WriteGate, WriteRequest, WriteSignals
from bot.memory.records.compartment_records import EpisodeEntry, SynthesizedPattern
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.zone import MemoryZone
from bot.tape.entries import message
from bot.tape.service import TapeService
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.host import session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    text_reply,
    tool_call_reply,
)
from tests.bot.agent.believing import CONCLUDE

HOUR, DAY = 3_600, 86_400
THEN = datetime.fromisoformat("2026-02-08T10:00:00+00:00")


class Bus:
    """The memory bus of one session, on tapes in memory."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = InMemoryTapeStore(clock=self.clock)
        self.tape = TapeService(self.store, "fake:1")

    async def open(self, hours: float = 2.0) -> Bus:
        await self.tape.ensure_bootstrap_anchor()
        fold = await load_fold(self.tape)
        self.tape.observe(fold.apply)
        zone = MemoryZone(self.tape, fold=fold.zone, clock=self.clock)
        await zone.load_or_create()
        scopes = ScopeRegistry(self.store, self.clock)
        self._held = LongTermMemory(self.tape, fold, zone, scopes, hours=hours)
        await self._held.open()
        self.memory = self._held.bus
        return self

    async def says(self, text: str) -> str:
        """Return the id of what a person says."""
        sender = {"id": "7", "name": "Ada"}
        return f"fake:1#{(await self.tape.append(message('user', text, sender=sender))).id}"

    async def happens(self, text: str, **more: Any) -> str:
        kind, when = more.pop("kind", "turn"), more.pop("at", self.clock.now())
        problem, layer = more.pop("problem", None), more.pop("layer", "")
        made = EpisodeEntry("", when, problem, layer, kind, {"text": text}, **more)
        return await self.memory.log_episode(made)

    async def sure(self, pattern: str) -> float:
        """Return what is left of a belief's confidence, or its rank, as a search has it."""
        found = {one.id: one for one in await self.memory.semantic.search()}
        return round(found[pattern].confidence_at(self.clock.now()), 4)


@pytest.fixture
async def bus() -> Bus:
    return await Bus().open()


def belief(text: str, *evidence: str, kind: Any = "conclusion", sure: float = 0.7, **more: Any):
    return SynthesizedPattern("", kind, {"text": text}, [*evidence], sure, THEN, THEN, **more)


def concludes(text: str):
    return tool_call_reply(("belief_add", {"text": text}))


@pytest.fixture
async def chat(tmp_path):
    steps: list[Any] = []
    model = ScriptedModel(
        lambda _: steps.pop(0) if steps else text_reply("Fine."),
        consolidation=lambda _: consolidation_reply("[2026-02-10 10:00] They talked."),
    )
    async with session_host(tmp_path, model, tools=(CONCLUDE,)) as host:

        async def ask(text: str, *wanted: Any) -> str:
            steps.extend(wanted)
            return await host.channel.ask(text)

        yield host, ask, lambda place=-1: model.requests_for()[-1].messages[place]["content"]


# Working sets.


async def test_notes_end_two_hours_after_their_last_use_and_leave_a_summary_without_drafts(chat):
    host, ask, tail = chat
    await ask("/problem new Taxes")
    await ask("/problem note must file by May")
    await ask("/problem note draft letter Dear tax office")
    host.clock.advance(2 * HOUR - 1)
    await ask("Hello.")
    assert "Dear tax office" in tail()
    host.clock.advance(2 * HOUR - 1)
    assert "Dear tax office" in await ask("/problem show")
    host.clock.advance(1)
    assert "There are no notes yet" in await ask("/problem show")
    await ask("And now?")
    assert "What was noted here before:\nmust: file by May\ndrafts: letter" in tail()
    assert "Dear tax office" not in tail()


async def test_the_notes_of_a_problem_that_is_put_aside_end_after_a_day(chat):
    host, ask, _ = chat
    await ask("/problem new Taxes")
    await ask("/problem note must file by May")
    for hours in (23.9, 24):
        await ask("/problem switch general")
        host.clock.advance(hours * HOUR)
        assert "file by May" in await ask("/problem switch Taxes")
        assert ("Earlier summary" in await ask("/problem show")) == (hours == 24)


async def test_no_hours_make_notes_live_longer_than_a_day_and_a_sweep_says_how_many_it_ended():
    bus = await Bus().open(hours=100)
    sets, problems = bus.memory.working_sets, bus.memory.problems
    first, second = [await problems.create(name) for name in ("first", "second")]
    await sets.update(first.problem_id, open_questions=["why?"], partial_artifacts={"a": "long"})
    lasting = await sets.create(second.problem_id, ttl_hours=1_000)
    for held in (await sets.get(first.problem_id), lasting):
        assert held.expires_at - held.created_at == timedelta(hours=24)
    bus.clock.advance(DAY - 1)
    assert await sets.expire_stale() == 0
    bus.clock.advance(1)
    assert await sets.get(first.problem_id) is None
    assert [await sets.expire_stale() for _ in range(2)] == [2, 0]
    with pytest.raises(MemoryRefused, match="no problem"):
        await bus.memory.write_to_working("p9", "open_questions", ["whose?"])
    summary = await sets.export_summary(first.problem_id)
    assert "why?" in summary
    assert "long" not in summary


# Shared values.


async def test_each_change_of_a_shared_value_is_a_version_that_stays(bus):
    shared = bus.memory.shared
    source = await bus.says("The deadline is 31 May.")
    assert [await shared.set("deadline", day, source) for day in ("31 May", "7 June")] == [1, 2]
    assert await shared.rollback("deadline", 1)
    assert not await shared.rollback("deadline", 9)
    assert not await shared.rollback("nothing", 1)
    assert await shared.list_versions("deadline") == [1, 2, 3]
    values = [await shared.get("deadline", number) for number in (1, 2, 3, 4)]
    assert [one and one.value for one in values] == ["31 May", "7 June", "31 May", None]
    assert (await shared.get("deadline")).version == 3
    assert await shared.cite("deadline") == f"[deadline v3, rolled back 2026-02-10, {source}]"
    assert (await shared.cite("nothing"), await shared.list_versions("nothing")) == ("", [])


# Episodes.


async def test_episodes_are_found_by_time_problem_layer_type_and_tags_and_by_day(bus):
    taxes = (await bus.memory.problems.create("Taxes")).problem_id
    await bus.happens("early", at=THEN, tags=["a"])
    await bus.happens("form", kind="tool", problem=taxes, layer="focus", tags=["a", "b"])
    await bus.happens("choice", kind="decision", layer="focus", tags=["b"])
    bus.clock.advance(DAY)
    await bus.happens("late", kind="turn", problem=taxes)
    trace, begun = bus.memory.episodic, THEN + timedelta(days=1)
    for wanted, found in (
        ({}, ["early", "form", "choice", "late"]),
        ({"start": begun}, ["form", "choice", "late"]),
        ({"end": begun}, ["early"]),
        ({"problem_id": taxes}, ["form", "late"]),
        ({"problem_id": "general"}, ["early", "choice"]),
        ({"hrm_layer": "focus"}, ["form", "choice"]),
        ({"hrm_layer": ""}, ["early", "late"]),
        ({"entry_type": "decision"}, ["choice"]),
        ({"tags": ["a", "b"]}, ["form"]),
        ({"tags": ["b"], "problem_id": "general"}, ["choice"]),
        ({"text": "forn"}, ["form"]),
        ({"limit": 2}, ["choice", "late"]),
    ):
        told = [one.content.get("text") for one in await trace.query(**wanted)]
        assert [one for one in told if one] == found, wanted
    days = [await trace.get_chunk(date(2026, 2, day)) for day in (8, 9, 10, 11)]
    told = [[one.content["text"] for one in day if "text" in one.content] for day in days]
    assert told == [["early"], [], ["form", "choice"], ["late"]]


async def test_what_is_superseded_stays_and_is_left_out_only_of_what_is_synthesised(bus):
    trace = bus.memory.episodic
    old = await bus.happens("The train leaves at 9.")
    new = replace(await trace.get(old), content={"text": "It leaves at 10."}, entry_type="delta")
    made = await trace.supersede(old, new)
    assert (await trace.get(old)).content == {"text": "The train leaves at 9."}
    assert (await trace.get(made)).supersedes == old
    assert {old, made} <= {one.id for one in await trace.query()}
    exported = {one.id for one in await trace.export_for_synthesis("general")}
    assert exported & {old, made} == {made}


# Beliefs.


async def test_a_belief_grows_by_new_words_alone_and_fades_out_of_the_prompt_and_not_away(chat):
    host, ask, tail = chat
    walks = "Walks help the user when stuck."
    for said, sure in (
        ("A walk got me unstuck today.", 0.70),
        ("Again a walk got me unstuck, this time in the rain.", 0.75),
    ):
        await ask(said, concludes(walks))
        assert f"({sure:.2f})" in await ask("/memory beliefs")
    await ask("/memory accept p1")
    for days, left in ((30, 0.55), (20, 0.45)):
        host.clock.advance(days * DAY)
        assert f"({left})" in await ask("/memory beliefs")
        await ask("/new")  # until then the prompt stays as it is
        await ask("And now?")
        assert (walks in tail(0)) == (left >= 0.5)
    host.clock.advance(300 * DAY)
    assert walks in await ask("/memory beliefs")


async def test_evidence_doubt_and_time_move_confidence_by_their_figures(bus):
    semantic = bus.memory.semantic
    said = [await bus.says(f"Walk {number} got me unstuck.") for number in range(8)]
    plain = await semantic.add_pattern(belief("Walks help.", said[0]))
    slow = await semantic.add_pattern(belief("Rain helps.", said[0], decay_rate=0.1))
    kept = await semantic.add_pattern(belief("Tea helps.", said[0], protected=True))
    assert not await semantic.strengthen(plain, said[0])
    grown = [0.75, 0.8, 0.85, 0.9, 0.95, 0.95]
    for one, wanted in zip(said[1:], grown, strict=False):
        assert await semantic.strengthen(plain, one)
        assert await bus.sure(plain) == wanted
    await semantic.weaken(plain, "somebody doubts it")
    assert await bus.sure(plain) == 0.75
    bus.clock.advance(2 * DAY)
    assert await bus.sure(plain) == round(0.75 * 0.99**2, 4)
    assert await bus.sure(slow) == round(0.7 * 0.9**2, 4)
    assert await bus.sure(kept) == 0.7
    order = [one.id for one in await semantic.search()]
    assert order == [plain, kept, slow]
    assert [one.id for one in await semantic.search(min_confidence=0.69)] == [plain, kept]
    assert await semantic.decay_all() == 2
    bus.clock.advance(3_000 * DAY)
    assert {one.id for one in await semantic.search()} == {plain, slow, kept}


# The gate.

GATE: list[tuple[dict[str, Any], float, str, str | None]] = [
    *(({"blast_radius": radius}, figure - less, "semantic", target)
      for radius, figure in (("severe", 0.9), ("moderate", 0.7), ("minimal", 0.5))
      for less, target in ((0.0, "semantic"), (0.01, "episodic"))),
    *(({"conflict_level": level}, 0.95, wanted, target or wanted)
      for level, target in (("none", ""), ("low", ""), ("medium", "working"), ("high", "working"))
      for wanted in ("semantic", "shared")),
    *(({"alignment_score": score}, 0.95, wanted, target)
      for score, wanted, target in (
          (0.5, "semantic", "semantic"), (0.49, "semantic", None), (0.49, "shared", "shared"))),
    *(({"source_quality": quality}, 0.95, "semantic", target)
      for quality, target in ((0.6, "semantic"), (0.59, "episodic"))),
]  # fmt: skip


@pytest.mark.parametrize(("signals", "sure", "wanted", "target"), GATE)
def test_the_gate_decides_by_its_figures_and_what_is_exactly_there_passes(
    signals, sure, wanted, target
):
    now = ManualClock().now()
    request = WriteRequest("test", None, wanted, {"confidence": sure}, WriteSignals(**signals))
    decided = WriteGate().evaluate(request, now)
    assert (decided.target_compartment, decided.approved) == (target, target is not None)
    assert decided.expiry == (now + timedelta(hours=2) if target == "working" else None)


@pytest.mark.parametrize(
    ("reported", "target"),
    [
        (None, "semantic"),
        (WriteSignals(source_quality=0.5), "episodic"),
        (WriteSignals(alignment_score=0.4), None),
        (WriteSignals(conflict_level="medium"), "working"),
        (WriteSignals(blast_radius="severe"), "episodic"),
    ],
)
async def test_a_writers_report_makes_it_worse_and_what_is_contested_is_assumed_for_two_hours(
    bus, reported, target
):
    said = await bus.says("Walks get me unstuck.")
    found = await bus.memory.add_synthesis(belief("Walks help when stuck.", said), reported)
    assert found.decision.target_compartment == target
    assert bool(await bus.memory.semantic.search()) == (target == "semantic")
    held = [await bus.memory.working_sets.compile("general")]
    bus.clock.advance(2 * HOUR)
    held.append(await bus.memory.working_sets.compile("general"))
    assert ["Walks help" in one for one in held] == [target == "working", False]
    # However good the report is, words of nobody are no ground.
    nobody = await bus.happens("Zebras fly.")
    assert not await bus.memory.add_synthesis(belief("Zebras fly.", nobody), WriteSignals())
