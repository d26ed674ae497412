"""What every tape store promises of forks."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest
from tape_talk import TAPE, back, ids, says, talk, texts, with_two_segments

from bot.core.errors import TapeExists, TapeNotFound
from bot.tape.store import HEADER_EVENT

CHILD = "telegram:42:child"


@pytest.mark.parametrize("point", [{"from_entry": 3}, {"from_anchor": "tea"}], ids=str)
async def test_the_header_of_a_fork_names_it_its_parent_and_what_was_copied(backend, point):
    await talk(backend.store, "a", "b", "c")
    await backend.store.create_anchor(TAPE, "tea", 3)
    await backend.store.fork(TAPE, CHILD, **point)
    async for store in backend.readers():
        [head, *_] = await store.read(CHILD)
        assert (head.id, head.name) == (2, HEADER_EVENT)
        parent = {"tape": TAPE, "first": 3, "last": 5}
        assert head.data == {"session": CHILD, "format": 1, "parent": parent}
        assert texts(await store.read(CHILD)) == ["b", "c"]
        assert await store.resolve_anchor(CHILD, "tea") == 3


async def test_a_fork_to_an_entry_ends_with_it(backend):
    await talk(backend.store, "a", "b", "c")
    await backend.store.fork(TAPE, CHILD, to_entry=3)
    async for store in backend.readers():
        assert ids(await store.read(CHILD)) == [1, 2, 3]
        assert await store.version(CHILD) == 3
        [head, *_] = await store.read(CHILD)
        assert head.data["parent"] == {"tape": TAPE, "first": 1, "last": 3}
    await backend.store.append(CHILD, says("d"))
    assert await backend.store.version(CHILD) == 4
    await backend.store.fork(TAPE, f"{CHILD}:all", to_entry=99)
    assert await backend.store.version(f"{CHILD}:all") == 4


async def test_a_fork_from_what_is_not_there_is_refused_and_makes_no_tape(store):
    await talk(store, "tea", "b", "c", "d")
    await talk(store, "a", tape="other")
    await store.create_anchor("other", "tea")
    for first in (0, 6, 10**12):
        with pytest.raises(TapeNotFound):
            await store.fork(TAPE, CHILD, from_entry=first)
    with pytest.raises(TapeNotFound, match="tea"):
        await store.fork(TAPE, CHILD, from_anchor="tea")
    assert await store.list_tapes() == sorted(["other", TAPE])


async def test_a_fork_never_takes_the_place_of_a_tape(store):
    await talk(store, "a")
    await talk(store, "of its own", tape=CHILD)
    for name in (TAPE, CHILD):
        with pytest.raises(TapeExists, match=name):
            await store.fork(TAPE, name)
    assert texts(await store.read(TAPE)) == ["a"]
    assert texts(await store.read(CHILD)) == ["of its own"]


async def test_of_many_forks_under_one_name_one_is_made(store):
    await talk(store, *map(str, range(50)))
    made: list[int] = []

    async def try_once(first: int) -> None:
        try:
            await store.fork(TAPE, CHILD, from_entry=first)
        except TapeExists:
            return
        made.append(first)

    async with anyio.create_task_group() as tasks:
        for first in range(2, 12):
            tasks.start_soon(try_once, first)
    assert len(made) == 1
    assert ids(await store.read(CHILD)) == list(range(made[0] - 1, 52))


async def test_a_forks_own_resets_and_archives_leave_its_parent_alone(backend):
    await talk(backend.store, "a", "b")
    before = await backend.store.read(TAPE)
    await backend.store.fork(TAPE, CHILD, from_entry=2)
    await backend.store.archive(CHILD)
    await talk(backend.store, "dropped", tape=CHILD)
    await backend.store.reset(CHILD, [says("carried")])
    async for store in backend.readers():
        assert await store.read(TAPE) == before
        assert await store.segments(TAPE) == []
        assert texts(await store.read(CHILD)) == ["carried"]
        assert ids(await store.read(CHILD)) == [6, 7]


@pytest.mark.parametrize("first", [None, 2, 4, 5, 7, 9])
async def test_a_fork_copies_across_segments(backend, first):
    await with_two_segments(backend.store)
    await backend.store.fork(TAPE, CHILD, from_entry=first)
    begin = max(first or 1, 2)
    async for store in backend.readers():
        found = await store.read(CHILD)
        assert ids(found) == list(range(begin - 1, 10))
        assert found[1:] == await store.read(TAPE, begin)
        assert await back(store, CHILD) == found[::-1]


async def test_a_fork_has_the_title_that_it_is_given_and_no_other(backend):
    await backend.store.create_tape(TAPE, "Kitchen")
    await talk(backend.store, "a")
    await backend.store.fork(TAPE, CHILD, title="Küche 🍳")
    await backend.store.fork(TAPE, "untitled")
    await backend.store.archive(CHILD)
    async for store in backend.readers():
        assert await store.get_title(CHILD) == "Küche 🍳"
        assert await store.get_title("untitled") is None
        assert await store.get_title(TAPE) == "Kitchen"


async def test_a_fork_while_others_append_copies_a_whole_moment(backend):
    """No gap, no half batch, and the header says how far it goes."""
    store = backend.store
    await talk(store, *map(str, range(200)))

    async def write() -> None:
        for number in range(6):
            await store.append_many(TAPE, [says(str(number))] * 40)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        tasks.start_soon(write)
        for number in range(3):
            await store.fork(TAPE, f"child {number}", from_entry=100)
            await anyio.lowlevel.checkpoint()
    async for reader in backend.readers():
        for number in range(3):
            found = await reader.read(f"child {number}")
            last = found[-1].id
            assert ids(found) == list(range(99, last + 1))
            assert (last - 201) % 40 == 0, "a batch was copied in part"
            assert found[0].data["parent"] == {"tape": TAPE, "first": 100, "last": last}
            assert found[1:] == await reader.read(TAPE, 100, last)
