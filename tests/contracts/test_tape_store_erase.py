"""What every tape store promises of erasing: tombstones stand where entries stood, and nothing else changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tape_talk import TAPE, back, ids, says, talk, with_two_segments

from bot.core.errors import InvalidEntry, TapeNotFound
from bot.tape.entries import TapeEntry, anchor, event
from bot.tape.fork import ForkTapeStore
from bot.tape.search import SearchQuery
from bot.tape.store import HEADER_EVENT, TapeStore


def tombstone(entry: TapeEntry, **payload: Any) -> TapeEntry:
    """What stands in the place of a message."""
    return replace(entry, payload={"role": "user", "content": "", **payload}, meta={"erased": True})


async def erase(store: TapeStore, *numbers: int, **payload: Any) -> list[TapeEntry]:
    """Erase messages; return their tombstones."""
    held = [entry for number in numbers for entry in await store.read(TAPE, number, number)]
    made = [tombstone(entry, **payload) for entry in held]
    assert await store.erase(TAPE, made) == len(numbers)
    return made


async def found(store: TapeStore, words: str) -> list[int]:
    """Return the ids of those that have the words themselves, not beside them."""
    hits = await store.search(SearchQuery(words, tapes=(TAPE,), limit=300))
    return [hit.entry.id for hit in hits if hit.direct]


async def test_erased_entries_read_as_their_tombstones_sealed_or_live_and_all_else_as_before(
    backend,
):
    await with_two_segments(backend.store)
    before = await backend.store.read(TAPE)
    segments = await backend.store.segments(TAPE)
    made = {entry.id: entry for entry in await erase(backend.store, 3, 6, 9)}
    wanted = [made.get(entry.id, entry) for entry in before]
    async for store in backend.readers():
        assert await store.read(TAPE) == wanted
        assert await back(store) == wanted[::-1]
        assert await store.version(TAPE) == 9
        assert await store.segments(TAPE) == segments
    [written] = await backend.store.append_many(TAPE, [says("later")])
    assert written.id == 10
    await backend.store.archive(TAPE)
    assert (await backend.store.read(TAPE))[:9] == wanted


async def test_who_shows_a_tape_learns_that_something_was_erased_from_it(store):
    await talk(store, "one", "two", "three")
    await store.create_tape("another")
    before = await store.erasures(TAPE)
    (entry, *_) = [one for one in await store.read(TAPE) if one.kind == "message"]
    await erase(store, entry.id)
    assert await store.erasures(TAPE) > before
    assert await store.erasures("another") == await store.erasures("nobody") == 0


@pytest.mark.parametrize(
    "wrong",
    [
        replace(says(""), id=10),
        replace(says(""), id=0),
        replace(event("message"), id=3),
        replace(says(""), id=3, meta={"n": float("nan")}),
        replace(says(""), id=2),
        replace(event(HEADER_EVENT, {"session": "another"}), id=1),
        replace(event(HEADER_EVENT, {"session": TAPE, "format": 1}), id=8),
    ],
    ids=lambda wrong: f"{wrong.id} {wrong.kind}",
)
async def test_what_may_not_stand_there_is_refused_and_nothing_is_changed(backend, wrong):
    await with_two_segments(backend.store)
    before = await backend.store.read(TAPE)
    good = [tombstone(before[1]), tombstone(before[8])]
    with pytest.raises(InvalidEntry):
        await backend.store.erase(TAPE, [*good, wrong])
    async for store in backend.readers():
        assert await store.read(TAPE) == before
        assert await found(store, "f") == [9]


async def test_a_title_goes_from_the_headers_that_lose_it(backend):
    await backend.store.create_tape(TAPE, "Secret plans")
    await talk(backend.store, "a")
    await backend.store.archive(TAPE)
    heads = [entry for entry in await backend.store.read(TAPE) if entry.name == HEADER_EVENT]
    for head in heads:
        data = {key: value for key, value in head.data.items() if key != "title"}
        fresh = replace(head, payload={"name": HEADER_EVENT, "data": data})
        assert await backend.store.erase(TAPE, [fresh]) == 1
    async for store in backend.readers():
        assert await store.get_title(TAPE) is None
        assert await store.list_tapes() == [TAPE]
        assert "Secret" not in repr(await store.read(TAPE))
        assert len(await store.segments(TAPE)) == 1
    await backend.store.archive(TAPE)
    assert await backend.store.get_title(TAPE) is None


async def test_a_search_finds_what_tombstones_say_and_no_more_what_they_replace(backend):
    await talk(backend.store, "the zebra sleeps", "a walrus", "the zebra eats")
    await backend.store.archive(TAPE)
    await talk(backend.store, "zebra crossing")
    assert set(await found(backend.store, "zebra")) == {2, 4, 6}
    await erase(backend.store, 2, content="gone: giraffe")
    await erase(backend.store, 6)
    async for store in backend.readers():
        assert await found(store, "zebra") == [4]
        assert await found(store, "giraffe") == [2]
        assert await found(store, "walrus") == [3]
        assert await found(store, "crossing") == []
        query = SearchQuery("walrus", tapes=(TAPE,), neighbours=1, limit=1)
        [hit] = await store.search(query)
        assert ids([*hit.before, *hit.after]) == [2, 4]
    await backend.store.append(TAPE, says("another zebra"))
    assert set(await found(backend.store, "zebra")) == {4, 7}


async def test_anchors_are_as_their_tombstones_say(backend):
    await talk(backend.store, "a", "b")
    await backend.store.create_anchor(TAPE, "keep", 2, {"n": 1})
    await backend.store.create_anchor(TAPE, "secret name", 3, {"summary": "secret"})
    await backend.store.append(TAPE, anchor("session/new", {"summary": "secret"}))
    assert len(await backend.store.list_anchors(TAPE)) == 3
    held = await backend.store.read(TAPE, 5, 6)
    fresh = [
        replace(held[0], payload={**held[0].payload, "name": "erased", "state": {}}),
        replace(held[1], payload={"name": "session/new", "state": {}}),
    ]
    assert await backend.store.erase(TAPE, fresh) == 2
    async for store in backend.readers():
        anchors = await store.list_anchors(TAPE)
        told = [(one.name, one.entry_id, one.state, one.is_boundary) for one in anchors]
        assert told == [
            ("keep", 2, {"n": 1}, False),
            ("erased", 3, {}, False),
            ("session/new", 6, {}, True),
        ]
        with pytest.raises(TapeNotFound):
            await store.get_anchor(TAPE, "secret name")
        assert await found(store, "secret") == []


async def test_appends_and_reads_that_run_meanwhile_lose_nothing(store):
    await talk(store, *(f"said {number}" for number in range(60)))
    await store.archive(TAPE)
    await talk(store, *(f"later {number}" for number in range(60)))
    said: dict[int, str] = {}
    done = anyio.Event()

    async def speak() -> None:
        while not done.is_set() and len(said) < 1_000:
            for entry in await store.append_many(TAPE, [says(f"x{len(said)}"), says("y")]):
                said[entry.id] = entry.payload["content"]
            assert await store.version(TAPE) == max(said)
            # A store that never waits would let nobody else have a turn.
            await anyio.lowlevel.checkpoint()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(speak)
            for first in (10, 70, 20, 80):
                await erase(store, *range(first, first + 5))
            done.set()
    held = {entry.id: entry.payload.get("content") for entry in await store.read(TAPE)}
    assert sorted(held) == list(range(1, max(said) + 1))
    assert said.items() <= held.items()
    gone = {n for first in (10, 70, 20, 80) for n in range(first, first + 5)}
    assert {number for number, text in held.items() if text == ""} == gone


async def test_nothing_is_erased_through_a_fork_that_may_be_discarded(store):
    await talk(store, "a")
    fork = ForkTapeStore(store, TAPE, 2)
    with pytest.raises(InvalidEntry, match="on the tape itself"):
        await fork.erase(TAPE, [tombstone((await store.read(TAPE, 2))[0])])
    await fork.close()
