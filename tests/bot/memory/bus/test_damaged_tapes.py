"""Whatever stands on a tape as a change of compartments, its session opens, works, and can be left."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problem_rig import Talk
from sampling import examples

from bot.memory.records.compartments import BUS_EVENT
from bot.memory.records.conversation_entries import PROBLEM_ANCHOR_PREFIX
from bot.memory.records.fact_fold import (
    FACTS_EVENT,
    PAUSED_EVENT,
    bus_entry,
)
from bot.tape.entries import TapeEntry, anchor, event
from bot.tape.search import GENERAL_PROBLEM
from bot.tape.service import TapeService
from bot.tape.stores.in_memory import InMemoryTapeStore

_ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 5, -1.5, 1e308, 10**400, "", "p1", "p9", GENERAL_PROBLEM, "٣", "x" * 50),
    *("p" + "9" * 5_000, [], [1], ["p1"], [[1]], [[1, 2], [3]], {}, {"a": 1}, {"x": [1]}),
    *({"1": "x"}, {"k": [[1, 2]]}, {"1": 1e308}, {"1": 10**400}, {"must": 5}, ["bare"]),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-01-01T00:00:00"),
)
_DAY = "2026-01-01T00:00:00+00:00"
_RECORDS: dict[str, dict[str, Any]] = {
    "problems": {
        "id": "p1", "name": "N", "state": "paused", "created": _DAY, "used": _DAY, "priority": 5,
        "summary": "s", "messages": [1], "weight": [1, 1],
    },
    "working": {
        "problem": "p1", "created": _DAY, "expires": "2099-01-01T00:00:00+00:00", "ttl": 2.0,
        "constraints": {"must": ["a"]}, "assumptions": [{"a": "b"}], "open_questions": ["c"],
        "local_decisions": [{"d": "e"}], "partial_artifacts": {"f": "g"}, "lane": "l",
    },
    "references": {
        "key": "k", "value": "v", "version": 1, "source": "fake:1#1", "created": _DAY,
        "updated": _DAY, "by": "person", "entry": 1, "stale": False,
    },
    "patterns": {
        "id": "p1", "type": "conclusion", "content": {"text": "t"}, "evidence": ["fake:1#1"],
        "confidence": 0.5, "created": _DAY, "validated": _DAY, "decay": 0.1, "status": "active",
    },
    "facts": {
        "id": 1, "text": "t", "subject": "", "evidence": [], "origin": "person", "confidence": 0.5,
        "valid_from": _DAY, "status": "active", "supersedes": 1,
    },
}  # fmt: skip
_OTHERS = (
    *("expired", "uses", "active", "wanted", "key", "decayed", "used", "versions"),
    *("next_problem", "next_pattern", "ops"),
)


def _record(chance: random.Random, kind: str) -> dict[str, Any]:
    return {
        name: chance.choice(_ODD) if chance.random() < 0.12 else value
        for name, value in _RECORDS[kind].items()
    }


def _change(chance: random.Random) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for kind in ("problems", "working", "references", "patterns"):
        if chance.random() < 0.4:
            records = [_record(chance, kind) for _ in range(chance.randint(1, 2))]
            data[kind] = records if chance.random() < 0.9 else chance.choice(_ODD)
    data |= {name: chance.choice(_ODD) for name in _OTHERS if chance.random() < 0.12}
    return data


def _entry(chance: random.Random) -> TapeEntry:
    if chance.random() < 0.2:
        ids = chance.choice([[1, 2, 3, 4], [-5, 0, 10**12], [True]])
        returns = {
            "ids": ids,
            "messages": chance.choice([1, -1]),
            "tokens": chance.choice([1, 10**6]),
        }
        state = {name: chance.choice(_ODD) for name in ("problem", "name", "summary")}
        return anchor(
            chance.choice([f"{PROBLEM_ANCHOR_PREFIX}p1", "phase"]), {**state, "returns": returns}
        )
    made = event(
        chance.choice([BUS_EVENT, BUS_EVENT, BUS_EVENT, FACTS_EVENT, PAUSED_EVENT]), _change(chance)
    )
    odd = [name for name in ("ts", "problem") if chance.random() < 0.1]
    return made.with_meta(**{name: chance.choice(_ODD) for name in odd})


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(chance=st.randoms(use_true_random=False))
async def test_no_change_on_a_tape_keeps_its_session_from_opening_or_from_being_used(chance):
    store = InMemoryTapeStore()
    await (await Talk(store).open()).say("hello")
    for _ in range(chance.randint(1, 3)):
        await TapeService(store, "fake:1").append(_entry(chance))
    talk = await Talk(store).open()
    bus = talk.bus
    await bus.problems.apply_requested_switch()
    await bus.working_sets.expire_stale()
    await bus.working_sets.compile((await bus.problems.get_active()).problem_id)
    await talk.say("go on")
    await bus.problems.list_by_state()
    await bus.semantic.decay_all(asked=True)
    await bus.semantic.check_evidence()
    await talk.problem("new")
    await bus.working_sets.add(talk.fold.problem, "open_questions", "why")
    await bus.problems.switch_to(GENERAL_PROBLEM)
    await talk.say("home")
    assert talk.fold.problem == GENERAL_PROBLEM
    assert set(talk.view()) >= {"home"}
    again = await Talk(store).open()
    assert replace(again.fold.facts, version=0) == replace(talk.fold.facts, version=0)
    assert again.view() == talk.view()


async def test_what_a_boundary_brings_back_is_of_its_own_problem_alone():
    store = InMemoryTapeStore()
    talk = await Talk(store).open()
    await talk.say("a secret")
    said = [one.id for one in talk.fold.window.conversation()]
    first = await talk.problem("first")
    record = {"id": first, "name": "first", "state": "paused", "messages": said, "weight": [2, 9]}
    await talk.bus.problems.switch_to(GENERAL_PROBLEM)
    await talk.tape.append(bus_entry({"problems": [record]}))
    await talk.bus.problems.switch_to(first)
    assert talk.view() == []
    assert (await Talk(store).open()).view() == []
