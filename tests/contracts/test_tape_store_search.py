"""Every store finds what is on its tapes, at once and after any end, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from searching import apart, ask, found, invented, places, said
from tape_talk import TAPE, disturb, says

from bot.core.errors import InvalidSearch
from bot.tape.entries import (
    TapeEntry,
    anchor,
    event,
    tool_result,
)
from bot.tape.search import (
    MAX_HITS,
    MAX_NEIGHBOURS,
    MAX_QUERY_LENGTH,
    SearchQuery,
)
from bot.tape.store import TapeStore

# What is known, and when.


async def test_each_of_many_writers_finds_at_once_what_it_wrote(backend):
    store = backend.store
    words = invented(60)

    async def write(number: int) -> None:
        for step in range(5):
            word = words[number * 5 + step]
            [entry] = await apart(store, word, tape=f"telegram:{number % 3}")
            assert entry.id in [hit.entry.id for hit in await ask(store, word)]

    async with anyio.create_task_group() as tasks:
        for number in range(12):
            tasks.start_soon(write, number)
        for _ in range(3):
            tasks.start_soon(archive_once_made, store, "telegram:0")
    async for reader in backend.readers():
        for word in words:
            assert await found(reader, word) == [word]


async def archive_once_made(store: TapeStore, tape: str) -> None:
    await store.create_tape(tape)
    await store.archive(tape)


async def test_a_hit_is_the_entry_as_it_is_on_its_tape(backend):
    awkward = {"value": [2**63, -0.0, [], {}, "half \ud83d"]}
    await apart(backend.store, says("green tea", note=awkward))
    async for store in backend.readers():
        [hit] = await ask(store, "tea")
        assert repr(hit.entry) == repr((await store.read(TAPE, hit.entry.id))[0])


@pytest.mark.parametrize("steps", [0, 2, 4, 9])
async def test_searches_cancelled_at_any_step_cost_no_later_one_anything(backend, steps):
    store = backend.store
    words = invented(8)
    for word in words:
        await apart(store, word)
        await disturb(steps, lambda word=word: ask(store, word))
    async for reader in backend.readers():
        for word in words:
            assert await found(reader, word) == [word]


# What is never found.


@pytest.mark.parametrize("name", ["memory.recall", "tape.search", "memory_recall", "tape_search"])
async def test_what_was_recalled_is_not_found_once_more(store, name):
    await apart(store, tool_result("c", name, "xylophone"), tool_result("c", "web.read", "tea"))
    assert await ask(store, "xylophone") == []
    assert await places(store, "tea", kinds=frozenset({"tool_result"})) == {4}
    assert await places(store, "", kinds=frozenset({"tool_result"})) == {4}


async def test_bookkeeping_is_not_found(store):
    await store.create_tape(TAPE, "xylophone")
    notes = ("turn.start", "turn.end", "loop.step", "delivery", "command")
    bus = ("problem.made", "working.set", "shared.set", "synthesis.add", "gate.decided")
    told = {"text": "xylophone", "content": {"d": "xylophone"}}
    await store.append_many(TAPE, [event(name, told, problem="p1") for name in (*notes, *bus)])
    await store.append(TAPE, anchor("memory/open", {"text": "xylophone"}))
    await store.archive(TAPE)
    for text in ("xylophone", ""):
        assert await ask(store, text, names=frozenset(bus)) == []
        assert await ask(store, text, problem="p1") == []
    assert await ask(store, "xylophone") == []


async def test_entries_of_any_shape_keep_nothing_else_from_being_found(backend):
    store = backend.store
    await store.create_tape(TAPE)
    odd: list[Any] = [None, 5, [], {}, {"a": {"b": ["tea"]}}, "half \ud83d", 2**70, True]
    for value in odd:
        for kind in ("message", "tool_call", "tool_result", "anchor", "event", "system"):
            entry = TapeEntry(0, kind, {})  # type: ignore[arg-type]  # one of KINDS
            keys = ("role", "content", "calls", "name", "state", "data", "call_id", "entry")
            entry.payload.update(dict.fromkeys(keys, value))
            keys = ("ts", "sent", "tz", "sender", "attachments", "turn")
            await store.append(TAPE, entry.with_meta(**dict.fromkeys(keys, value)))
    await apart(store, says("xylophone"))
    async for reader in backend.readers():
        assert (await found(reader, "xylophone"))[0] == "xylophone"
        assert len(await found(reader, limit=100)) == len(odd) + 1
        await reader.list_anchors(TAPE)
        since = datetime(2020, 1, 1, tzinfo=UTC)
        assert (await found(reader, "xylophone", since=since))[0] == "xylophone"


# What cannot be answered.


@pytest.mark.parametrize(
    "query",
    [
        SearchQuery("x" * (MAX_QUERY_LENGTH + 1)),
        SearchQuery(limit=0),
        SearchQuery(limit=MAX_HITS + 1),
        SearchQuery(neighbours=MAX_NEIGHBOURS + 1),
        SearchQuery(kinds=frozenset({"message", "gossip"})),
        SearchQuery(since=datetime(2026, 2, 10)),  # noqa: DTZ001 (wrong on purpose)
        SearchQuery(until=datetime(2026, 2, 10)),  # noqa: DTZ001 (wrong on purpose)
        SearchQuery(after_anchor="here"),
        SearchQuery(before_anchor="here", tapes=(TAPE, "other")),
    ],
    ids=lambda query: repr(query)[:40],
)
async def test_what_cannot_be_answered_is_refused_and_told_why(store, query):
    await apart(store, "tea")
    with pytest.raises(InvalidSearch, match=r"\w+"):
        await store.search(query)
    assert await found(store, "tea") == ["tea"]


@pytest.mark.parametrize(
    "text",
    [
        "x" * MAX_QUERY_LENGTH,
        " ".join(invented(363)),
        '"' + "tea " * (MAX_QUERY_LENGTH // 4 - 1) + '"',
        '"' * MAX_QUERY_LENGTH,
        '"' + "".join(map(chr, range(0x4E00, 0x4E00 + MAX_QUERY_LENGTH - 2))) + '"',
    ],
    ids=["a word", "many words", "a phrase", "quotes", "a Chinese phrase"],
)
async def test_the_longest_query_is_answered(store, text):
    assert len(text) <= MAX_QUERY_LENGTH
    await apart(store, "tea", "🍕", "一丁")
    with anyio.fail_after(30):
        assert len(await ask(store, text, limit=MAX_HITS, neighbours=MAX_NEIGHBOURS)) <= 10
        assert await found(store, "tea") == ["tea"]


# What is near in meaning.


async def test_what_is_near_in_meaning_is_found_without_a_word_of_it(backend):
    kitten, tea, _ = await apart(backend.store, "a kitten came", "tea for the cat", "cake")
    near = {kitten.id: 1.0, tea.id: 0.2}
    async for store in backend.readers():
        for text in ("feline animals", "cat"):
            hits = await ask(store, text, tapes=(TAPE,), near=near)
            assert {hit.entry.id for hit in hits} == {kitten.id, tea.id}
            assert [hit.direct for hit in hits if hit.entry.id == kitten.id] == [False]
        assert said(await ask(store, "feline", tapes=(TAPE,), near=near, limit=1)) == [
            "a kitten came"
        ]


async def test_what_is_near_in_meaning_passes_the_filters_as_all_else(store):
    early, late = await apart(store, "a kitten came", "a kitten left")
    near = {early.id: 1.0, late.id: 1.0, late.id + 5: 1.0, 2**50: 1.0}
    assert said(await ask(store, "feline", tapes=(TAPE,), near=near, last=early.id)) == [
        "a kitten came"
    ]
    assert await ask(store, "feline", tapes=(TAPE,), near=near, senders=frozenset({"nobody"})) == []
    assert await ask(store, "feline", tapes=(TAPE,), near={}) == []
