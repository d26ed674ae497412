"""What every tape store promises of searching by problem, tags, layer and name."""

from __future__ import annotations

from typing import Any

import pytest
from tape_talk import TAPE, says

from bot.tape.entries import TapeEntry, anchor, event, system, tool_call, tool_result
from bot.tape.search import GENERAL_PROBLEM, Hit, SearchQuery
from bot.tape.store import TapeStore


async def put(store: TapeStore, *entries: TapeEntry, tape: str = TAPE) -> list[TapeEntry]:
    await store.create_tape(tape)
    return await store.append_many(tape, entries)


async def ask(store: TapeStore, text: str = "", **filters: Any) -> list[Hit]:
    return await store.search(SearchQuery(text, **{"limit": 100, **filters}))


async def ids(store: TapeStore, text: str = "", **filters: Any) -> set[int]:
    """Return the ids of what has the words itself."""
    return {hit.entry.id for hit in await ask(store, text, **filters) if hit.direct}


def episode(content: dict[str, Any], **meta: Any) -> TapeEntry:
    return event("episode", {"type": "decision", "content": content}, **meta)


@pytest.fixture
async def mixed(store: TapeStore) -> None:
    """Entries of each kind that hold the word tea, ids 2 to 7, of p1; then the same of p2 and of none."""
    for problem in ({"problem": "p1"}, {"problem": "p2"}, {}):
        await put(
            store,
            says("tea, says Ada", **problem),
            tool_call("tea", [{"id": "c", "name": "shop.buy", "arguments": "{}"}], **problem),
            tool_result("c", "shop.buy", "bought tea", **problem),
            event("memory.history", {"entry": "they spoke of tea"}, **problem),
            anchor("problem/x", {"summary": "tea"}, **problem),
            system("you sell tea", **problem),
        )


@pytest.mark.parametrize("text", ["tea", "", '"tea"', "tae tea"])
async def test_what_is_found_is_of_the_problem_that_is_asked_for_whatever_its_kind(
    store, mixed, text
):
    assert await ids(store, text, problem="p1") == {2, 3, 4, 5, 6}
    assert await ids(store, text, problem="p2") == {8, 9, 10, 11, 12}
    assert await ids(store, text, problem=GENERAL_PROBLEM, first=2) == {14, 15, 16, 17, 18}
    assert len(await ids(store, text, first=2)) == 15
    assert await ids(store, text, problem="p3") == await ids(store, text, problem="") == set()
    assert await ids(store, text, problem="p1", kinds=frozenset({"system", "event"})) == {5, 7}


# What stands beside.


async def test_what_comes_with_a_hit_is_of_its_problem(backend):
    said = [("a", "p1"), ("b", "p2"), ("c", ""), ("xylophone", "p1"), ("d", "p2"), ("e", "p1")]
    await put(backend.store, *(says(text, problem=problem) for text, problem in said))
    await put(backend.store, tool_result("c", "n", "zither", problem="p1"), says("f", problem="p1"))

    def around(hit: Hit) -> list[list[str]]:
        return [[one.payload["content"] for one in side] for side in (hit.before, hit.after)]

    async for store in backend.readers():
        for word, neighbours, expected in (
            *(("xylophone", 1, [["a"], ["e"]]), ("xylophone", 9, [["a"], ["e", "f"]])),
            *(("zither", 1, [["e"], ["f"]]), ("zither", 2, [["xylophone", "e"], ["f"]])),
        ):
            [hit] = [
                h for h in await ask(store, word, problem="p1", neighbours=neighbours) if h.direct
            ]
            assert around(hit) == expected
        [hit] = [h for h in await ask(store, "xylophone", neighbours=2) if h.direct]
        assert around(hit) == [["b", "c"], ["d", "e"]]


async def test_words_of_another_problem_lead_to_nothing_that_stands_beside_them(store):
    for _ in range(3):
        await put(store, says("the boat"), says("a xylophone", problem="p2"), says("rain"))
    assert {hit.entry.payload["content"] for hit in await ask(store, "xylophone")} > {"a xylophone"}
    assert await ask(store, "xylophone", problem=GENERAL_PROBLEM) == []


async def test_a_word_of_another_problem_is_not_taken_for_one_that_was_mistyped(store):
    await put(store, *(says("the planer", problem="p2") for _ in range(9)), says("the planets"))
    assert await ids(store, "planetts", problem=GENERAL_PROBLEM) == {11}
    assert await ids(store, "planerr", problem=GENERAL_PROBLEM) == {11}


# Episodes, and the bus's own records.


async def test_an_episode_is_found_by_the_texts_in_its_content_wherever_they_stand(backend):
    content = {"d": "sell the boat", "why": [{"because": "the harbour closes"}, 7, None], "n": {}}
    await put(backend.store, episode(content, problem="p1"))
    async for store in backend.readers():
        for word in ("boat", "harbour", '"the harbour closes"', ""):
            assert await ids(store, word, kinds=frozenset({"event"}), problem="p1") == {2}, word
        for word in ("because", "why", "decision", "episode", "content"):
            assert await ids(store, word) == set(), word


# Of any shape.


async def test_labels_of_any_text_are_told_apart(backend):
    odd = [
        "half \ud83d",
        "\ud83d\ude00",
        "😀",
        "\x00",
        "a\x00",
        '["p1"]',
        "p1",
        "P1",
        " ",
        "%",
        "é",
        "e\u0301",
    ]
    for one in odd:
        await put(backend.store, event(one, {"d": "tea"}, problem=one, layer=one, tags=[one]))
    async for store in backend.readers():
        for place, one in enumerate(odd, start=2):
            for asked in (
                *({"problem": one}, {"layer": one}),
                *({"tags": frozenset({one})}, {"names": frozenset({one})}),
            ):
                assert await ids(store, "tea", **asked) == {place}, (ascii(one), asked)
                assert await ids(store, "", **asked) == {place}, (ascii(one), asked)


# In time.
