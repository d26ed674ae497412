"""Whatever a tape has been through, it is the same after a move into a database and back."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from databases import drop, fresh_database
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import many

from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from bot.core.errors import TapeError
from bot.tape.entries import ENTRY_KINDS, TapeEntry
from bot.tape.store import TapeStore
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder_verification import verify_folder
from bot.transfer.database_storage import DatabaseHomeStorage
from bot.transfer.file_storage import FileHomeStorage
from bot.transfer.migration import migrate_home
from bot.transfer.storage import HomeStorage, read_tape_metadata

pytestmark = pytest.mark.slow

TAPES = ("telegram:42", "telegram:42:1", "discord:ü😀")

texts = st.text(st.characters(), max_size=12) | st.sampled_from(
    ["\x00", "\ud83d\ude00", "😀", "\ud800"]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
payloads = st.dictionaries(texts | st.sampled_from(["name", "role", "content"]), values, max_size=4)
entries = st.builds(TapeEntry, st.just(0), st.sampled_from(sorted(ENTRY_KINDS)), payloads, payloads)
batches = st.lists(entries, max_size=4)
tapes = st.sampled_from(TAPES)

steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), tapes, batches),
        st.tuples(st.just("archive"), tapes, batches),
        st.tuples(st.just("reset"), tapes, batches),
        st.tuples(st.just("fork"), tapes, tapes, st.integers(1, 12)),
        st.tuples(st.just("erase"), tapes, st.integers(1, 20), payloads),
        st.tuples(st.just("anchor"), tapes, texts, st.integers(1, 12)),
    ),
    max_size=12,
)


async def _do(store: TapeStore, step: tuple[Any, ...]) -> None:
    what, tape, *rest = step
    await store.create_tape(tape, f"title of {tape}")
    if what == "append":
        await store.append_many(tape, rest[0])
    elif what == "archive":
        await store.archive(tape, rest[0])
    elif what == "reset":
        await store.reset(tape, rest[0])
    elif what == "fork":
        await store.fork(tape, rest[0] + ":fork", from_entry=rest[1], title="\x00")
    elif what == "erase":
        for old in await store.read(tape, rest[0], rest[0]):
            await store.erase(tape, [TapeEntry(old.id, old.kind, rest[1], {"erased": True})])
    else:
        await store.create_anchor(tape, rest[0], rest[1])


async def _histories(store: TapeStore, made: list[tuple[Any, ...]]) -> None:
    for step in made:
        try:
            await _do(store, step)
        except TapeError:
            # An entry or a tape that is not there, a name that is taken: nothing was done.
            continue


async def _held(place: HomeStorage) -> dict[str, Any]:
    names = await place.tapes.list_tapes()
    return {
        name: (
            await read_tape_metadata(place.tapes, name),
            # As text: 1 is not 1.0 there.
            [repr(entry) for entry in await place.tapes.read(name)],
            [repr(one) for one in await place.tapes.list_anchors(name)],
        )
        for name in names
    }


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    made = fresh_database()
    yield made
    drop(made)


def _silent(word: str, text: str) -> None:
    """Nobody listens."""


async def _there_and_back(
    url: str, workspace: str, made: list[tuple[Any, ...]], first: str
) -> None:
    database = Database(url)
    await database.open()
    with tempfile.TemporaryDirectory() as folder:
        begun, back = (
            FileHomeStorage(Path(folder) / name, workspace) for name in ("begun", "back")
        )
        shared = DatabaseHomeStorage(database, Wakeups(database), workspace)
        try:
            if first == "files":
                store = FileTapeStore(
                    Path(folder) / "begun" / "tapes", workspace=workspace, sync=False
                )
                await _histories(store, made)
                await store.close()
                await migrate_home(begun, shared, say=_silent)
                assert await _held(shared) == await _held(begun)
            else:
                await _histories(shared.tapes, made)
            before = await _held(shared)
            with back.lock():
                moved = await migrate_home(shared, back, say=_silent)
            assert not moved.differing
            assert await _held(back) == before
            assert not verify_folder(Path(folder) / "back" / "tapes", workspace).problems
        finally:
            await begun.tapes.close()
            await back.tapes.close()
            await database.close()


_workspaces = iter(range(1_000_000))


@pytest.mark.slow
@pytest.mark.parametrize("first", ["files", "postgres"])
@settings(max_examples=many(40))
@given(made=steps)
def test_any_tapes_are_the_same_there_and_back(url, first, made):
    # A workspace of its own is as good as an empty database, and quicker.
    anyio.run(_there_and_back, url, f"{first}-{next(_workspaces)}", made, first)
