"""What every tape store promises of anchors: how they are made, what they mean, and which are found."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tape_talk import TAPE, ids, says, talk, with_two_segments

from bot.core.errors import InvalidEntry, TapeNotFound
from bot.tape.entries import (
    MEMORY_CONSOLIDATED,
    MEMORY_OPEN,
    MEMORY_SEAL,
    SESSION_NEW,
    SESSION_START,
    anchor,
)
from bot.tape.store import Anchor

# Making them.


async def test_an_anchor_names_the_newest_entry_where_none_is_given(backend):
    await talk(backend.store, "a", "b")
    made = await backend.store.create_anchor(TAPE, "tea")
    assert (made.tape, made.name, made.at, made.entry_id, made.state) == (TAPE, "tea", 4, 3, {})
    async for store in backend.readers():
        assert await store.get_anchor(TAPE, "tea") == made
        assert await store.list_anchors(TAPE) == [made]


async def test_an_anchor_for_an_entry_that_is_not_there_or_was_dropped_is_refused(store):
    await talk(store, "a")
    await store.archive(TAPE)
    await talk(store, "dropped")
    await store.reset(TAPE)
    for target in (0, 2, 4, 6, 10**12):
        with pytest.raises(TapeNotFound):
            await store.create_anchor(TAPE, "tea", target)
    assert await store.version(TAPE) == 5
    assert await store.list_anchors(TAPE) == []
    assert (await store.create_anchor(TAPE, "tea", 5)).entry_id == 5


@pytest.mark.parametrize(
    "name", ["", " ", "\n\t", MEMORY_OPEN, MEMORY_SEAL, MEMORY_CONSOLIDATED], ids=ascii
)
async def test_a_name_that_is_empty_or_the_memorys_own_is_refused(store, name):
    await talk(store, "a")
    with pytest.raises(InvalidEntry):
        await store.create_anchor(TAPE, name, 2)
    assert await store.version(TAPE) == 2


NAMES = [
    "a",
    "problem/7",
    SESSION_START,
    "Küche 🍳",
    "%_'\"\\*",
    "line\nbreak",
    "x" * 2000,
    "tea",
    "Tea",
]
NAMES += ["tea ", "te_", "te%", "té", "te\u0301", "tea\x00", "tea\x00b"]


async def test_any_other_name_finds_its_anchor_alone_though_it_differs_in_one_character(backend):
    await talk(backend.store, "a")
    for name in NAMES:
        await backend.store.create_anchor(TAPE, name, 2, {"name": name})
    async for store in backend.readers():
        for name in NAMES:
            assert (await store.get_anchor(TAPE, name)).state == {"name": name}
            assert await store.resolve_anchor(TAPE, name) == 2


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


async def test_an_appended_anchor_cuts_unless_it_is_the_memorys_own_and_a_bookmark_never(backend):
    await backend.store.create_tape(TAPE)
    names = ["tea", SESSION_NEW, MEMORY_OPEN, MEMORY_SEAL, MEMORY_CONSOLIDATED]
    await backend.store.append_many(TAPE, [anchor(name, {"version": 1}) for name in names])
    for name in ("tea", SESSION_NEW, "problem/7", "auto_handoff/context_overflow"):
        assert not (await backend.store.create_anchor(TAPE, name, state={"n": 1})).is_boundary
    async for store in backend.readers():
        for found in (await store.list_anchors(TAPE), await store.read(TAPE)):
            assert [one.name for one in found if one.is_boundary] == ["tea", SESSION_NEW]


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


def places(anchors: list[Anchor]) -> list[tuple[str, int, int]]:
    return [(one.name, one.at, one.entry_id) for one in anchors]


# Finding them.


async def test_of_several_anchors_of_one_name_the_last_counts_and_all_are_listed(backend):
    await talk(backend.store, "a", "b", "c")
    for target in (4, 2, 3):
        await backend.store.create_anchor(TAPE, "tea", target, {"target": target})
    async for store in backend.readers():
        assert places(await store.list_anchors(TAPE)) == [
            ("tea", 5, 4),
            ("tea", 6, 2),
            ("tea", 7, 3),
        ]
        assert (await store.get_anchor(TAPE, "tea")).state == {"target": 3}
        assert await store.resolve_anchor(TAPE, "tea") == 3


async def test_an_anchor_that_is_not_there_is_named(store):
    await talk(store, "tea", "tea", tape="other")
    await store.create_anchor("other", "tea")
    await talk(store, "tea")
    for ask in (store.get_anchor, store.resolve_anchor):
        with pytest.raises(TapeNotFound, match="tea"):
            await ask(TAPE, "tea")


async def test_a_name_is_of_its_tape_alone(backend):
    tapes = [TAPE, "telegram:4", "telegram:42:1", "TELEGRAM:42", "telegram:4_"]
    for place, tape in enumerate(tapes):
        await talk(backend.store, *"abcdef"[: place + 1], tape=tape)
        await backend.store.create_anchor(tape, "tea", state={"tape": tape})
    async for store in backend.readers():
        for place, tape in enumerate(tapes):
            found = await store.get_anchor(tape, "tea")
            assert (found.tape, found.state, found.entry_id) == (tape, {"tape": tape}, place + 2)
            assert await store.list_anchors(tape) == [found]


async def test_anchors_in_segments_are_found_and_point_into_them(backend):
    await with_two_segments(backend.store)
    await backend.store.create_anchor(TAPE, "tea", 3)
    await backend.store.archive(TAPE)
    await backend.store.create_anchor(TAPE, "cake", 6)
    async for store in backend.readers():
        assert places(await store.list_anchors(TAPE)) == [("tea", 10, 3), ("cake", 12, 6)]
        assert await store.resolve_anchor(TAPE, "tea") == 3
        assert [e.payload["content"] for e in await store.read(TAPE, 3, 3)] == ["b"]


# When they are seen.


async def test_anchors_made_at_once_are_all_there_in_the_order_of_their_ids(backend):
    store = backend.store
    await talk(store, "a")
    seen: list[Anchor] = []

    async def make(number: int) -> None:
        for step in range(5):
            made = await store.create_anchor(TAPE, f"{number}", state={"step": step})
            assert await store.get_anchor(TAPE, f"{number}") == made
            seen.append(made)

    async def write() -> None:
        for _ in range(20):
            await store.append_many(TAPE, [says("x"), says("y")])

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(make, number)
        tasks.start_soon(write)
    async for reader in backend.readers():
        found = await reader.list_anchors(TAPE)
        assert found == sorted(seen, key=lambda one: one.at)
        there = set(ids(await reader.read(TAPE)))
        assert all(one.entry_id < one.at and one.entry_id in there for one in found)
