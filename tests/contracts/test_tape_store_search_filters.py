"""What every store finds can be narrowed by kind, sender, time, place and anchor."""

from __future__ import annotations

import random

import pytest
from searching import DAY, MESSAGES, START, apart, ask, found, invented, moment, places
from tape_talk import TAPE, says, talk

from bot.core.errors import TapeNotFound
from bot.tape.entries import (
    TapeEntry,
    anchor,
    event,
    message,
    system,
    tool_call,
    tool_result,
)
from bot.tape.store import TapeStore

# Filters.


@pytest.fixture
async def mixed(store: TapeStore) -> list[TapeEntry]:
    """One tape with an entry of each kind that holds the word tea; ids 2 to 13."""
    entries = [
        says("tea, says Ada", sender={"id": "7", "name": "Ada"}, sent=moment(0)),
        message("assistant", "tea, says the assistant", sent=moment(1)),
        says("tea, says Bo", sender={"id": "8", "name": "Bo Ås"}, sent=moment(2)),
        tool_call("tea", [{"id": "c1", "name": "shop.buy", "arguments": '{"what": "tea"}'}]),
        tool_result("c1", "shop.buy", "bought tea"),
        event("memory.history", {"content": "they spoke of tea"}),
        anchor("session/new", {"summary": "all about tea"}),
        system("you sell tea"),
    ]
    await store.create_tape(TAPE)
    return await store.append_many(
        TAPE, [entry.with_meta(ts=moment(n)) for n, entry in enumerate(entries)]
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("message", {2, 3, 4}),
        ("tool_call", {5}),
        ("tool_result", {6}),
        ("event", {7}),
        ("anchor", {8}),
        ("system", {9}),
    ],
)
async def test_what_is_found_can_be_of_one_kind(store, mixed, kind, expected):
    assert await places(store, kinds=frozenset({kind})) == expected


async def test_system_prompts_are_found_only_where_they_are_asked_for(store, mixed):
    assert await places(store) == {2, 3, 4, 5, 6, 7, 8}
    assert await places(store, "sell") == set()
    assert 9 not in {hit.entry.id for hit in await ask(store, limit=100)}
    assert await places(store, "sell", kinds=frozenset({"system"})) == {9}


@pytest.mark.parametrize(
    ("senders", "expected"),
    [
        ({"Ada"}, {2}),
        ({"bo ås"}, {4}),
        ({"assistant"}, {3}),
        ({"Ada", "assistant"}, {2, 3}),
        ({"Ad"}, set()),
        ({""}, set()),
        ({"%"}, set()),
        (set(), set()),
    ],
    ids=lambda value: ascii(sorted(value)),
)
async def test_what_is_found_can_be_of_some_senders(store, mixed, senders, expected):
    assert await places(store, kinds=MESSAGES, senders=frozenset(senders)) == expected


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (1, None, {3, 4}),
        (2, None, {4}),
        (None, 1, {2}),
        (1, 2, {3}),
        (2, 1, set()),
    ],
)
async def test_what_is_found_can_be_of_some_time(store, mixed, since, until, expected):
    """From a moment on, and up to right before another."""
    found = await places(
        store,
        kinds=MESSAGES,
        since=None if since is None else START + since * DAY,
        until=None if until is None else START + until * DAY,
    )
    assert found == expected


async def test_when_a_thing_was_said_counts_before_when_it_was_written_down(store):
    late = says("tea", sent=moment(0)).with_meta(ts=moment(5))
    plain = says("tea").with_meta(ts=moment(0))
    broken = says("tea", sent="yesterday, I think").with_meta(ts=moment(0))
    await apart(store, late, plain, broken, says("tea").with_meta(ts=moment(5)))
    assert await places(store, kinds=MESSAGES, until=START + DAY) == {2, 4, 6}
    assert await places(store, kinds=MESSAGES, since=START + DAY) == {8}


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (None, 3, {2, 3}),
        (3, 5, {3, 4, 5}),
        (5, 4, set()),
        (-5, 2, {2}),
        (None, 0, set()),
        (-(2**70), 2**70, {2, 3, 4, 5, 6, 7, 8}),
    ],
)
async def test_what_is_found_can_be_of_some_ids(store, mixed, first, last, expected):
    assert await places(store, first=first, last=last) == expected


async def test_filters_hold_together(store, mixed):
    both = {"kinds": MESSAGES, "first": 3}
    assert await places(store, **both) == {3, 4}
    assert await places(store, **both, since=START + 2 * DAY) == {4}
    assert await places(store, **both, senders=frozenset({"ada", "8"})) == {4}
    assert await places(store, **both, senders=frozenset({"8"}), until=START + 2 * DAY) == set()
    assert await places(store, **both, tapes=("other",)) == set()
    assert await places(store, "coffee", **both) == set()
    assert await places(store, "", **both) == {3, 4}


async def test_only_the_tapes_that_are_asked_for_are_searched(backend):
    names = [TAPE, "telegram:4", "telegram:42:1", "TELEGRAM:42", "telegram:4_", "telegram:%", ""]
    for name in names:
        await apart(backend.store, f"tea on {name}", tape=name)
    async for store in backend.readers():
        for name in names:
            assert await found(store, "tea", tapes=(name,)) == [f"tea on {name}"]
            assert await found(store, tapes=(name,)) == [f"tea on {name}"]
        assert len(await found(store, "tea")) == len(names)
        some = await ask(store, "tea", tapes=("", TAPE, "nobody", TAPE), kinds=MESSAGES)
        assert sorted(hit.tape for hit in some) == ["", TAPE]


async def test_a_search_of_one_tape_never_gives_anything_of_another(store):
    """Over random talk on tapes that share their words, people, anchors and times."""
    rng = random.Random(3)
    words = invented(4)
    tapes = [f"telegram:{number}" for number in range(3)]
    holds: dict[tuple[str, str], set[int]] = {}
    for _ in range(24):
        tape, chosen = rng.choice(tapes), rng.sample(words, 2)
        sender = {"id": rng.choice("78"), "name": rng.choice(["Ada", "Bo"])}
        [entry] = await apart(store, says(" ".join(chosen), sender=sender), tape=tape)
        for word in chosen:
            holds.setdefault((tape, word), set()).add(entry.id)
    for tape in tapes:
        for word in words:
            for text in (word, f'"{word}"'):
                hits = await ask(
                    store, text, tapes=(tape,), kinds=MESSAGES, limit=200, neighbours=3
                )
                assert {hit.tape for hit in hits} <= {tape}
                assert {hit.entry.id for hit in hits} == holds.get((tape, word), set())
                for hit in hits:
                    around = (hit.entry, *hit.before, *hit.after)
                    there = await store.read(tape)
                    assert all(there[one.id - 1] == one for one in around)


# Anchors.


@pytest.fixture
async def marked(store: TapeStore) -> None:
    """Messages at 2, 4, 6, 8, 10; the last bookmark ``here`` points at 6, ``cut`` stands at 13."""
    await apart(store, *(f"tea {word}" for word in ("one", "two", "three", "four", "five")))
    await store.create_anchor(TAPE, "here", 8)
    await store.create_anchor(TAPE, "here", 6)
    await apart(store, "tea six", anchor("cut"), "tea seven")


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"after_anchor": "here"}, {8, 10, 14, 18}),
        ({"before_anchor": "here"}, {2, 4}),
        ({"after_anchor": "here", "before_anchor": "cut"}, {8, 10, 14}),
        ({"after_anchor": "cut", "before_anchor": "here"}, set()),
        ({"after_anchor": "here", "first": 9}, {10, 14, 18}),
        ({"before_anchor": "cut", "last": 9}, {2, 4, 6, 8}),
    ],
    ids=str,
)
@pytest.mark.parametrize("text", ["tea", ""])
async def test_what_is_found_can_be_after_or_before_an_anchor(
    store, marked, filters, expected, text
):
    """The last anchor of the name counts, and the entry that it points at is neither."""
    assert await places(store, text, tapes=(TAPE,), kinds=MESSAGES, limit=50, **filters) == expected


@pytest.mark.parametrize("end", ["after_anchor", "before_anchor"])
async def test_an_anchor_that_a_search_names_must_exist(store, marked, end):
    await talk(store, "tea", tape="other")
    for tape in ("other", "nobody"):
        with pytest.raises(TapeNotFound):
            await ask(store, "tea", tapes=(tape,), **{end: "here"})
    with pytest.raises(TapeNotFound, match="nowhere"):
        await ask(store, "tea", tapes=(TAPE,), **{end: "nowhere"})
