"""What every tape store promises, whatever holds the tapes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from bot.core.errors import InvalidEntry, TapeNotFound, VersionConflict
from bot.tape.codec import MAX_ENTRY_BYTES
from bot.tape.entries import TapeEntry, anchor, event, message, system, tool_call, tool_result
from bot.tape.store import HEADER_EVENT, TapeStore

TAPE = "telegram:42"


def says(text: str) -> TapeEntry:
    return message("user", text)


def ids(entries: list[TapeEntry]) -> list[int]:
    return [entry.id for entry in entries]


def texts(entries: list[TapeEntry]) -> list[str]:
    return [entry.payload["content"] for entry in entries if entry.kind == "message"]


async def back(store: TapeStore, tape: str = TAPE, before: int | None = None) -> list[TapeEntry]:
    return [entry async for entry in store.read_back(tape, before)]


async def fill(store: TapeStore, count: int, tape: str = TAPE) -> None:
    await store.create_tape(tape)
    await store.append_many(tape, [says(str(number)) for number in range(count)])


async def with_two_segments(store: TapeStore) -> None:
    """Ids 1 to 4 and 5 to 7 are sealed, 8 and 9 live."""
    await fill(store, 3)
    await store.archive(TAPE)
    await store.append_many(TAPE, [says("3"), says("4")])
    await store.archive(TAPE)
    await store.append(TAPE, says("5"))


# Making tapes.


async def test_a_new_tape_begins_with_a_header_that_names_its_session(store):
    assert await store.create_tape(TAPE, "Kitchen") == TAPE
    [head] = await store.read(TAPE)
    assert (head.id, head.name) == (1, HEADER_EVENT)
    assert head.data == {"session": TAPE, "format": 1, "title": "Kitchen"}
    assert await store.version(TAPE) == 1


async def test_making_a_tape_that_is_there_changes_nothing(store):
    await fill(store, 2)
    before = await store.read(TAPE)
    assert await store.create_tape(TAPE, "another title") == TAPE
    assert await store.read(TAPE) == before
    assert await store.get_title(TAPE) is None


@pytest.mark.slow
async def test_tasks_that_make_one_tape_at_once_make_it_once(store):
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(store.create_tape, TAPE)
    assert ids(await store.read(TAPE)) == [1]


async def test_replacing_a_tape_drops_its_entries_and_ids_go_on(store):
    await store.create_tape(TAPE, "Kitchen")
    await store.append_many(TAPE, [says("a"), says("b")])
    await store.create_tape(TAPE, replace_if_exists=True)
    assert ids(await store.read(TAPE)) == [4]
    assert await store.get_title(TAPE) == "Kitchen"
    await store.create_tape(TAPE, "Garden", replace_if_exists=True)
    assert await store.get_title(TAPE) == "Garden"


async def test_replacing_a_tape_that_is_not_there_makes_it(store):
    await store.create_tape(TAPE, "Kitchen", replace_if_exists=True)
    assert ids(await store.read(TAPE)) == [1]


async def test_a_title_survives_archive_reset_and_reopening(backend):
    await backend.store.create_tape(TAPE, "Küche 🍳")
    await backend.store.archive(TAPE)
    await backend.store.reset(TAPE)
    store = await backend.reopen()
    assert await store.get_title(TAPE) == "Küche 🍳"


async def test_a_tape_without_title_has_none(store):
    await store.create_tape(TAPE)
    assert await store.get_title(TAPE) is None


async def test_tapes_are_listed_once_each_and_sorted(backend):
    names = ["telegram:7", "discord:1:topic", "console:a/../b", "telegram:𝟟", "", "x" * 300]
    for name in names:
        await backend.store.create_tape(name)
    await backend.store.archive("telegram:7")
    assert await backend.store.list_tapes() == sorted(names)
    assert await (await backend.reopen()).list_tapes() == sorted(names)


async def test_tapes_can_be_listed_while_they_are_archived(store):
    await store.create_tape(TAPE)
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(store.archive, TAPE)
            assert await store.list_tapes() == [TAPE]


async def test_names_that_differ_in_one_character_are_two_tapes(store):
    for name in ("a:b", "a_b", "a/b", "A:b", "a:b "):
        await store.create_tape(name)
        await store.append(name, says(name))
    for name in ("a:b", "a_b", "a/b", "A:b", "a:b "):
        assert texts(await store.read(name)) == [name]


async def test_a_store_without_tapes_lists_none(store):
    assert await store.list_tapes() == []


# What is not there.


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.get_title("nobody"),
        lambda store: store.version("nobody"),
        lambda store: store.read("nobody"),
        lambda store: store.read("nobody", 5, 1),
        lambda store: back(store, "nobody"),
        lambda store: back(store, "nobody", 1),
        lambda store: store.append("nobody", says("x")),
        lambda store: store.append_many("nobody", []),
        lambda store: store.append_many("nobody", [says("x")], expect=0),
        lambda store: store.archive("nobody"),
        lambda store: store.reset("nobody"),
        lambda store: store.segments("nobody"),
    ],
)
async def test_a_tape_that_is_not_there_is_refused_and_not_made(
    store: TapeStore, ask: Callable[[TapeStore], Awaitable[Any]]
):
    await store.create_tape(TAPE)
    with pytest.raises(TapeNotFound, match="nobody"):
        await ask(store)
    assert await store.list_tapes() == [TAPE]


# Appending.


async def test_append_returns_the_entry_with_its_id_and_the_time(store):
    await store.create_tape(TAPE)
    written = await store.append(TAPE, message("user", "hi", sender="7"))
    assert written.id == 2
    assert written.payload == {"role": "user", "content": "hi"}
    assert written.meta["sender"] == "7"
    assert written.meta["ts"].endswith("+00:00")
    assert await store.read(TAPE, 2) == [written]


async def test_a_time_that_an_entry_brings_is_kept(store):
    await store.create_tape(TAPE)
    moment = "2026-02-10T10:00:00.000+00:00"
    assert (await store.append(TAPE, says("a").with_meta(ts=moment))).meta["ts"] == moment


async def test_every_kind_of_entry_reads_back_as_it_was(backend):
    await backend.store.create_tape(TAPE)
    written = await backend.store.append_many(
        TAPE,
        [
            message("assistant", "text", turn="t1"),
            tool_call("", [{"id": "c1", "name": "memory.save", "arguments": "{not json"}]),
            tool_result("c1", "memory.save", "saved", status="error"),
            anchor("memory/open", {"version": 1}),
            event("turn.end", {"inbound": ["1"], "cost": 0.1}),
            system("be kind"),
        ],
    )
    assert ids(written) == [2, 3, 4, 5, 6, 7]
    assert (await (await backend.reopen()).read(TAPE))[1:] == written


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
        "halves \ud83d\ude00 side by side",
        {"\udc00": ["\udfff"], "": {"": [[[{}]]]}},
        {"more": 3, "id": 1},
    ],
    ids=lambda value: ascii(value)[:40],
)
async def test_the_round_trip_is_exact(backend, value):
    await backend.store.create_tape(TAPE)
    written = await backend.store.append(TAPE, event("e", {"value": value}, note=value))
    store = await backend.reopen()
    for found in ([(await store.read(TAPE))[-1]], [(await back(store))[0]]):
        assert found == [written]
        assert repr(found[0].data["value"]) == repr(value)
        assert repr(found[0].meta["note"]) == repr(value)


@pytest.mark.parametrize(
    "entry",
    [
        event("e", {"value": float("nan")}),
        event("e", {"value": float("inf")}),
        event("e", {"value": object()}),
        event("e", {"value": b"bytes"}),
        event("e", {"value": ("a", "tuple")}),
        event("e", {"value": {1: "one"}}),
        event("e", {"value": {None: "none"}}),
        event("e", {"value": {1, 2}}),
        event("e", {}, note=object()),
        TapeEntry(0, "message", ["no object"]),  # type: ignore[arg-type]  # wrong on purpose
        TapeEntry(0, "gossip", {}),  # type: ignore[arg-type]  # wrong on purpose
    ],
    ids=[
        "not a number",
        "infinity",
        "object",
        "bytes",
        "tuple",
        "number as key",
        "none as key",
        "set",
        "meta",
        "payload",
        "kind",
    ],
)
async def test_what_would_not_read_back_as_it_is_is_refused_whole(store, entry):
    await fill(store, 1)
    with pytest.raises(InvalidEntry):
        await store.append_many(TAPE, [says("good"), entry, says("good")])
    with pytest.raises(InvalidEntry):
        await store.archive(TAPE, [entry])
    with pytest.raises(InvalidEntry):
        await store.reset(TAPE, [entry])
    assert await store.version(TAPE) == 2
    assert await store.segments(TAPE) == []
    assert (await store.append(TAPE, says("next"))).id == 3


async def test_a_payload_that_holds_itself_is_refused(store):
    await store.create_tape(TAPE)
    knot: dict[str, Any] = {}
    knot["knot"] = knot
    with pytest.raises(InvalidEntry):
        await store.append(TAPE, event("e", knot))


async def test_an_entry_is_a_fact_that_no_reader_or_writer_can_change(store):
    await store.create_tape(TAPE)
    data = {"list": [1]}
    written = await store.append(TAPE, event("e", data))
    data["list"].append(2)
    (await store.read(TAPE, 2))[0].data["list"].append(3)
    (await back(store))[0].data["list"].append(4)
    assert (await store.read(TAPE, 2))[0].data == {"list": [1]}
    assert written.id == 2


async def test_a_batch_gets_ids_in_its_order(store):
    await store.create_tape(TAPE)
    written = await store.append_many(TAPE, [says(str(number)) for number in range(50)])
    assert ids(written) == list(range(2, 52))
    assert texts(await store.read(TAPE)) == [str(number) for number in range(50)]


async def test_an_empty_batch_writes_nothing(store):
    await fill(store, 1)
    assert await store.append_many(TAPE, []) == []
    assert await store.append_many(TAPE, [], expect=2) == []
    assert await store.version(TAPE) == 2
    with pytest.raises(VersionConflict):
        await store.append_many(TAPE, [], expect=1)


async def test_a_batch_for_another_version_writes_nothing(store):
    await fill(store, 2)
    for wrong in (0, 2, 4):
        with pytest.raises(VersionConflict) as raised:
            await store.append_many(TAPE, [says("late"), says("later")], expect=wrong)
        assert (raised.value.tape, raised.value.expected, raised.value.actual) == (TAPE, wrong, 3)
    assert ids(await store.read(TAPE)) == [1, 2, 3]
    assert ids(await store.append_many(TAPE, [says("on time")], expect=3)) == [4]


async def test_of_many_writers_that_expect_one_version_one_wins(store):
    await store.create_tape(TAPE)
    won: list[int] = []

    async def try_once(number: int) -> None:
        try:
            await store.append_many(TAPE, [says(str(number)), says(str(number))], expect=1)
        except VersionConflict:
            return
        won.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(try_once, number)
    assert len(won) == 1
    assert texts(await store.read(TAPE)) == [str(won[0])] * 2


async def test_a_hundred_tasks_on_one_tape_get_dense_ids_in_one_order(backend):
    """What append returned is what each reader finds, and batches are not mixed."""
    store = backend.store
    await store.create_tape(TAPE)
    acknowledged: dict[int, str] = {}

    async def write(number: int) -> None:
        for step in range(3):
            text = f"{number}.{step}"
            for entry in await store.append_many(TAPE, [says(f"{text}a"), says(f"{text}b")]):
                acknowledged[entry.id] = entry.payload["content"]

    async with anyio.create_task_group() as tasks:
        for number in range(100):
            tasks.start_soon(write, number)
    assert sorted(acknowledged) == list(range(2, 602))
    async for reader in backend.readers():
        found = await reader.read(TAPE)
        assert ids(found) == list(range(1, 602))
        assert {entry.id: entry.payload["content"] for entry in found[1:]} == acknowledged
        pairs = texts(found)
        assert all(
            first[:-1] == second[:-1] for first, second in zip(pairs[::2], pairs[1::2], strict=True)
        )
        assert await back(reader) == found[::-1]


async def test_each_task_finds_its_own_entries_in_the_order_it_wrote_them(store):
    await store.create_tape(TAPE)

    async def write(name: str) -> None:
        for step in range(20):
            await store.append(TAPE, says(f"{name}{step}"))

    async with anyio.create_task_group() as tasks:
        for name in "abc":
            tasks.start_soon(write, name)
    found = texts(await store.read(TAPE))
    for name in "abc":
        assert [text for text in found if text[0] == name] == [f"{name}{n}" for n in range(20)]


async def test_many_tapes_written_at_once_keep_apart(store):
    async def write(tape: str) -> None:
        await store.create_tape(tape)
        for step in range(5):
            await store.append(tape, says(f"{tape}/{step}"))

    names = [f"telegram:{number}" for number in range(40)]
    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(write, name)
    for name in names:
        assert texts(await store.read(name)) == [f"{name}/{step}" for step in range(5)]


# Reading.


@pytest.mark.parametrize(
    ("first", "last", "found"),
    [
        (None, None, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (4, 5, [4, 5]),
        (2, 8, [2, 3, 4, 5, 6, 7, 8]),
        (None, 3, [1, 2, 3]),
        (8, None, [8, 9]),
        (9, 9, [9]),
        (5, 7, [5, 6, 7]),
        (0, 1, [1]),
        (-3, 1, [1]),
        (9, 99, [9]),
        (10, None, []),
        (10, 99, []),
        (6, 5, []),
        (None, 0, []),
    ],
)
async def test_a_range_is_read_across_segments_with_both_its_ends(backend, first, last, found):
    await with_two_segments(backend.store)
    assert ids(await backend.store.read(TAPE, first, last)) == found
    assert ids(await (await backend.reopen()).read(TAPE, first, last)) == found


async def test_reading_back_goes_through_all_segments_newest_first(backend):
    await with_two_segments(backend.store)
    assert ids(await back(backend.store)) == [9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert await back(await backend.reopen()) == (await backend.store.read(TAPE))[::-1]


@pytest.mark.parametrize("before", [-1, 0, 1, 2, 4, 5, 6, 8, 9, 10, 11, 10**12])
async def test_reading_back_begins_right_before_the_id(store, before):
    """An id far beyond the end costs no more than the end does."""
    await with_two_segments(store)
    with anyio.fail_after(30):
        assert ids(await back(store, TAPE, before)) == list(range(min(before, 10) - 1, 0, -1))


async def test_reading_back_can_stop_anywhere(store):
    await fill(store, 3000)
    found = []
    async for entry in store.read_back(TAPE):
        found.append(entry.id)
        if len(found) == 70:
            break
    assert found == list(range(3001, 2931, -1))


async def test_reading_back_while_others_append_shows_a_whole_moment(store):
    """No gap and no entry newer than the first one shown, in pages long or short."""
    await fill(store, 200)

    async def write() -> None:
        for number in range(60):
            await store.append_many(TAPE, [says(str(number))] * 40)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        tasks.start_soon(write)
        for _ in range(6):
            found = ids(await back(store))
            assert found == list(range(found[0], 0, -1))
            assert (found[0] - 201) % 40 == 0, "a batch was shown in part"
            await anyio.lowlevel.checkpoint()


async def test_reading_back_while_the_tape_is_archived_shows_every_entry_once(store):
    await fill(store, 200)
    found = []
    async for entry in store.read_back(TAPE):
        found.append(entry.id)
        if entry.id in (190, 100):
            await store.archive(TAPE)
    assert found == list(range(201, 0, -1))


async def test_what_a_reset_dropped_costs_reading_back_nothing(store):
    """A gap of a million ids is stepped over, not searched."""
    await fill(store, 3)
    for _ in range(20):
        await store.append_many(TAPE, [says("gone")] * 500)
        await store.reset(TAPE)
    version = await store.version(TAPE)
    assert ids(await back(store)) == [version]


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


async def test_carried_entries_keep_their_time(store):
    await store.create_tape(TAPE)
    moment = "2026-02-10T10:00:00.000+00:00"
    await store.archive(TAPE, [says("old").with_meta(ts=moment)])
    assert (await store.read(TAPE))[-1].meta["ts"] == moment


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


async def test_an_entry_beyond_the_bound_is_refused_by_size_and_nothing_of_its_append_is_written(
    store,
):
    await fill(store, 1)
    with pytest.raises(InvalidEntry, match="16,000,000"):
        await store.append_many(TAPE, [says("a"), says("b" * MAX_ENTRY_BYTES)])
    assert texts(await store.read(TAPE)) == ["0"]
    written = await store.append(TAPE, says("c" * 1_000_000))
    assert await store.read(TAPE, written.id) == [written]


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


async def test_archives_in_one_second_have_names_of_their_own(store):
    segments = []
    for tape in ("one", "two"):
        await store.create_tape(tape)
        segments += [await store.archive(tape) for _ in range(10)]
    assert len({segment.name for segment in segments}) == 20
    assert await store.segments("one") == segments[:10]
    assert ids(await store.read("one")) == list(range(1, 12))


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


# Cancellation.


@pytest.mark.parametrize("steps", range(14))
async def test_cancellation_at_any_step_leaves_whole_batches_and_dense_ids(backend, steps):
    """Each operation is cancelled after so many turns of the event loop; others go on."""
    store = backend.store
    await fill(store, 2)

    async def disturb(act: Callable[[], Awaitable[Any]]) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(act)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

    async def cancelled_ones() -> None:
        pair = [says("pair"), says("pair")]
        await disturb(lambda: store.append_many(TAPE, pair))
        await disturb(lambda: store.archive(TAPE, [says("carried")]))
        await disturb(lambda: store.read(TAPE))
        await disturb(lambda: back(store))
        await disturb(lambda: store.create_tape("other"))
        await disturb(lambda: store.append_many(TAPE, pair))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancelled_ones)
        for number in range(5):
            tasks.start_soon(store.append, TAPE, says(f"kept {number}"))
    last = await store.append(TAPE, says("last"))
    async for reader in backend.readers():
        found = await reader.read(TAPE)
        assert ids(found) == list(range(1, last.id + 1))
        assert await back(reader) == found[::-1]
        assert texts(found).count("pair") % 2 == 0
        assert {f"kept {number}" for number in range(5)} <= set(texts(found))
        await reader.create_tape("other")
        assert ids(await reader.read("other")) == [1]


async def test_an_append_cancelled_before_it_began_is_not_there(store):
    await store.create_tape(TAPE)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await anyio.lowlevel.checkpoint()
        await store.append(TAPE, says("never"))
    assert await store.version(TAPE) == 1


# State.


async def test_statistics_are_a_snapshot(store):
    before = store.statistics()
    await store.create_tape(TAPE)
    await store.append(TAPE, says("a"))
    assert before["open_tapes"] == 0
    assert store.statistics()["open_tapes"] == 1


async def test_closing_twice_is_closing_once(backend):
    await fill(backend.store, 1)
    await backend.store.close()
    await backend.store.close()
    assert texts(await (await backend.reopen()).read(TAPE)) == ["0"]
