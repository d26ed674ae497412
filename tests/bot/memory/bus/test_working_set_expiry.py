"""Whatever is written to a working set ends by itself, by whichever path it was written."""

from __future__ import annotations

from datetime import timedelta

import pytest
from problem_rig import HOUR, Talk

from bot.core.clock import parse_time
from bot.core.errors import MemoryRefused
from bot.memory.gate.write_gate import WriteSignals
from bot.memory.records.compartments import BUS_EVENT
from bot.memory.records.fact_fold import bus_entry
from bot.tape.search import GENERAL_PROBLEM
from bot.testing.host import session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

TWO_HOURS = timedelta(hours=2)
VALUES = {
    "constraints": {"must": ["be cheap"]},
    "assumptions": [{"a": "it rains", "confidence": 0.8}],
    "open_questions": ["why?"],
    "partial_artifacts": {"letter": "Dear"},
    "local_decisions": [{"d": "by train", "why": "quiet"}],
}

API = {
    "update": lambda bus, key, value: bus.working_sets.update(GENERAL_PROBLEM, **{key: value}),
    "add": lambda bus, key, value: bus.working_sets.add(
        GENERAL_PROBLEM, key, value[0] if isinstance(value, list) else value
    ),
    "change": lambda bus, key, value: bus.working_sets.change(
        GENERAL_PROBLEM, lambda _: {key: value}
    ),
    "write_to_working": lambda bus, key, value: bus.write_to_working(GENERAL_PROBLEM, key, value),
}


@pytest.mark.parametrize("key", VALUES)
@pytest.mark.parametrize("path", API)
async def test_each_field_has_two_hours_whichever_operation_writes_it(path, key):
    talk = await Talk().open()
    await API[path](talk.bus, key, VALUES[key])
    held = await talk.bus.working_sets.get(GENERAL_PROBLEM)
    assert getattr(held, key) == VALUES[key]
    assert held.expires_at == talk.clock.now() + TWO_HOURS
    talk.clock.advance(2 * HOUR)
    assert await talk.bus.working_sets.get(GENERAL_PROBLEM) is None
    await talk.open()
    assert await talk.bus.working_sets.get(GENERAL_PROBLEM) is None


async def test_what_the_gate_sends_to_a_working_set_ends_there():
    talk = await Talk().open()
    await talk.say("The budget is 500 euros.")
    source = f"fake:1#{talk.fold.version}"
    contested = WriteSignals(conflict_level="high")
    written = await talk.bus.write_to_shared("budget", 500, source, contested, by="person")
    assert written.is_assumption
    held = await talk.bus.working_sets.get(GENERAL_PROBLEM)
    [assumed] = held.assumptions
    assert parse_time(assumed["until"]) == written.decision.expiry == talk.clock.now() + TWO_HOURS
    assert held.expires_at >= talk.clock.now() + TWO_HOURS
    talk.clock.advance(2 * HOUR)
    assert "budget" not in await talk.bus.working_sets.compile(GENERAL_PROBLEM)


async def test_what_the_command_and_the_models_tool_note_ends_after_two_hours(tmp_path):
    def model(request):
        asks = request.messages[-1]["role"] == "user"
        note = ("problem_note", {"kind": "ask", "text": "Which hotel do we take?"})
        return tool_call_reply(note) if asks else text_reply("fine")

    clock = ManualClock()
    async with session_host(tmp_path, ScriptedModel(model), clock=clock) as host:
        await host.channel.ask("/problem note must stay below 500 euros")
        await host.channel.ask("Which hotel do we take?")
        records = [
            (clock.now(), one)
            for entry in await host.events(BUS_EVENT)
            for one in entry.data.get("working", ())
        ]
    assert [sorted(one.keys() & VALUES.keys()) for _, one in records] == [
        ["constraints"],
        ["constraints", "open_questions"],
    ]
    for now, one in records:
        assert parse_time(one["expires"]) == now + TWO_HOURS


@pytest.mark.parametrize("expires", [None, "", "soon", 7])
async def test_a_set_from_elsewhere_without_an_end_has_two_hours(expires):
    talk = await Talk().open()
    first = await talk.problem("first")
    await talk.bus.problems.switch_to(GENERAL_PROBLEM)
    record = {"problem": first, "created": talk.clock.now().isoformat(), "open_questions": ["why?"]}
    record |= {} if expires is None else {"expires": expires}
    await talk.tape.append(bus_entry(talk.fold.facts, {"working": [record]}))
    assert (await talk.bus.working_sets.get(first)).expires_at == talk.clock.now() + TWO_HOURS
    talk.clock.advance(2 * HOUR)
    assert await talk.bus.working_sets.get(first) is None


async def test_a_set_from_elsewhere_that_would_live_for_years_lives_a_day():
    talk = await Talk().open()
    first = await talk.problem("first")
    await talk.bus.problems.switch_to(GENERAL_PROBLEM)
    record = {"problem": first, "created": talk.clock.now().isoformat(), "open_questions": ["why?"]}
    record |= {"expires": "2199-01-01T00:00:00+00:00"}
    await talk.tape.append(bus_entry(talk.fold.facts, {"working": [record]}))
    for _ in range(2):
        assert (await talk.bus.working_sets.get(first)).expires_at == talk.clock.now() + timedelta(
            days=1
        )
        await talk.open()
    talk.clock.advance(24 * HOUR)
    assert await talk.bus.working_sets.get(first) is None


@pytest.mark.parametrize("hours", [0, -1, float("nan"), float("-inf")])
async def test_a_set_that_would_not_live_is_refused(hours):
    talk = await Talk().open()
    with pytest.raises(MemoryRefused, match="more than 0 hours"):
        await talk.bus.working_sets.create(GENERAL_PROBLEM, ttl_hours=hours)
    assert await talk.bus.working_sets.get(GENERAL_PROBLEM) is None
