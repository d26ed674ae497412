"""An audit of what the memory bus holds finds each thing that is wrong, and nothing where all is in order."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from bot.bus.messages import Sender
from bot.cli.memory_audit import audit_memory
from bot.memory.audit.audit_reader import AuditReader
from bot.memory.audit.rules import audit_scope, audit_session
from bot.memory.records.compartment_records import (
    Problem,
    SharedReference,
    SynthesizedPattern,
    WorkingSet,
)
from bot.memory.records.episodes import episode_id
from bot.memory.records.fact_fold import PAUSED_EVENT, FactFold, bus_entry
from bot.memory.records.tombstones import tombstone
from bot.memory.session.linking.scope_registry import scope_entry
from bot.runtime.settings import load_settings
from bot.tape.entries import event, message
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.host import session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, text_reply

NOW = datetime(2026, 3, 10, 9, tzinfo=UTC)
HOME, CHAT = "person:fake:7", "fake:1"
GATE = {"approved": True, "target_compartment": "shared", "reason": "approved"}


class Planted:
    """A scope and a chat on which a test puts changes by hand."""

    def __init__(self) -> None:
        self.store = InMemoryTapeStore(clock=ManualClock(NOW))
        self.folds = {HOME: FactFold(), CHAT: FactFold()}

    async def heard(self, text: str, **meta: Any) -> str:
        written = await self.store.append(CHAT, message("user", text, **meta))
        return episode_id(CHAT, written.id)

    async def change(self, tape: str = HOME, **data: Any) -> None:
        entry = bus_entry(self.folds[tape], data)
        self.folds[tape].apply(await self.store.append(tape, entry))

    async def believe(self, number: str, *rests: str, **more: Any) -> None:
        content = {"text": f"Belief {number} holds."}
        one = SynthesizedPattern(number, "heuristic", content, list(rests), 0.8, NOW, NOW)
        await self.change(patterns=[replace(one, **more).as_json()], decision=GATE)

    async def set(self, source: str, **more: Any) -> None:
        one = SharedReference("deadline", "Friday", 1, source, NOW, NOW, "person")
        await self.change(references=[replace(one, **more).as_json()], decision=GATE)

    async def work(self, number: str, state: Any, *messages: int, active: str = "") -> None:
        one = Problem(number, f"Trip {number}", state, CHAT, NOW, NOW, resumable_entry_ids=messages)
        working = WorkingSet(number, CHAT, NOW, NOW, open_questions=["when?"])
        data: dict[str, Any] = {"problems": [one.as_json()], "working": [working.as_json()]}
        await self.change(CHAT, **data, **({"active": active} if active else {}))

    async def found(self) -> list[tuple[str, str]]:
        gathering = AuditReader(self.store, ManualClock(NOW))
        shown, home = await gathering.read_session(CHAT)
        scope = await gathering.read_scope(home)
        findings = [*audit_session(shown), *audit_scope(scope, NOW)]
        return [(one.kind, one.why) for one in findings]


@pytest.fixture
async def planted() -> Planted:
    planted = Planted()
    for tape in (HOME, CHAT):
        await planted.store.create_tape(tape)
    await planted.store.append(CHAT, scope_entry(HOME))
    return planted


async def test_what_is_in_order_is_not_reported(planted: Planted) -> None:
    said = await planted.heard("It rains")
    trip = await planted.heard("To Rome", problem="p1")
    await planted.believe("p1", said, "h3")
    await planted.believe("p2", "p1", trip)
    await planted.believe("p3", "p9", "fake:1#99", status="stale")
    await planted.set(said)
    await planted.work("p1", "paused", int(trip.split("#")[1]))
    await planted.work("p2", "active", active="p2")
    state = planted.folds[HOME].state()
    paused = event(
        PAUSED_EVENT,
        {"paused": False, "previous": planted.folds[HOME].last_entry_id, "state": state},
    )
    planted.folds[HOME].apply(await planted.store.append(HOME, paused))
    await planted.set(said, version=2)
    assert await planted.found() == []


@pytest.mark.parametrize(
    ("rests", "why"),
    [
        ((), "p1: it has no evidence"),
        (("fake:1#99",), "p1: its evidence fake:1#99 does not exist"),
        (("SAID", "p7", "12"), "p1: its evidence p7, 12 does not exist"),
        (("GONE",), "p1: none of its evidence is still valid"),
    ],
)
async def test_a_belief_without_ground_is_found(
    planted: Planted, rests: tuple[str, ...], why: str
) -> None:
    places = {"SAID": await planted.heard("It rains"), "GONE": await planted.heard("It snows")}
    number = int(places["GONE"].split("#")[1])
    [entry] = await planted.store.read(CHAT, number, number)
    await planted.store.erase(CHAT, [tombstone(entry)])
    await planted.believe("p1", *(places.get(one, one) for one in rests))
    assert await planted.found() == [("unsupported", f'{why}: "Belief p1 holds."')]


async def test_a_value_whose_source_is_gone_is_found_unless_it_says_so(planted: Planted) -> None:
    await planted.set("fake:1#99")
    why = 'the source of shared value "deadline" v1, fake:1#99, does not exist'
    assert await planted.found() == [("unsupported", why)]
    await planted.set("fake:1#99", version=2, stale=True)
    assert await planted.found() == []
    await planted.set("a person", version=3)
    assert await planted.found() == []


async def test_what_comes_back_of_another_problem_is_found(planted: Planted) -> None:
    own = await planted.heard("To Rome", problem="p1")
    other = await planted.heard("The taxes", problem="p2")
    general = await planted.heard("Hello")
    numbers = [int(one.split("#")[1]) for one in (own, other, general)]
    await planted.work("p1", "paused", *numbers)
    which = f"#{numbers[1]} of p2, #{numbers[2]} of general"
    why = f"p1 restores messages of another problem: {which}"
    assert await planted.found() == [("problems", why)]


async def test_two_problems_that_are_worked_on_are_found(planted: Planted) -> None:
    await planted.work("p1", "active", active="p1")
    assert await planted.found() == []
    await planted.work("p2", "active")
    assert await planted.found() == [("problems", "p1 is in use, but p2 marked as active")]


async def test_a_broken_chain_and_a_decision_without_a_reason_are_found(planted: Planted) -> None:
    await planted.change(decision=GATE)
    await planted.change(decision={**GATE, "reason": " "})
    await planted.store.append(HOME, event("memory.bus", {"previous": 1, "ranks": {}}))
    [first, second] = await planted.found()
    last = await planted.store.version(HOME)
    assert first == (
        "bookkeeping",
        f"the chain of changes is broken: #{last} does not name the change before it",
    )
    assert second == ("bookkeeping", f"a decision has no reason: #{last - 1}")


async def test_a_whole_state_that_tells_of_other_values_is_found(planted: Planted) -> None:
    await planted.set("a person")
    state = planted.folds[HOME].state()
    state["compartments"]["references"][0]["value"] = "Monday"
    entry = event(
        PAUSED_EVENT,
        {"paused": False, "previous": planted.folds[HOME].last_entry_id, "state": state},
    )
    await planted.store.append(HOME, entry)
    [(kind, why)] = await planted.found()
    assert (kind, "does not match" in why) == ("bookkeeping", True)


def test_what_people_do_by_commands_is_in_order(tmp_path, capsys) -> None:

    async def talk() -> None:
        async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("Fine."))) as host:
            ask = host.channel.ask
            for text in (
                "I like tea",
                "/reference set deadline Friday",
                "/reference set deadline Monday",
                "/problem new Trip",
                "To Rome",
                "/problem note ask when?",
                "/problem switch general",
                "Hello",
                "/problem switch Trip",
                "And back",
                "/memory clear yes",
                "/memory undo",
            ):
                await ask(text)
            who = {"chat": "9", "private": False, "sender": Sender("8", "Bob"), "role": "owner"}
            for text in ("/reference set office Oslo", "/problem new Party", "Who comes?"):
                await host.channel.wait_for_answer(await host.channel.send(text, **who))

    anyio.run(talk)
    settings = load_settings(home=tmp_path, timezone="UTC")
    assert audit_memory(settings, None, as_json=False, clock=ManualClock(NOW)) == 0
    assert "no findings" in capsys.readouterr().out
