"""What every tape store promises of anchors: how they are made, and what they mean."""

from __future__ import annotations

from typing import Any

import pytest
from tape_talk import TAPE, talk

from bot.core.errors import InvalidEntry, TapeNotFound
from bot.tape.entries import (
    MEMORY_CONSOLIDATED,
    MEMORY_OPEN,
    MEMORY_SEAL,
    SESSION_FORK,
    SESSION_NEW,
    SESSION_START,
    anchor,
)

# Making them.


async def test_an_anchor_names_the_newest_entry_where_none_is_given(backend):
    await talk(backend.store, "a", "b")
    made = await backend.store.create_anchor(TAPE, "tea")
    assert (made.tape, made.name, made.at, made.entry_id, made.state) == (TAPE, "tea", 4, 3, {})
    async for store in backend.readers():
        assert await store.get_anchor(TAPE, "tea") == made
        assert await store.list_anchors(TAPE) == [made]


@pytest.mark.parametrize("target", [1, 2, 4])
async def test_an_anchor_names_the_entry_that_it_is_given(backend, target):
    await talk(backend.store, "a", "b", "c")
    made = await backend.store.create_anchor(TAPE, "tea", target)
    assert (made.at, made.entry_id) == (5, target)
    async for store in backend.readers():
        assert await store.resolve_anchor(TAPE, "tea") == target


async def test_an_anchor_is_an_entry_of_its_tape(backend):
    await talk(backend.store, "a")
    made = await backend.store.create_anchor(TAPE, "tea", state={"summary": "green"})
    async for store in backend.readers():
        [entry] = await store.read(TAPE, made.at)
        assert (entry.kind, entry.name, entry.target_id) == ("anchor", "tea", 2)
        assert (entry.data, entry.meta["ts"]) == ({"summary": "green"}, made.ts)
        assert await store.version(TAPE) == 3


async def test_an_anchor_may_name_an_anchor(store):
    await talk(store, "a")
    first = await store.create_anchor(TAPE, "first")
    second = await store.create_anchor(TAPE, "second")
    assert second.entry_id == first.at


@pytest.mark.parametrize("target", [-1, 0, 3, 99, 10**12])
async def test_an_anchor_for_an_entry_that_is_not_there_is_refused(store, target):
    await talk(store, "a")
    with pytest.raises(TapeNotFound):
        await store.create_anchor(TAPE, "tea", target)
    assert await store.version(TAPE) == 2
    assert await store.list_anchors(TAPE) == []


async def test_an_anchor_for_an_entry_that_a_reset_dropped_is_refused(store):
    await talk(store, "a")
    await store.archive(TAPE)
    await talk(store, "dropped")
    await store.reset(TAPE)
    for dropped in (2, 4):
        with pytest.raises(TapeNotFound):
            await store.create_anchor(TAPE, "tea", dropped)
    assert (await store.create_anchor(TAPE, "tea", 5)).entry_id == 5


@pytest.mark.parametrize(
    "name", ["", " ", "\n\t", MEMORY_OPEN, MEMORY_SEAL, MEMORY_CONSOLIDATED], ids=ascii
)
async def test_a_name_that_is_empty_or_the_memorys_own_is_refused(store, name):
    await talk(store, "a")
    with pytest.raises(InvalidEntry):
        await store.create_anchor(TAPE, name, 2)
    assert await store.version(TAPE) == 2


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "problem/7",
        SESSION_START,
        "Küche 🍳",
        "%_'\"\\*",
        "line\nbreak",
        "nul \x00 inside",
        "x" * 2000,
    ],
    ids=lambda name: ascii(name)[:20],
)
async def test_any_other_name_finds_its_anchor(backend, name):
    await talk(backend.store, "a")
    made = await backend.store.create_anchor(TAPE, name)
    await backend.store.create_anchor(TAPE, "another")
    async for store in backend.readers():
        assert await store.get_anchor(TAPE, name) == made
        assert await store.resolve_anchor(TAPE, name) == 2


async def test_names_that_differ_in_one_character_are_two_anchors(backend):
    names = ["tea", "Tea", "tea ", "te_", "te%", "té", "te\u0301", "tea\x00", "tea\x00b"]
    await talk(backend.store, "a")
    for name in names:
        await backend.store.create_anchor(TAPE, name, state={"name": name})
    async for store in backend.readers():
        for name in names:
            assert (await store.get_anchor(TAPE, name)).state == {"name": name}


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        -(10**400),
        0.1,
        1e300,
        -0.0,
        [],
        {},
        None,
        False,
        "",
        "line\nbreak\r\u2028\x00\x18",
        "你好 Grüße 👩‍👩‍👧",
        "half \ud83d",
        {"\udc00": ["\udfff"], "": {"": [[[{}]]]}},
    ],
    ids=lambda value: ascii(value)[:40],
)
async def test_a_state_comes_back_exactly(backend, value):
    await talk(backend.store, "a")
    state = {"value": value, "deep": [{"value": value}]}
    await backend.store.create_anchor(TAPE, "tea", state=state)
    await backend.store.append(TAPE, anchor("appended", state))
    await backend.store.archive(TAPE)
    async for store in backend.readers():
        for name in ("tea", "appended"):
            assert repr((await store.get_anchor(TAPE, name)).state) == repr(state)
        assert [repr(one.state) for one in await store.list_anchors(TAPE)] == [repr(state)] * 2


@pytest.mark.parametrize(
    "state",
    [{"value": float("nan")}, {"value": object()}, {"value": (1,)}, {1: "one"}],
    ids=["not a number", "object", "tuple", "number as key"],
)
async def test_a_state_that_is_no_json_is_refused_and_nothing_is_written(store, state):
    await talk(store, "a")
    with pytest.raises(InvalidEntry):
        await store.create_anchor(TAPE, "tea", state=state)
    assert await store.version(TAPE) == 2
    assert await store.list_anchors(TAPE) == []


async def test_an_anchor_is_a_fact_that_no_reader_or_writer_can_change(store):
    await talk(store, "a")
    state = {"list": [1]}
    made = await store.create_anchor(TAPE, "tea", state=state)
    state["list"].append(2)
    made.state["list"].append(3)
    (await store.get_anchor(TAPE, "tea")).state["list"].append(4)
    (await store.list_anchors(TAPE))[0].state["list"].append(5)
    assert (await store.get_anchor(TAPE, "tea")).state == {"list": [1]}
    assert (await store.list_anchors(TAPE))[0].state == {"list": [1]}


# What they mean.


async def test_a_bookmark_never_cuts_whatever_its_name(backend):
    await talk(backend.store, "a")
    for name in ("tea", SESSION_NEW, "problem/7", "auto_handoff/context_overflow"):
        made = await backend.store.create_anchor(TAPE, name, state={"summary": "s"})
        assert not made.is_boundary
    async for store in backend.readers():
        assert not any(one.is_boundary for one in await store.list_anchors(TAPE))
        assert not any(entry.is_boundary for entry in await store.read(TAPE))


async def test_an_appended_anchor_cuts_unless_it_is_the_memorys_own(backend):
    await backend.store.create_tape(TAPE)
    names = ["tea", SESSION_NEW, MEMORY_OPEN, MEMORY_SEAL, MEMORY_CONSOLIDATED]
    await backend.store.append_many(TAPE, [anchor(name, {"version": 1}) for name in names])
    async for store in backend.readers():
        found = await store.list_anchors(TAPE)
        assert [one.name for one in found if one.is_boundary] == ["tea", SESSION_NEW]
        read = await store.read(TAPE)
        assert [entry.name for entry in read if entry.is_boundary] == ["tea", SESSION_NEW]


async def test_an_anchor_and_its_entry_agree_whatever_shape_an_entry_has(backend):
    """An entry from elsewhere may hold anything that is JSON."""
    await backend.store.create_tape(TAPE)
    odd: list[dict[str, Any]] = [
        {"name": "no state"},
        {"name": "listed", "state": [1]},
        {"name": "pointing nowhere", "state": {}, "entry": 0},
        {"name": "pointing oddly", "state": {}, "entry": "2"},
        {"name": "true", "state": {}, "entry": True},
        {"name": "far", "state": {}, "entry": 10**30},
        {"name": "", "state": {}},
    ]
    nameless: list[dict[str, Any]] = [{}, {"name": 5, "state": {}}, {"name": None}]
    made = [anchor("x") for _ in (*odd, *nameless)]
    for entry, payload in zip(made, (*odd, *nameless), strict=True):
        entry.payload.clear()
        entry.payload.update(payload)
    await backend.store.append_many(TAPE, made)
    async for store in backend.readers():
        read = await store.read(TAPE, 2)
        found = await store.list_anchors(TAPE)
        assert [one.name for one in found] == [payload["name"] for payload in odd]
        for one, entry in zip(found, read, strict=False):
            assert (one.at, one.state, one.is_boundary) == (entry.id, entry.data, entry.is_boundary)
            assert one.entry_id == (entry.target_id or entry.id)


async def test_a_forks_boundary_names_its_parent(backend):
    await backend.store.create_tape(TAPE)
    states: list[dict[str, Any]] = [{"parent": "telegram:1"}, {"parent": 5}, {}]
    await backend.store.append_many(TAPE, [anchor(SESSION_FORK, state) for state in states])
    await backend.store.append(TAPE, anchor("tea", {"parent": "telegram:1"}))
    async for store in backend.readers():
        found = await store.list_anchors(TAPE)
        assert [one.parent for one in found] == ["telegram:1", None, None, None]
