"""A search by problem, tags, layer and name gives exactly what a plain look along the tape gives."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.tape.entries import TapeEntry, anchor, event, message, system, tool_result
from bot.tape.search import GENERAL_PROBLEM, Hit, SearchQuery
from bot.tape.store import TapeStore
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.in_memory import InMemoryTapeStore

proved = settings(max_examples=examples(60))

TAPES = ("telegram:42", "telegram:42:1")
WORDS = ("samovar", "咖啡", "книга", "xylophone")
"""Too unlike each other to be taken for one another."""

PROBLEMS = ("p1", "p2", "half \ud83d")
LAYERS = ("focus", "altitude")
TAGS = ("red", "blue", "red, blue")
NAMES = ("episode", "note", "mark", "gate.decided")

text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" und so ".join)
meta = st.fixed_dictionaries(
    {},
    optional={
        "problem": st.sampled_from(PROBLEMS) | st.sampled_from([GENERAL_PROBLEM, 7, None]),
        "layer": st.sampled_from(LAYERS),
        "tags": st.lists(st.sampled_from(TAGS), max_size=3),
    },
)
plain_entry = st.one_of(
    text.map(lambda said: message("user", said)),
    text.map(lambda said: message("assistant", said)),
    text.map(lambda said: tool_result("c1", "web.read", said)),
    text.map(lambda said: event("episode", {"type": "delta", "content": {"to": [said]}})),
    text.map(lambda said: event("note", {"said": said})),
    text.map(lambda said: event("gate.decided", {"said": said})),
    text.map(lambda said: anchor("mark", {"said": said})),
    text.map(system),
)
entry = st.builds(lambda made, labels: made.with_meta(**labels), plain_entry, meta)
batch = st.tuples(st.sampled_from(TAPES), st.lists(entry, max_size=6))
query = st.builds(
    SearchQuery,
    st.just("") | st.sampled_from(WORDS),
    tapes=st.none() | st.just(TAPES[:1]),
    kinds=st.none() | st.sets(st.sampled_from(["message", "event", "system"])).map(frozenset),
    problem=st.none() | st.sampled_from([*PROBLEMS, GENERAL_PROBLEM]),
    tags=st.sets(st.sampled_from(TAGS), max_size=2).map(frozenset),
    layer=st.none() | st.sampled_from([*LAYERS, ""]),
    names=st.none() | st.sets(st.sampled_from(NAMES), max_size=2).map(frozenset),
    limit=st.sampled_from([1, 2, 1000]),
    neighbours=st.sampled_from([0, 2]),
)


def problem(one: TapeEntry) -> str:
    """Its problem, said as plainly as can be."""
    named = one.meta.get("problem")
    return named if named in PROBLEMS else GENERAL_PROBLEM


def asked_for(one: TapeEntry, query: SearchQuery) -> bool:
    """Say whether an entry is what a search asks for; whatever its words are."""
    if one.kind == "event" and one.name not in ("episode", "note"):
        return False
    return all(
        (
            one.kind != "system" if query.kinds is None else one.kind in query.kinds,
            query.problem is None or problem(one) == query.problem,
            all(tag in one.meta.get("tags", []) for tag in query.tags),
            query.layer is None or one.meta.get("layer", "") == query.layer,
            query.names is None or (one.kind in ("event", "anchor") and one.name in query.names),
        )
    )


async def check(store: TapeStore, query: SearchQuery) -> None:
    there = {
        (tape, one.id): one
        for tape in await store.list_tapes()
        if query.tapes is None or tape in query.tapes
        for one in await store.read(tape)
    }
    fit = {key for key, one in there.items() if asked_for(one, query)}
    wanted = {key for key in fit if query.text in repr(there[key].payload)}
    hits = await store.search(query)
    found = {(hit.tape, hit.entry.id) for hit in hits}
    direct = {(hit.tape, hit.entry.id) for hit in hits if hit.direct}
    assert len(found) == len(hits) <= query.limit
    assert found <= fit
    assert direct <= wanted
    if query.limit == 1000:
        assert direct == wanted
    else:
        assert len(hits) >= min(query.limit, len(wanted))
    for hit in hits:
        check_beside(hit, query, there)


def check_beside(hit: Hit, query: SearchQuery, there: dict[tuple[str, int], TapeEntry]) -> None:
    """What comes with a hit is what stands next to it among the messages of its problem."""
    turns = [
        one
        for (tape, _), one in there.items()
        if tape == hit.tape and one.kind == "message"
        if query.problem in (None, problem(one))
    ]
    count = query.neighbours
    before: Sequence[TapeEntry] = [one for one in turns if one.id < hit.entry.id]
    after = [one for one in turns if one.id > hit.entry.id]
    assert list(hit.before) == (before[-count:] if count else [])
    assert list(hit.after) == after[:count]


async def take(store: TapeStore, batches: Sequence[tuple[str, list[TapeEntry]]], step: int) -> None:
    """Write batches, searching, sealing and dropping in between."""
    for place, (tape, entries) in enumerate(batches):
        await store.create_tape(tape)
        await store.append_many(tape, entries)
        if place == step:
            await store.search(SearchQuery(problem="p1"))
            await store.archive(tape, entries[:1])
        elif place == step + 1:
            await store.reset(tape, entries[:2])


Opener = Callable[[Path], TapeStore]
OPENERS: dict[str, Opener] = {
    "memory": lambda _: InMemoryTapeStore(),
    "file": lambda folder: FileTapeStore(folder / "tapes", sync=False),
}


@pytest.mark.parametrize("backend", ["memory", pytest.param("file", marks=pytest.mark.slow)])
@proved
@given(st.lists(batch, max_size=5), st.integers(0, 4), st.lists(query, min_size=3, max_size=8))
async def test_a_search_by_labels_is_a_plain_look_along_the_tape(backend, batches, step, queries):
    with tempfile.TemporaryDirectory() as folder:
        store = OPENERS[backend](Path(folder))
        try:
            await take(store, batches, step)
            for one in queries:
                await check(store, one)
        finally:
            await store.close()
