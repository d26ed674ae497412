"""What is seen inside a fork and outside it before the merge, and what a fork refuses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from forked_tape import CHILD, TAPE, ids, names, talk
from tape_files import says

from bot.core.errors import TapeError, TapeNotFound, VersionConflict
from bot.tape.entries import SESSION_START, event
from bot.tape.search import SearchQuery
from bot.tape.service import TapeService
from bot.tape.store import HEADER_EVENT


async def found(tape: TapeService, text: str = "", **filters: Any) -> list[str]:
    """Return the texts of messages that have asked words themselves."""
    hits = await tape.search(SearchQuery(text, kinds=frozenset({"message"}), **filters))
    return [hit.entry.payload["content"] for hit in hits if hit.direct or not text]


async def test_nothing_of_a_fork_is_seen_outside_before_the_merge(tape):
    async with tape.fork() as fork:
        await fork.append(says("secret"))
        await fork.store.create_anchor(TAPE, "here")
        await fork.handoff("problem/7")
        assert await talk(tape) == ["a", "b"]
        assert await tape.version() == 4
        assert [entry.id async for entry in tape.read_back()] == [4, 3, 2, 1]
        assert [one.name for one in await tape.store.list_anchors(TAPE)] == [SESSION_START]
        assert await found(tape, "secret") == []
        assert names(await tape.from_last_anchor()) == [SESSION_START, "a", "b"]
        assert await tape.store.list_tapes() == [TAPE]


async def test_what_the_parent_writes_meanwhile_is_not_seen_inside(tape):
    async with tape.fork() as fork:
        await tape.append(says("meanwhile"))
        await tape.handoff("problem/7")
        await tape.store.create_anchor(TAPE, "here", 3)
        assert await talk(fork) == ["a", "b"]
        assert await fork.version() == 4
        assert [one.name for one in await fork.store.list_anchors(TAPE)] == [SESSION_START]
        assert await found(fork, "meanwhile") == []
        await fork.append(says("c"))
        assert await talk(fork) == ["a", "b", "c"]
        assert names(await fork.from_last_anchor()) == [SESSION_START, "a", "b", "c"]


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


async def test_an_anchor_of_a_fork_cannot_name_what_only_the_parent_has(tape):
    async with tape.fork() as fork:
        await tape.append(says("meanwhile"))
        with pytest.raises(TapeNotFound):
            await fork.store.create_anchor(TAPE, "no", 5)


async def test_a_search_inside_a_fork_knows_both(tape):
    await tape.append(says("green tea"))
    async with tape.fork() as fork:
        for number in range(10):
            await fork.append(says(f"tea number {number}"))
            assert len(await found(fork, "tea", limit=50)) == number + 2
        assert await found(fork, '"green tea"') == ["green tea"]
        assert await found(fork, '"tea number 4"') == ["tea number 4"]
        assert len(await fork.search(SearchQuery("tea", limit=3))) == 3
        assert await found(fork, limit=3) == ["tea number 9", "tea number 8", "tea number 7"]
        assert await found(fork, "tea", last=5) == ["green tea"]
        assert len(await found(fork, "tea", first=6, last=8)) == 3
        assert await found(tape, "tea") == ["green tea"]


async def test_a_search_inside_a_fork_goes_by_the_anchors_of_both(tape):
    await tape.store.create_anchor(TAPE, "here", 3)
    async with tape.fork() as fork:
        assert await found(fork, after_anchor="here") == ["b"]
        await fork.append(says("c"))
        await fork.store.create_anchor(TAPE, "here")
        await fork.append(says("d"))
        assert await found(fork, after_anchor="here") == ["d"]
        assert await found(fork, before_anchor="here") == ["b", "a"]
        with pytest.raises(TapeNotFound):
            await found(fork, after_anchor="nowhere")


async def test_a_search_inside_a_fork_is_of_its_tape_alone(tape):
    await tape.store.create_tape("other")
    await tape.store.append("other", says("tea"))
    async with tape.fork() as fork:
        await fork.append(says("tea"))
        for tapes in (None, (TAPE,), ("other", TAPE)):
            hits = await fork.store.search(SearchQuery("tea", tapes=tapes))
            assert [(hit.tape, hit.entry.id) for hit in hits] == [(TAPE, 5)]
        for tapes in ((), ("other",)):
            assert await fork.store.search(SearchQuery("tea", tapes=tapes)) == []


async def test_neighbours_inside_a_fork_are_those_that_the_fork_has(tape):
    await tape.append(says("xylophone"))
    async with tape.fork() as fork:
        await tape.append(says("meanwhile"))
        await fork.append(says("zither"))
        for word, before, after in (
            ("xylophone", ["b"], ["zither"]),
            ("zither", ["xylophone"], []),
        ):
            hit = (await fork.search(SearchQuery(word, neighbours=1)))[0]
            assert names([hit.entry]) == [word]
            assert (names(list(hit.before)), names(list(hit.after))) == (before, after)


async def test_neighbours_in_a_fork_are_found_beyond_any_number_of_other_entries(tape):
    await tape.append(says("xylophone"))
    await tape.append_many([event("tick", {"n": n}) for n in range(200)])
    await tape.append(says("zither"))
    async with tape.fork() as fork:
        hit = (await fork.search(SearchQuery("xylophone", neighbours=1)))[0]
        assert names(list(hit.after)) == ["zither"]
        hit = (await fork.search(SearchQuery("zither", neighbours=1)))[0]
        assert names(list(hit.before)) == ["xylophone"]


async def test_whoever_follows_inside_a_fork_sees_what_is_written_there(tape):
    async with tape.fork() as fork:
        await fork.append(says("c"))
        entries = fork.store.follow(TAPE, 3)
        with anyio.fail_after(30):
            assert names([await anext(entries), await anext(entries)]) == ["b", "c"]
            await tape.append(says("meanwhile"))
            await fork.append(says("d"))
            assert names([await anext(entries)]) == ["d"]
        await entries.aclose()


async def test_a_batch_in_a_fork_expects_the_forks_version(tape):
    async with tape.fork() as fork:
        await tape.append(says("meanwhile"))
        with pytest.raises(VersionConflict):
            await fork.append_many([says("c")], expect=5)
        assert ids(await fork.append_many([says("c")], expect=4)) == [5]


async def test_a_fork_of_an_archived_tape_reaches_into_its_segments(tape):
    await tape.archive()
    async with tape.fork() as fork:
        await fork.append(says("c"))
        assert await talk(fork) == ["a", "b", "c"]
        assert await fork.store.segments(TAPE) == await tape.store.segments(TAPE)


async def test_a_parent_that_is_archived_meanwhile_is_still_read_whole(tape):
    async with tape.fork() as fork:
        await fork.append(says("c"))
        await tape.archive()
        assert await talk(fork) == ["a", "b", "c"]
    assert await talk(tape) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "act",
    [
        lambda fork: fork.archive(),
        lambda fork: fork.reset(),
        lambda fork: fork.reset(archive=True),
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


@pytest.mark.parametrize(
    "act",
    [
        lambda store: store.create_tape("other"),
        lambda store: store.get_title("other"),
        lambda store: store.version("other"),
        lambda store: store.read("other"),
        lambda store: anext(store.read_back("other")),
        lambda store: store.append("other", says("x")),
        lambda store: store.segments("other"),
        lambda store: store.create_anchor("other", "tea"),
        lambda store: store.get_anchor("other", "tea"),
        lambda store: store.list_anchors("other"),
        lambda store: store.resolve_anchor("other", "tea"),
    ],
)
async def test_other_tapes_are_not_in_a_fork(tape, act):
    await tape.store.create_tape("other")
    async with tape.fork() as fork:
        with pytest.raises(TapeNotFound, match="other"):
            await act(fork.store)
        assert await fork.store.list_tapes() == [TAPE]
