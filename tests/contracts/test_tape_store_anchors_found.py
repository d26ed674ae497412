"""What every tape store promises whoever looks for anchors: which are found, and how soon."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tape_talk import TAPE, back, ids, says, talk, with_two_segments

from bot.core.errors import TapeNotFound
from bot.tape.entries import MEMORY_OPEN, MEMORY_SEAL, SESSION_NEW, anchor, event
from bot.tape.store import Anchor, TapeStore, named_anchor_entry


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


async def test_anchors_are_listed_oldest_first_however_they_were_made(backend):
    await talk(backend.store, "a")
    await backend.store.append(TAPE, anchor("z"))
    await backend.store.create_anchor(TAPE, "m", 2)
    await backend.store.append_many(TAPE, [anchor("a"), says("b"), anchor("k", {"n": 1})])
    async for store in backend.readers():
        assert places(await store.list_anchors(TAPE)) == [
            ("z", 3, 3),
            ("m", 4, 2),
            ("a", 5, 5),
            ("k", 7, 7),
        ]


async def test_the_memorys_own_anchors_are_listed_as_well(store):
    await store.create_tape(TAPE)
    own = [anchor(MEMORY_OPEN, {"version": 1}), anchor(MEMORY_SEAL, {"version": 1})]
    await store.append_many(TAPE, own)
    assert places(await store.list_anchors(TAPE)) == [(MEMORY_OPEN, 2, 2), (MEMORY_SEAL, 3, 3)]


async def test_a_tape_without_anchors_lists_none(backend):
    await talk(backend.store, "anchor", "tea")
    await backend.store.append(TAPE, event("tea", {"state": {}}))
    async for store in backend.readers():
        assert await store.list_anchors(TAPE) == []


async def test_an_anchor_that_is_not_there_is_named(store):
    await talk(store, "tea", "tea", tape="other")
    await store.create_anchor("other", "tea")
    await talk(store, "tea")
    for ask in (store.get_anchor, store.resolve_anchor):
        with pytest.raises(TapeNotFound, match="tea"):
            await ask(TAPE, "tea")


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.create_anchor("nobody", "tea"),
        lambda store: store.create_anchor("nobody", "tea", 1),
        lambda store: store.get_anchor("nobody", "tea"),
        lambda store: store.resolve_anchor("nobody", "tea"),
        lambda store: store.list_anchors("nobody"),
    ],
)
async def test_a_tape_that_is_not_there_has_no_anchors_and_gets_none(
    store: TapeStore, ask: Callable[[TapeStore], Awaitable[Any]]
):
    await talk(store, "a")
    await store.create_anchor(TAPE, "tea")
    with pytest.raises(TapeNotFound, match="nobody"):
        await ask(store)
    assert await store.list_tapes() == [TAPE]


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


@pytest.mark.parametrize("replace", [False, True])
async def test_a_reset_drops_the_anchors_whether_sealed_or_live(backend, replace):
    await talk(backend.store, "a")
    await backend.store.create_anchor(TAPE, "sealed")
    await backend.store.create_anchor(TAPE, "both")
    await backend.store.archive(TAPE)
    await backend.store.create_anchor(TAPE, "both")
    await backend.store.append(TAPE, anchor("live"))
    if replace:
        await backend.store.create_tape(TAPE, replace_if_exists=True)
    else:
        await backend.store.reset(TAPE)
    async for store in backend.readers():
        assert await store.list_anchors(TAPE) == []
        for name in ("sealed", "both", "live"):
            with pytest.raises(TapeNotFound, match=name):
                await store.get_anchor(TAPE, name)


async def test_ids_that_come_after_a_reset_bring_no_dropped_anchor_back(backend):
    await talk(backend.store, "a")
    await backend.store.create_anchor(TAPE, "dropped")
    await backend.store.list_anchors(TAPE)
    await backend.store.reset(TAPE)
    await talk(backend.store, "b", "c", "d")
    async for store in backend.readers():
        assert await store.list_anchors(TAPE) == []


async def test_carried_anchors_are_anchors(backend):
    await talk(backend.store, "a")
    await backend.store.archive(
        TAPE, [anchor(SESSION_NEW, {"n": 1}), named_anchor_entry("tea", 2, None)]
    )
    await backend.store.reset(
        TAPE, [anchor(SESSION_NEW, {"n": 2}), named_anchor_entry("tea", 1, None)]
    )
    async for store in backend.readers():
        assert places(await store.list_anchors(TAPE)) == [(SESSION_NEW, 7, 7), ("tea", 8, 1)]
        assert (await store.get_anchor(TAPE, SESSION_NEW)).state == {"n": 2}


async def test_a_fork_has_the_anchors_that_were_copied_and_they_are_its_own(backend):
    await talk(backend.store, "a", "b")
    await backend.store.create_anchor(TAPE, "before", 2)
    await backend.store.create_anchor(TAPE, "tea", 3)
    await backend.store.fork(TAPE, "child", from_entry=5)
    await backend.store.create_anchor(TAPE, "parents")
    await backend.store.create_anchor("child", "childs")
    async for store in backend.readers():
        assert places(await store.list_anchors("child")) == [("tea", 5, 3), ("childs", 6, 5)]
        assert {one.tape for one in await store.list_anchors("child")} == {"child"}
        assert [one.name for one in await store.list_anchors(TAPE)] == ["before", "tea", "parents"]


# When they are seen.


async def test_an_anchor_is_seen_as_soon_as_it_is_appended(store):
    await talk(store, "a")
    for number in range(50):
        name = f"{number % 7}"
        if number % 2:
            made = await store.create_anchor(TAPE, name, state={"n": number})
            at, target = made.at, made.entry_id
        else:
            at = target = (await store.append(TAPE, anchor(name, {"n": number}))).id
        found = await store.get_anchor(TAPE, name)
        assert (found.at, found.entry_id, found.state) == (at, target, {"n": number})
        assert await store.resolve_anchor(TAPE, name) == target
        assert len(await store.list_anchors(TAPE)) == number + 1


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


async def test_anchors_are_seen_through_archives_that_happen_meanwhile(backend):
    store = backend.store
    await talk(store, "a")

    async def make(name: str) -> None:
        for number in range(10):
            await store.create_anchor(TAPE, name, state={"n": number})
            assert (await store.get_anchor(TAPE, name)).state == {"n": number}

    async with anyio.create_task_group() as tasks:
        for name in "abc":
            tasks.start_soon(make, name)
        for _ in range(5):
            tasks.start_soon(store.archive, TAPE)
    async for reader in backend.readers():
        found = await reader.list_anchors(TAPE)
        for name in "abc":
            assert [one.state["n"] for one in found if one.name == name] == list(range(10))


async def test_anchors_are_the_same_with_background_work_and_without(backend):
    store = backend.store
    await talk(store, "a")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        for number in range(30):
            await store.create_anchor(TAPE, f"{number}")
            assert len(await store.list_anchors(TAPE)) == number + 1
            if number % 10 == 5:
                await store.archive(TAPE)
        tasks.cancel_scope.cancel()
    await store.create_anchor(TAPE, "after")
    async for reader in backend.readers():
        found = await reader.list_anchors(TAPE)
        assert [one.name for one in found] == [*map(str, range(30)), "after"]


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5, 8, 12])
async def test_an_anchor_cancelled_at_any_step_is_there_or_not_and_the_list_says_so(backend, steps):
    store = backend.store
    await talk(store, "a")

    async def disturb(act: Callable[[], Awaitable[Any]]) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(act)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

    await disturb(lambda: store.create_anchor(TAPE, "perhaps"))
    await disturb(lambda: store.list_anchors(TAPE))
    await disturb(lambda: store.get_anchor(TAPE, "perhaps"))
    await store.create_anchor(TAPE, "surely")
    async for reader in backend.readers():
        entries = [entry for entry in await reader.read(TAPE) if entry.kind == "anchor"]
        found = await reader.list_anchors(TAPE)
        assert [(one.name, one.at) for one in found] == [(e.name, e.id) for e in entries]
        assert found[-1].name == "surely"
        assert (await back(reader))[0].name == "surely"
