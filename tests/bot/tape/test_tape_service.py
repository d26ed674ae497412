"""One tape as the application uses it."""

from __future__ import annotations

import pytest
from forked_tape import names
from tape_files import killed_before, opened, says

from bot.core.errors import TapeNotFound
from bot.tape.entries import MEMORY_SEAL, SESSION_START, event
from bot.tape.search import SearchQuery
from bot.tape.service import TapeInfo, TapeService
from bot.tape.store import HEADER_EVENT, REPAIR_EVENT
from bot.tape.stores.in_memory import InMemoryTapeStore

TAPE = "telegram:42"


@pytest.fixture
async def tape() -> TapeService:
    service = TapeService(InMemoryTapeStore(), TAPE)
    await service.ensure_bootstrap_anchor()
    return service


async def test_a_tape_begins_with_one_session_start_however_often_it_is_bootstrapped(tape):
    await tape.ensure_bootstrap_anchor()
    await tape.append(says("hi"))
    await tape.ensure_bootstrap_anchor()
    found = await tape.read_entries()
    assert names(found) == [HEADER_EVENT, SESSION_START, "hi"]
    assert found[1].data == {"owner": "human"}


async def test_a_kill_during_the_first_anchor_leaves_a_tape_that_still_gets_one(tmp_path):
    async with opened(tmp_path) as store:
        await TapeService(store, TAPE).ensure_bootstrap_anchor()
    [path] = tmp_path.glob("*.jsonl")
    killed_before(path, path.read_bytes()[:-10])
    for _ in range(2):
        async with opened(tmp_path) as store:
            service = TapeService(store, TAPE)
            await service.ensure_bootstrap_anchor()
            told = names(await service.read_entries())
            assert told == [HEADER_EVENT, REPAIR_EVENT, SESSION_START]


async def test_only_boundary_anchors_cut_the_view(tape):
    await tape.append(says("old"))
    await tape.handoff("problem/7", {"summary": "the sink leaks"})
    await tape.append_many([says("a"), event("turn.end", {})])
    await tape.handoff(MEMORY_SEAL, {"version": 1})
    await tape.append(says("b"))
    found = await tape.from_last_anchor()
    assert names(found) == ["problem/7", "a", "turn.end", MEMORY_SEAL, "b"]
    assert names(await tape.from_last_anchor({"anchor", "message"})) == [
        *["problem/7", "a", MEMORY_SEAL, "b"]
    ]


async def test_what_follows_an_anchor_is_found_by_its_name_across_segments(tape):
    await tape.handoff("tea")
    await tape.append(says("a"))
    await tape.archive()
    await tape.append(says("b"))
    assert names(await tape.after_anchor("tea")) == ["a", HEADER_EVENT, "b"]
    assert names(await tape.after_anchor("tea", {"message"})) == ["a", "b"]
    await tape.handoff("tea")
    assert await tape.after_anchor("tea") == []


async def test_what_lies_between_two_anchors_is_between_the_last_of_each(tape):
    for text in ("first", "second"):
        await tape.handoff("start")
        await tape.append_many([says(text), event("e", {})])
        await tape.handoff("end")
        await tape.append(says("after"))
    assert names(await tape.between_anchors("start", "end")) == ["second", "e"]
    assert names(await tape.between_anchors("start", "end", {"message"})) == ["second"]
    assert names(await tape.between_anchors("end", "start")) == ["after"]


async def test_an_anchor_that_is_not_there_is_named(tape):
    await tape.append_event("tea", {})
    await tape.handoff("end")
    for asked in (tape.after_anchor("tea"), tape.between_anchors("tea", "end")):
        with pytest.raises(TapeNotFound, match="tea"):
            await asked


async def test_reset_begins_again_at_session_start_and_archives_if_asked(tape):
    await tape.append(says("a"))
    await tape.reset(archive=True)
    assert names(await tape.from_last_anchor()) == [SESSION_START]
    info = await tape.info()
    assert (info.entries, info.segments, info.anchors, info.since_boundary) == (5, 1, 2, 0)
    assert names(await tape.read_entries(1, 3)) == [HEADER_EVENT, SESSION_START, "a"]
    await tape.append(says("b"))
    await tape.reset()
    info = await tape.info()
    assert (info.entries, info.segments, info.anchors, info.since_boundary) == (8, 0, 1, 0)
    assert names(await tape.read_entries(1)) == [HEADER_EVENT, SESSION_START]


async def test_information_counts_what_there_is(tape):
    assert await tape.info() == TapeInfo(
        TAPE,
        title=None,
        entries=2,
        segments=0,
        anchors=1,
        boundary=await tape.store.get_anchor(TAPE, SESSION_START),
        since_boundary=0,
        parent=None,
    )
    await tape.append(says("a"))
    await tape.handoff("problem/7", {"summary": "s"})
    await tape.store.create_anchor(TAPE, "tea", 3)
    await tape.handoff(MEMORY_SEAL, {"version": 1})
    await tape.archive([says("carried")])
    info = await tape.info()
    assert (info.entries, info.segments, info.anchors) == (8, 1, 4)
    assert info.boundary == await tape.store.get_anchor(TAPE, "problem/7")
    assert info.since_boundary == 4


async def test_a_search_of_a_tape_is_of_that_tape_whatever_it_asks_for(tape):
    other = TapeService(tape.store, "discord:7")
    for one in (tape, other):
        await one.ensure_bootstrap_anchor()
        await one.append(says("green tea"))
    for tapes in (None, (), ("discord:7",)):
        hits = await tape.search(SearchQuery("tea", tapes=tapes))
        assert [hit.tape for hit in hits] == [TAPE]
