"""What every tape store promises of archiving and resetting a tape, and of reading across its segments."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest
from tape_talk import TAPE, back, fill, ids, says, texts, with_two_segments

from bot.core.errors import VersionConflict
from bot.tape.entries import anchor
from bot.tape.store import HEADER_EVENT

# Reading.


@pytest.mark.parametrize(
    ("first", "last", "found"),
    [
        (None, None, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (4, 5, [4, 5]),
        (2, 8, [2, 3, 4, 5, 6, 7, 8]),
        (8, None, [8, 9]),
        (0, 1, [1]),
        (9, 99, [9]),
        (10, None, []),
        (6, 5, []),
    ],
)
async def test_a_range_is_read_across_segments_with_both_its_ends(backend, first, last, found):
    await with_two_segments(backend.store)
    assert ids(await backend.store.read(TAPE, first, last)) == found
    assert ids(await (await backend.reopen()).read(TAPE, first, last)) == found


@pytest.mark.parametrize("before", [0, 1, 4, 5, 9, 10, 10**12])
async def test_reading_back_begins_right_before_the_id(store, before):
    """An id far beyond the end costs no more than the end does."""
    await with_two_segments(store)
    with anyio.fail_after(30):
        assert ids(await back(store, TAPE, before)) == list(range(min(before, 10) - 1, 0, -1))


async def test_reading_back_while_others_append_shows_a_whole_moment(store):
    """No gap and no entry newer than the first one shown, in pages long or short."""
    await fill(store, 200)

    async def write() -> None:
        for number in range(12):
            await store.append_many(TAPE, [says(str(number))] * 40)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        tasks.start_soon(write)
        for _ in range(6):
            found = ids(await back(store))
            assert found == list(range(found[0], 0, -1))
            assert (found[0] - 201) % 40 == 0, "a batch was shown in part"
            await anyio.lowlevel.checkpoint()


# Archive and reset.


async def test_archive_seals_what_was_live_and_ids_go_on(backend):
    await fill(backend.store, 3)
    segment = await backend.store.archive(TAPE, [anchor("session/new"), says("carried")])
    assert (segment.first_id, segment.last_id) == (1, 4)
    store = await backend.reopen()
    head, boundary, carried = await store.read(TAPE, 5)
    assert (head.name, head.data["session"], head.data["previous"]) == (
        HEADER_EVENT,
        TAPE,
        segment.name,
    )
    assert (boundary.name, texts([carried])) == ("session/new", ["carried"])
    assert ids([head, boundary, carried]) == [5, 6, 7]
    assert texts(await store.read(TAPE)) == ["0", "1", "2", "carried"]
    assert await store.segments(TAPE) == [segment]


async def test_a_reset_drops_all_sealed_or_live_and_what_is_sealed_later_is_kept(backend):
    await fill(backend.store, 2)
    await backend.store.archive(TAPE)
    await backend.store.append(TAPE, says("dropped"))
    erasures = await backend.store.erasures(TAPE)
    await backend.store.reset(TAPE, [says("carried")])
    assert await backend.store.erasures(TAPE) > erasures
    async for store in backend.readers():
        assert texts(await store.read(TAPE)) == ["carried"]
        assert ids(await store.read(TAPE)) == ids(await back(store))[::-1] == [6, 7]
        assert await store.segments(TAPE) == []
        assert await store.read(TAPE, 1, 5) == []
    await store.archive(TAPE, [says("live")])
    store = await backend.reopen()
    assert ids(await store.read(TAPE)) == [6, 7, 8, 9]
    assert [(one.first_id, one.last_id) for one in await store.segments(TAPE)] == [(6, 7)]


async def test_ids_never_restart(backend):
    """Over archive, reset, replacement and reopening, evidence keeps pointing at its entry."""
    store = backend.store
    await store.create_tape(TAPE)
    seen: list[int] = [1]
    for turn in range(6):
        seen.append((await store.append(TAPE, says(str(turn)))).id)
        if turn % 3 == 0:
            await store.archive(TAPE)
        elif turn % 3 == 1:
            await store.reset(TAPE)
        else:
            await store.create_tape(TAPE, replace_if_exists=True)
        store = await backend.reopen()
        seen.append(await store.version(TAPE))
    assert seen == list(range(1, 14))


async def test_a_late_owner_neither_archives_nor_resets(store):
    await store.create_tape(TAPE)
    await store.append(TAPE, says("of the new owner"))
    for change in (store.archive, store.reset):
        with pytest.raises(VersionConflict) as raised:
            await change(TAPE, [says("late")], expect=1)
        assert (raised.value.tape, raised.value.expected, raised.value.actual) == (TAPE, 1, 2)
    assert ids(await store.read(TAPE)) == [1, 2]
    assert await store.segments(TAPE) == []
    assert (await store.archive(TAPE, [says("on time")], expect=2)).last_id == 2
    await store.reset(TAPE, [says("on time, too")], expect=4)
    assert await store.version(TAPE) == 6


async def test_appends_during_archives_and_resets_are_all_there_once(backend):
    store = backend.store
    await store.create_tape(TAPE)
    acknowledged: dict[int, str] = {}

    async def write(number: int) -> None:
        for step in range(15):
            entry = await store.append(TAPE, says(f"{number}.{step}"))
            acknowledged[entry.id] = entry.payload["content"]

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(write, number)
        for _ in range(10):
            tasks.start_soon(store.archive, TAPE)
    assert len(acknowledged) == 300
    async for reader in backend.readers():
        found = await reader.read(TAPE)
        assert ids(found) == list(range(1, 312))
        assert {e.id: e.payload["content"] for e in found if e.kind == "message"} == acknowledged
        assert len(await reader.segments(TAPE)) == 10


async def test_an_archive_is_not_kept_waiting_by_writers_that_never_pause(store):
    await store.create_tape(TAPE)

    async def write_on() -> None:
        while True:
            await store.append(TAPE, says("on and on"))
            await anyio.lowlevel.checkpoint()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(write_on)
            for _ in range(3):
                await store.archive(TAPE)
            tasks.cancel_scope.cancel()
    found = ids(await store.read(TAPE))
    assert found == list(range(1, len(found) + 1))
