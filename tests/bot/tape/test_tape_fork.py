"""What is written in a fork is seen there alone, and is merged into its tape whole, or leaves nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from forked_tape import CHILD, TAPE, ids, names, talk
from tape_files import says

from bot.core.errors import TapeError, TapeNotFound
from bot.tape.entries import SESSION_START
from bot.tape.search import SearchQuery
from bot.tape.service import TapeService
from bot.tape.store import HEADER_EVENT


async def found(tape: TapeService, text: str = "", **filters: Any) -> list[str]:
    """Return the texts of messages that have asked words themselves."""
    hits = await tape.search(SearchQuery(text, kinds=frozenset({"message"}), **filters))
    return [hit.entry.payload["content"] for hit in hits if hit.direct or not text]


async def test_inside_a_fork_tape_and_fork_are_one_tape(tape):
    async with tape.fork() as fork:
        written = await fork.append_many([says("c"), says("d")])
        assert ids(written) == [5, 6]
        whole = await fork.read_entries()
        assert names(whole) == [HEADER_EVENT, SESSION_START, "a", "b", "c", "d"]
        assert ids(whole) == [1, 2, 3, 4, 5, 6]
        for first in (None, -1, 1, 3, 4, 5, 6, 7):
            for last in (None, 0, 1, 4, 5, 6, 99):
                low, high = first or 0, 99 if last is None else last
                expected = [entry for entry in whole if low <= entry.id <= high]
                assert await fork.read_entries(first, last) == expected
        for before in (None, -1, 1, 4, 5, 6, 7, 10**12):
            back = [entry async for entry in fork.read_back(before)]
            expected = [entry for entry in whole if before is None or entry.id < before]
            assert back == expected[::-1]


async def test_anchors_inside_a_fork_are_those_of_both(tape):
    await tape.store.create_anchor(TAPE, "tea", 3, {"of": "tape"})
    async with tape.fork() as fork:
        assert (await fork.store.get_anchor(TAPE, "tea")).state == {"of": "tape"}
        made = await fork.store.create_anchor(TAPE, "tea", 4, {"of": "fork"})
        assert (await fork.store.get_anchor(TAPE, "tea")) == made
        assert await fork.store.resolve_anchor(TAPE, "tea") == 4
        listed = await fork.store.list_anchors(TAPE)
        assert [(one.name, one.at, one.entry_id) for one in listed] == [
            *[(SESSION_START, 2, 2), ("tea", 5, 3), ("tea", 6, 4)]
        ]
        assert (await tape.store.get_anchor(TAPE, "tea")).state == {"of": "tape"}
        for target in (0, 7, 99):
            with pytest.raises(TapeNotFound):
                await fork.store.create_anchor(TAPE, "no", target)


@pytest.mark.parametrize(
    "act",
    [
        lambda fork: fork.archive(),
        lambda fork: fork.reset(),
        lambda fork: fork.fork_session(CHILD),
        lambda fork: fork.store.create_tape(TAPE, replace_if_exists=True),
        lambda fork: fork.store.fork(TAPE, CHILD),
    ],
)
async def test_what_a_fork_cannot_take_back_is_refused_and_says_so(
    tape: TapeService, act: Callable[[TapeService], Awaitable[Any]]
):
    before = await tape.read_entries()
    async with tape.fork() as fork:
        with pytest.raises(TapeError, match=r"inside a fork.*merge it first"):
            await act(fork)
        assert await talk(fork) == ["a", "b"]
    assert await tape.read_entries() == before
    assert await tape.store.list_tapes() == [TAPE]


async def test_merges_of_many_forks_at_once_are_whole_each(tape):
    async def work(number: int) -> None:
        async with tape.fork() as fork:
            for step in range(3):
                await fork.append(says(f"{number}.{step}"))
                await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(work, number)
    said = (await talk(tape))[2:]
    assert len(said) == 30
    for start in range(0, 30, 3):
        number = said[start].split(".")[0]
        assert said[start : start + 3] == [f"{number}.{step}" for step in range(3)]


async def test_a_named_anchor_points_at_its_entry_after_the_merge(tape):
    async with tape.fork() as fork:
        await fork.append(says("c"))
        await fork.store.create_anchor(TAPE, "new", state={"n": 1})
        await fork.store.create_anchor(TAPE, "old", 3)
        await tape.append_many([says("meanwhile"), says("meanwhile")])
    new = await tape.store.get_anchor(TAPE, "new")
    assert names(await tape.read_entries(new.entry_id, new.entry_id)) == ["c"]
    assert (new.state, new.is_boundary) == ({"n": 1}, False)
    assert await tape.store.resolve_anchor(TAPE, "old") == 3


async def test_a_merge_moves_ids_of_the_fork_and_no_other_number(tape):
    async with tape.fork() as inside:
        said = await inside.append(says("c"))
        await inside.append_event("note", {"at": 9, "through": 1_760_000_000, "entry": said.id})
        await tape.append(says("meanwhile"))
    [note] = [entry for entry in await tape.read_entries() if entry.name == "note"]
    assert note.data == {"at": 9, "through": 1_760_000_000, "entry": said.id + 1}


async def test_forks_within_forks_are_merged_one_into_the_other(tape):
    async with tape.fork() as fork:
        await fork.append(says("c"))
        async with fork.fork() as inner:
            await inner.append(says("d"))
            assert await talk(inner) == ["a", "b", "c", "d"]
            assert await talk(fork) == ["a", "b", "c"]
        async with fork.fork(merge_back=False) as inner:
            await inner.append(says("lost"))
        assert await talk(fork) == ["a", "b", "c", "d"]
        assert await talk(tape) == ["a", "b"]
    assert await talk(tape) == ["a", "b", "c", "d"]


async def test_a_search_of_a_tape_is_of_that_tape_whatever_it_asks_for(tape):
    other = TapeService(tape.store, "discord:7")
    for one in (tape, other):
        await one.ensure_bootstrap_anchor()
        await one.append(says("green tea"))
    for tapes in (None, (), ("discord:7",)):
        hits = await tape.search(SearchQuery("tea", tapes=tapes))
        assert {hit.tape for hit in hits} == {TAPE}
