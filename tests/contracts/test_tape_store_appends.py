"""What every tape store promises whoever appends: exact round trips, dense ids, whole batches, however many write."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest
from tape_talk import TAPE, back, disturb, fill, ids, says, texts

from bot.core.errors import InvalidEntry, VersionConflict
from bot.tape.codec import MAX_DEPTH, MAX_ENTRY_BYTES
from bot.tape.entries import TapeEntry, anchor, event, message, system, tool_call, tool_result

# Appending.


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
        event("e", {"value": b"bytes"}),
        event("e", {"value": ("a", "tuple")}),
        event("e", {"value": {1: "one"}}),
        event("e", {}, note=object()),
        TapeEntry(0, "message", ["no object"]),  # type: ignore[arg-type]  # wrong on purpose
        TapeEntry(0, "gossip", {}),  # type: ignore[arg-type]  # wrong on purpose
    ],
    ids=["not a number", "bytes", "tuple", "number as key", "meta", "payload", "kind"],
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


async def test_an_entry_is_a_fact_that_no_reader_or_writer_can_change(store):
    await store.create_tape(TAPE)
    data = {"list": [1]}
    written = await store.append(TAPE, event("e", data))
    data["list"].append(2)
    (await store.read(TAPE, 2))[0].data["list"].append(3)
    (await back(store))[0].data["list"].append(4)
    assert (await store.read(TAPE, 2))[0].data == {"list": [1]}
    assert written.id == 2


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


async def test_an_entry_beyond_the_bound_is_refused_by_size_and_nothing_of_its_append_is_written(
    store,
):
    await fill(store, 1)
    with pytest.raises(InvalidEntry, match="16,000,000"):
        await store.append_many(TAPE, [says("a"), says("b" * MAX_ENTRY_BYTES)])
    assert texts(await store.read(TAPE)) == ["0"]
    written = await store.append(TAPE, says("c" * 1_000_000))
    assert await store.read(TAPE, written.id) == [written]


async def test_an_entry_that_is_nested_deeper_than_every_python_reads_is_refused(store):
    def nested(levels):
        value = "[is text]" * MAX_DEPTH
        for level in range(levels - 2):
            value = [value] if level % 2 else {"a": value, "b": 1}
        return event("deep", {"value": value})

    await fill(store, 1)
    with pytest.raises(InvalidEntry, match="at most 200 levels"):
        await store.append_many(TAPE, [says("a"), nested(MAX_DEPTH + 1)])
    with pytest.raises(InvalidEntry):
        await store.append(TAPE, nested(20_000))
    assert texts(await store.read(TAPE)) == ["0"]
    written = await store.append(TAPE, nested(MAX_DEPTH))
    assert await store.read(TAPE, written.id) == [written]


# Cancellation.


@pytest.mark.parametrize("steps", [0, 1, 2, 4, 7, 13])
async def test_cancellation_at_any_step_leaves_whole_batches_forks_and_anchors_and_dense_ids(
    backend, steps
):
    """Each operation is cancelled after so many turns of the event loop; others go on."""
    store = backend.store
    await fill(store, 2)

    async def cancelled_ones() -> None:
        pair = [says("pair"), says("pair")]
        await disturb(steps, lambda: store.append_many(TAPE, pair))
        await disturb(steps, lambda: store.archive(TAPE, [says("carried")]))
        await disturb(steps, lambda: store.read(TAPE))
        await disturb(steps, lambda: back(store))
        await disturb(steps, lambda: store.create_tape("other"))
        await disturb(steps, lambda: store.fork(TAPE, "child"))
        await disturb(steps, lambda: store.create_anchor(TAPE, "perhaps"))
        await disturb(steps, lambda: store.append_many(TAPE, pair))

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
        anchors = [(entry.name, entry.id) for entry in found if entry.kind == "anchor"]
        assert [(one.name, one.at) for one in await reader.list_anchors(TAPE)] == anchors
        if "child" not in await reader.list_tapes():
            await reader.fork(TAPE, "child")
        child = await reader.read("child")
        assert child[1:] == found[1 : len(child)]
        assert child[0].data["parent"]["last"] == len(child)
        await reader.create_tape("other")
        assert ids(await reader.read("other")) == [1]
