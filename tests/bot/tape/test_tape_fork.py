"""Forks that are merged or discarded, and children that are sessions of their own."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tape_files import opened, says

from bot.core.errors import TapeError, TapeExists, TapeNotFound, VersionConflict
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.session_fold import SessionFold, session_mark_entry
from bot.memory.session.state.zone_snapshot import MemorySnapshot, zone_entries
from bot.tape.codec import decode_line
from bot.tape.entries import (
    MEMORY_OPEN,
    MEMORY_SEAL,
    SESSION_FORK,
    SESSION_START,
    TapeEntry,
    event,
    message,
)
from bot.tape.search import SearchQuery
from bot.tape.service import TapeService
from bot.tape.store import HEADER_EVENT
from bot.tape.stores.in_memory import InMemoryTapeStore

TAPE = "telegram:42"
CHILD = "telegram:42/fork-1"
NOW = "2026-02-10T10:00:00.000+00:00"


@pytest.fixture(params=["memory", "file"])
async def tape(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TapeService]:
    """A tape with the header at 1, ``session/start`` at 2, and messages at 3 and 4."""
    if request.param == "memory":
        store = InMemoryTapeStore()
        yield await begun(TapeService(store, TAPE))
        await store.close()
    else:
        async with opened(tmp_path / "tapes") as files:
            yield await begun(TapeService(files, TAPE))


async def begun(service: TapeService) -> TapeService:
    await service.ensure_bootstrap_anchor()
    await service.append_many([says("a"), says("b")])
    return service


def names(entries: list[TapeEntry]) -> list[str]:
    return [entry.name or entry.payload["content"] for entry in entries]


def ids(entries: list[TapeEntry]) -> list[int]:
    return [entry.id for entry in entries]


async def talk(tape: TapeService) -> list[str]:
    return names([entry for entry in await tape.read_entries() if entry.kind == "message"])


async def found(tape: TapeService, text: str = "", **filters: Any) -> list[str]:
    """Return the texts of messages that have asked words themselves."""
    hits = await tape.search(SearchQuery(text, kinds=frozenset({"message"}), **filters))
    return [hit.entry.payload["content"] for hit in hits if hit.direct or not text]


# Merging.


async def test_what_was_written_in_a_fork_is_on_the_tape_after_it(tape):
    async with tape.fork() as fork:
        written = await fork.append_many([says("c"), says("d")])
        written.append(await fork.append_event("note", {"n": 1}))
    assert (await tape.read_entries(5)) == written


async def test_a_merge_has_dense_ids_behind_what_the_parent_wrote_meanwhile(tape):
    async with tape.fork() as fork:
        await fork.append_many([says("c"), says("d")])
        await tape.append(says("meanwhile"))
        await fork.append(says("e"))
    assert await talk(tape) == ["a", "b", "meanwhile", "c", "d", "e"]
    assert ids(await tape.read_entries()) == list(range(1, 9))


async def test_a_merge_is_one_append(tmp_path):
    """A kill within it leaves nothing of it: each line says how many are to come."""
    async with opened(tmp_path) as store:
        tape = await begun(TapeService(store, TAPE))
        async with tape.fork() as fork:
            for text in "cdef":
                await fork.append(says(text))
            await tape.append(says("meanwhile"))
    [path] = tmp_path.glob("*.jsonl")
    lines = [decode_line(raw) for raw in path.read_bytes().splitlines()]
    assert [line.more for line in lines if line is not None][-5:] == [0, 3, 2, 1, 0]


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


async def test_observers_see_a_merge_once_with_the_ids_it_has_on_the_tape(tape):
    seen: list[TapeEntry] = []
    tape.observe(seen.append)
    async with tape.fork() as fork:
        await fork.append_many([says("c"), says("d")])
        assert seen == []
        await tape.append(says("meanwhile"))
    assert seen == await tape.read_entries(5)


async def test_what_is_merged_keeps_its_time_and_all_it_says(tape):
    async with tape.fork() as fork:
        written = await fork.append(message("user", "c", sender={"id": "7"}, value=[2**63, []]))
        await tape.append(says("meanwhile"))
    [merged] = await tape.read_entries(6)
    assert (merged.payload, merged.meta) == (written.payload, written.meta)


async def test_a_fork_in_which_nothing_was_written_leaves_the_tape_as_it_was(tape):
    before = await tape.read_entries()
    async with tape.fork():
        pass
    assert await tape.read_entries() == before


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


FULL_DISK = """
import resource, signal, sys
import anyio
from bot.core.errors import TapeWriteError
from bot.tape.entries import message
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

async def main(folder):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = FileTapeStore(folder, sync=False)
    tape = TapeService(store, "telegram:42")
    await tape.ensure_bootstrap_anchor()
    [path] = folder.glob("*.jsonl")
    try:
        async with tape.fork() as fork:
            for _ in range(10):
                await fork.append(message("user", "x" * 500))
            limit(path.stat().st_size + 2000)
    except TapeWriteError:
        limit(resource.RLIM_INFINITY)
        await tape.append(message("user", "after"))
        print([entry.id for entry in await store.read("telegram:42")])
    await store.close()

from pathlib import Path
anyio.run(main, Path(sys.argv[1]))
"""


async def test_a_merge_that_the_disk_refuses_leaves_nothing_of_it(tmp_path):
    told = await anyio.run_process([sys.executable, "-c", FULL_DISK, str(tmp_path)])
    assert told.stdout.decode().strip() == "[1, 2, 3]"
    async with opened(tmp_path) as store:
        assert await talk(TapeService(store, TAPE)) == ["after"]


# Discarding.


async def test_a_fork_that_is_not_to_be_kept_leaves_nothing(tape):
    before = await tape.read_entries()
    async with tape.fork(merge_back=False) as fork:
        await fork.append_many([says("c"), says("d")])
        await fork.handoff("problem/7")
    assert await tape.read_entries() == before


async def test_an_exception_discards_the_fork_and_is_passed_on(tape):
    before = await tape.read_entries()

    async def work() -> None:
        async with tape.fork() as fork:
            await fork.append(says("c"))
            raise LookupError("the work failed")

    with pytest.raises(LookupError, match="the work failed"):
        await work()
    assert await tape.read_entries() == before
    async with tape.fork() as fork:
        await fork.append(says("d"))
    assert await talk(tape) == ["a", "b", "d"]


@pytest.mark.parametrize("steps", range(8))
async def test_a_fork_that_is_cancelled_leaves_nothing_or_all(tape, steps):
    """Until its merge has begun, nothing; never a part."""

    async def work() -> None:
        async with tape.fork() as fork:
            await fork.append(says("c"))
            await anyio.lowlevel.checkpoint()
            await fork.append(says("d"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        for _ in range(steps):
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert (await talk(tape))[2:] in ([], ["c", "d"])
    await tape.append(says("after"))
    assert ids(await tape.read_entries()) == list(range(1, await tape.version() + 1))


async def test_a_fork_that_is_cancelled_while_it_waits_leaves_nothing(tape):
    waiting = anyio.Event()

    async def work() -> None:
        async with tape.fork() as fork:
            await fork.append(says("c"))
            waiting.set()
            await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        await waiting.wait()
        tasks.cancel_scope.cancel()
    assert await talk(tape) == ["a", "b"]


# Inside and outside.


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


# Children.


async def test_a_child_begins_at_the_last_boundary_with_a_tape_of_its_own(tape):
    await tape.handoff("problem/7", {"summary": "the sink leaks"})
    await tape.append(says("c"))
    child = await tape.fork_session(CHILD, intention="find a plumber")
    assert child.name == CHILD
    found = await child.read_entries()
    assert names(found) == [HEADER_EVENT, "problem/7", "c", SESSION_FORK]
    assert ids(found) == [4, 5, 6, 7]
    assert found[1:3] == await tape.read_entries(5)
    assert found[0].data["parent"] == {"tape": TAPE, "first": 5, "last": 6}


async def test_a_childs_boundary_says_what_it_is_for_and_where_it_is_from(tape):
    child = await tape.fork_session(CHILD, intention="find a plumber")
    [boundary] = await child.read_entries(5)
    assert boundary.is_boundary
    assert boundary.data == {
        "summary": "find a plumber",
        "next_steps": ["find a plumber"],
        "source": [2, 4],
        "owner": "human",
        "reason": "fork",
        "parent": TAPE,
        "keep_from": 2,
    }
    assert (await child.info()).parent == TAPE
    assert (await tape.info()).parent is None


async def test_a_child_can_begin_at_a_named_anchor(tape):
    await tape.store.create_anchor(TAPE, "tea", 4)
    child = await tape.fork_session(CHILD, "tea")
    assert await talk(child) == ["b"]
    [head, *_] = await child.read_entries()
    assert head.data["parent"] == {"tape": TAPE, "first": 4, "last": 5}


async def test_a_child_of_nowhere_and_a_child_of_a_taken_name_are_refused(tape):
    await tape.store.create_tape("taken")
    before = await tape.read_entries()
    with pytest.raises(TapeNotFound, match="nowhere"):
        await tape.fork_session(CHILD, "nowhere")
    with pytest.raises(TapeExists, match="taken"):
        await tape.fork_session("taken")
    with pytest.raises(TapeExists, match=TAPE):
        await tape.fork_session(TAPE)
    assert await tape.store.list_tapes() == sorted(["taken", TAPE])
    assert await tape.read_entries() == before


async def test_parent_and_child_go_their_own_ways(tape):
    child = await tape.fork_session(CHILD)
    await child.append(says("the child's"))
    await tape.append(says("the parent's"))
    assert await talk(tape) == ["a", "b", "the parent's"]
    assert await talk(child) == ["a", "b", "the child's"]
    await tape.reset()
    assert await talk(child) == ["a", "b", "the child's"]


async def test_a_child_of_a_child_names_the_child(tape):
    child = await tape.fork_session(CHILD)
    await child.append(says("c"))
    grandchild = await child.fork_session("grandchild")
    assert (await grandchild.info()).parent == CHILD
    assert await view(grandchild) == ["c"]


async def fold_of(tape: TapeService) -> SessionFold:
    return await load_fold(tape, max_messages=50, max_tokens=100_000)


async def view(tape: TapeService) -> list[str]:
    entries = (await fold_of(tape)).window.entries
    return names([entry for entry in entries if entry.kind == "message"])


def remembered() -> MemorySnapshot:
    return (
        MemorySnapshot()
        .with_long_term("Ada likes green tea.")
        .with_daily("2026-02-10", "Bought a samovar.")
    )


@pytest.mark.parametrize("after_boundary", [False, True])
@pytest.mark.parametrize("archived", [False, True])
async def test_a_child_remembers_what_its_parent_remembers(tape, after_boundary, archived):
    if not after_boundary:
        await tape.append_many(zone_entries(remembered(), NOW))
    await tape.handoff("problem/7", {"summary": "s"})
    if after_boundary:
        await tape.append_many(zone_entries(remembered(), NOW))
    if archived:
        await tape.archive()
    await tape.append(says("c"))
    child = await tape.fork_session(CHILD, intention="find a plumber")
    fold = await fold_of(child)
    assert fold.zone.snapshot == (await fold_of(tape)).zone.snapshot == remembered()
    assert fold.prompt_snapshot == remembered()
    assert await view(child) == ["c"]
    assert fold.boundary is not None
    assert fold.boundary.name == SESSION_FORK


async def test_a_child_has_its_parents_newest_memory_and_none_before_it(tape):
    old = MemorySnapshot().with_long_term("Ada likes coffee.")
    for snapshot in (
        old,
        old.without_own_memory(),
        old.without_own_memory().with_long_term("Ada likes tea."),
    ):
        await tape.append_many(zone_entries(snapshot, NOW))
    await tape.handoff("problem/7")
    child = await tape.fork_session(CHILD)
    assert (await fold_of(child)).zone.snapshot.long_term == "Ada likes tea."
    zones = [e.name for e in await child.read_entries() if e.name in (MEMORY_OPEN, MEMORY_SEAL)]
    assert zones == [MEMORY_OPEN, MEMORY_SEAL]


async def test_a_child_of_a_parent_that_remembers_nothing_remembers_nothing(tape):
    child = await tape.fork_session(CHILD)
    assert (await fold_of(child)).zone.snapshot == MemorySnapshot()
    assert await view(child) == ["a", "b"]


async def test_a_childs_memory_versions_go_on_from_its_parents(tape):
    await tape.append_many(zone_entries(remembered(), NOW))
    child = await tape.fork_session(CHILD)
    fold = await fold_of(child)
    await child.append_many(zone_entries(fold.zone.snapshot.with_long_term("Bo"), NOW))
    assert (await fold_of(child)).zone.snapshot.long_term == "Bo"
    assert (await fold_of(tape)).zone.snapshot == remembered()


async def test_pointers_of_the_parent_do_not_mislead_a_child(tape):
    """They name entries that were not copied; folded whole, the child says the same."""
    await tape.append_many(zone_entries(remembered(), NOW))
    await tape.append(session_mark_entry(await fold_of(tape)))
    await tape.handoff("problem/7", {"summary": "s"})
    await tape.append(says("c"))
    await tape.append(session_mark_entry(await fold_of(tape)))
    await tape.append(says("d"))
    child = await tape.fork_session(CHILD)
    from_pointers = await fold_of(child)
    whole = SessionFold(type(from_pointers.window)(50, 100_000))
    for entry in await child.read_entries():
        whole.apply(entry)
    assert from_pointers.pointers() == whole.pointers()
    assert from_pointers.window.entries == whole.window.entries
    assert await view(child) == ["c", "d"]
    assert from_pointers.prompt_snapshot == remembered()


async def test_a_child_owes_nobody_what_its_parent_owes(tape):
    """Neither the turn that runs in the parent nor an answer still to be delivered is the child's."""
    await tape.append_many(
        [message("user", "c", inbound="i1"), event("turn.start", {"turn": "t1", "inbound": ["i1"]})]
    )
    assert (await fold_of(tape)).turns.open_turn is not None
    child = await tape.fork_session(CHILD)
    turns = (await fold_of(child)).turns
    assert turns.open_turn is None
    assert turns.unanswered == {}
    assert turns.undelivered == {}
