"""Any history gives the same answers whichever store keeps it, and the answers that a list would give."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from databases import fresh_database
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import many

from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from bot.core.errors import TapeError, TapeExists, TapeNotFound, VersionConflict
from bot.tape.entries import (
    MEMORY_SEAL,
    SESSION_NEW,
    TapeEntry,
    anchor,
    event,
    message,
    tool_result,
)
from bot.tape.search import SearchQuery
from bot.tape.store import Anchor, Segment, TapeStore
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.tape.stores.postgres import PostgresTapeStore

Opener = Callable[[], TapeStore]

TAPES = ("telegram:42", "telegram:42:1", "TELEGRAM:42")
WORDS = ("samovar", "咖啡", "книга", "grüße", "xylophone", "قهوة")
"""Too unlike each other to be taken for one another."""

NAMES = ("tea", "half \ud83d", SESSION_NEW, MEMORY_SEAL, "", "te\u0301a")


@asynccontextmanager
async def _memory(_folder: Path) -> AsyncIterator[Opener]:
    store = InMemoryTapeStore()
    yield lambda: store


@asynccontextmanager
async def _file(folder: Path) -> AsyncIterator[Opener]:
    yield lambda: FileTapeStore(folder / "tapes", sync=False)


_database = cache(fresh_database)
_workspaces = itertools.count(1)


@asynccontextmanager
async def _postgres(_folder: Path) -> AsyncIterator[Opener]:
    workspace = f"{next(_workspaces)}"
    database = Database(await anyio.to_thread.run_sync(_database))
    await database.open()
    try:
        yield lambda: PostgresTapeStore(database, Wakeups(database), workspace=workspace)
    finally:
        await database.close()


Kind = Callable[[Path], AbstractAsyncContextManager[Opener]]

PAIRS: dict[str, tuple[Kind, Kind]] = {
    "memory and file": (_memory, _file),
    "memory and postgres": (_memory, _postgres),
}
Ask = Callable[[TapeStore], Awaitable[Any]]


class Pair:
    def __init__(self, open_a: Opener, open_b: Opener) -> None:
        self._open = (open_a, open_b)
        self._stores = [open_a(), open_b()]

    async def both(self, ask: Ask) -> Any:
        """Ask both; return the one answer that both give, an error's type for an error."""
        ours, theirs = [await _answer(store, ask) for store in self._stores]
        assert ours == theirs
        return ours

    async def reopen(self) -> None:
        await self.close()
        self._stores = [opener() for opener in self._open]

    async def close(self) -> None:
        for store in self._stores:
            await store.close()


@asynccontextmanager
async def pair(open_a: Opener, open_b: Opener) -> AsyncIterator[Pair]:
    held = Pair(open_a, open_b)
    try:
        yield held
    finally:
        await held.close()


async def _answer(store: TapeStore, ask: Ask) -> Any:
    try:
        return _plain(await ask(store))
    except VersionConflict as error:
        return (VersionConflict, error.tape, error.expected, error.actual)
    except TapeError as error:
        return type(error)


def _plain(answer: Any) -> Any:
    """Return an answer without what may differ: times, and the names of segments."""
    match answer:
        case list():
            return [_plain(one) for one in answer]
        case TapeEntry():
            data = {**answer.data, "previous": "a segment"} if "previous" in answer.data else None
            payload = answer.payload if data is None else {**answer.payload, "data": data}
            meta = {key: value for key, value in answer.meta.items() if key != "ts"}
            return repr(replace(answer, payload=payload, meta=meta))
        case Segment():
            return (answer.first_id, answer.last_id)
        case Anchor():
            return (repr(replace(answer, ts="")), answer.is_boundary, answer.parent)
    return answer


# What may be done to tapes; numbers are shares of what there is.

tape = st.sampled_from(TAPES)
share = st.integers(-1, 12)
text = st.lists(st.sampled_from(WORDS), max_size=3).map(" und so ".join)
name = st.sampled_from(NAMES)
state = st.dictionaries(
    st.sampled_from(["summary", "n"]),
    st.sampled_from(WORDS) | st.sampled_from([2**63, -0.0, [], {}, None, "\udc00"]),
    max_size=2,
)
entry = st.one_of(
    text.map(lambda said: message("user", said)),
    text.map(lambda said: message("assistant", said, sender={"id": "7", "name": "half \ud83d"})),
    text.map(lambda said: tool_result("c1", "web.read", said)),
    text.map(lambda said: event("memory.history", {"content": said})),
    st.builds(anchor, name, state),
)
batch = st.lists(entry, max_size=4)
operations = st.one_of(
    st.tuples(st.just("create"), tape, st.none() | st.sampled_from(WORDS)),
    st.tuples(st.just("append"), tape, batch, st.sampled_from([None, 0, 0, -1, 1])),
    st.tuples(st.just("append"), tape, batch, st.none()),
    st.tuples(st.just("archive"), tape, batch),
    st.tuples(st.just("reset"), tape, batch),
    st.tuples(st.just("replace"), tape),
    st.tuples(st.just("fork"), tape, tape, st.none() | share | name),
    st.tuples(st.just("bookmark"), tape, name, st.none() | share, state),
    st.tuples(st.just("erase"), tape, st.lists(share, min_size=1, max_size=3)),
    st.tuples(st.just("reopen")),
    st.tuples(st.just("read"), tape, st.none() | share, st.none() | share),
    st.tuples(st.just("back"), tape, share),
    st.tuples(st.just("anchors"), tape, name),
    st.tuples(st.just("search"), st.sampled_from(WORDS), st.none() | st.lists(tape, max_size=2)),
)


async def _back(store: TapeStore, tape: str, before: int | None = None) -> list[TapeEntry]:
    return [entry async for entry in store.read_back(tape, before)]


async def _found(store: TapeStore, query: SearchQuery) -> list[tuple[str, int]]:
    """Return what has words of the question itself, in an order of its own."""
    hits = await store.search(query)
    return sorted((hit.tape, hit.entry.id) for hit in hits if hit.direct)


async def _forked(store: TapeStore, parent: str, child: str, **point: Any) -> str:
    """Fork a tape; of several reasons to refuse it a store may give either."""
    try:
        return await store.fork(parent, child, **point)
    except (TapeNotFound, TapeExists):
        return "refused"


async def _erase(store: TapeStore, tape: str, numbers: list[int]) -> int:
    """Erase what is there of these ids; headers keep all but their title."""
    made = []
    for number in set(numbers):
        for entry in await store.read(tape, number, number) if number > 0 else ():
            data = {key: value for key, value in entry.data.items() if key != "title"}
            emptied = {"name": entry.name, "data": data} if entry.kind == "event" else {}
            made.append(replace(entry, payload=emptied, meta={"ts": entry.meta["ts"]}))
    return await store.erase(tape, made)


async def do(stores: Pair, step: tuple[Any, ...]) -> None:
    match step:
        case ("create", tape, title):
            await stores.both(lambda store: store.create_tape(tape, title))
        case ("append", tape, entries, off):
            version = await stores.both(lambda store: store.version(tape))
            known = isinstance(version, int)
            expect = version + off if known and off is not None else off
            await stores.both(lambda store: store.append_many(tape, entries, expect=expect))
        case ("archive", tape, carry):
            await stores.both(lambda store: store.archive(tape, carry))
        case ("reset", tape, carry):
            await stores.both(lambda store: store.reset(tape, carry))
        case ("replace", tape):
            await stores.both(lambda store: store.create_tape(tape, replace_if_exists=True))
        case ("fork", parent, child, str(point)):
            await stores.both(lambda store: _forked(store, parent, child, from_anchor=point))
        case ("fork", parent, child, point):
            await stores.both(lambda store: _forked(store, parent, child, from_entry=point))
        case ("bookmark", tape, name, target, state):
            await stores.both(lambda store: store.create_anchor(tape, name, target, state))
        case ("erase", tape, numbers):
            await stores.both(lambda store: _erase(store, tape, numbers))
        case ("reopen",):
            await stores.reopen()
        case ("read", tape, first, last):
            await stores.both(lambda store: store.read(tape, first, last))
        case ("back", tape, before):
            await stores.both(lambda store: _back(store, tape, before))
        case ("anchors", tape, name):
            await stores.both(lambda store: store.get_anchor(tape, name))
            await stores.both(lambda store: store.resolve_anchor(tape, name))
        case ("search", word, tapes):
            asked = None if tapes is None else tuple(tapes)
            query = SearchQuery(word, tapes=asked, limit=1000)
            await stores.both(lambda store: _found(store, query))
        case _:
            raise AssertionError(step)


async def look(stores: Pair) -> None:
    """See that all that can be asked has one answer, and that it follows from what is read."""
    tapes = await stores.both(lambda store: store.list_tapes())
    for tape in TAPES:
        there = await stores.both(lambda store, tape=tape: store.version(tape))
        assert (there is TapeNotFound) == (tape not in tapes)
        await stores.both(lambda store, tape=tape: store.get_title(tape))
        await stores.both(lambda store, tape=tape: store.segments(tape))
        read = await stores.both(lambda store, tape=tape: store.read(tape))
        back = await stores.both(lambda store, tape=tape: _back(store, tape))
        assert back == (read[::-1] if isinstance(read, list) else read)
        await stores.both(lambda store, tape=tape: store.list_anchors(tape))
    for word in WORDS:
        query = SearchQuery(word, limit=1000, kinds=frozenset({"message"}))
        found = await stores.both(lambda store, query=query: _found(store, query))
        held = await stores.both(lambda store, word=word: _holders(store, word))
        assert found == held


async def _holders(store: TapeStore, word: str) -> list[tuple[str, int]]:
    """Return the messages that hold a word, sorted, found by reading all there is."""
    held: list[tuple[str, int]] = []
    for tape in await store.list_tapes():
        held += [
            (tape, entry.id)
            for entry in await store.read(tape)
            if entry.kind == "message" and word in str(entry.payload.get("content", ""))
        ]
    return held


@pytest.mark.slow
@pytest.mark.parametrize("kinds", PAIRS)
@settings(max_examples=many(50))
@given(st.lists(operations, min_size=4, max_size=40))
async def test_any_history_has_the_same_answers_in_every_store(kinds, history):
    open_a, open_b = PAIRS[kinds]
    with tempfile.TemporaryDirectory() as folder:
        async with (
            open_a(Path(folder)) as opener_a,
            open_b(Path(folder)) as opener_b,
            pair(opener_a, opener_b) as stores,
        ):
            for tape in TAPES[:2]:
                await stores.both(lambda store, tape=tape: store.create_tape(tape))
            for place, step in enumerate(history):
                await do(stores, step)
                if place % 10 == 9:
                    await look(stores)
            await stores.reopen()
            await look(stores)
