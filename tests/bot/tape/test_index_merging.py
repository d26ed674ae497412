"""An index that was made in many portions becomes quick to search behind, and finds the same meanwhile."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
from index_talk import index_files, opened
from searched_words import said, words_of
from waiting import until

from bot.tape.index.database import IndexDatabase
from bot.tape.index.merging import SegmentMerger
from bot.tape.search import SearchQuery

PORTIONS, EACH = 30, 20
ASKED = SearchQuery("walnut", tapes=("a",), limit=1_000)


async def index_in_portions(folder: Path) -> list[str]:
    """Index a tape in portions, none of which is merged with another; return what is found."""
    async with opened(folder) as store:
        await store.create_tape("a")
        await store.search(ASKED)
        database = store._index._keeper.database
        assert database is not None
        assert database.writer is not None
        database.writer.execute("INSERT INTO words (words, rank) VALUES ('automerge', 0)")
        database.writer.execute("INSERT INTO words (words, rank) VALUES ('crisismerge', 1000)")
        for portion in range(PORTIONS):
            texts = [f"walnut {portion} {number} {'ab' * number}" for number in range(EACH)]
            await store.append_many("a", [said(text, portion) for text in texts])
            found = words_of(await store.search(ASKED))
    assert segments(folder) == PORTIONS
    return found


def segments(folder: Path) -> int:
    with closing(sqlite3.connect(database_file(folder))) as connection:
        return int(connection.execute("SELECT count(DISTINCT segid) FROM words_idx").fetchone()[0])


def database_file(folder: Path) -> Path:
    [path] = [one for one in index_files(folder) if one.suffix == ".db"]
    return path


async def test_portions_are_merged_behind_and_what_is_said_meanwhile_is_found(tmp_path):
    before = await index_in_portions(tmp_path)
    async with opened(tmp_path) as store, anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        await store.append("a", said("hazel"))
        await until(lambda: segments(tmp_path) < 3)
        found = words_of(await store.search(ASKED))
        # What was said beside a match is a match, too.
        assert [text for text in found if text != "hazel"] == before
        assert "hazel" in words_of(await store.search(SearchQuery("hazel")))
        tasks.cancel_scope.cancel()


async def test_a_merge_leaves_no_long_write_ahead_log(tmp_path, monkeypatch):
    monkeypatch.setattr("bot.tape.index.merging._PAGES", 2)
    monkeypatch.setattr("bot.tape.index.keeper.CHECKPOINT_PAGES", 8)
    await index_in_portions(tmp_path)
    async with opened(tmp_path) as store, anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        await store.append("a", said("hazel"))
        await until(lambda: segments(tmp_path) < 3)
        database = store._index._keeper.database
        await until(lambda: database is not None and database.wal_pages() <= 8)
        tasks.cancel_scope.cancel()


async def test_a_merge_that_ends_after_any_step_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("bot.tape.index.merging._PAGES", 2)
    before = await index_in_portions(tmp_path)
    merger, steps = SegmentMerger(), 0
    while merger.is_due:
        database = IndexDatabase(database_file(tmp_path))
        merger.step(database)
        database.close(in_order=True)
        steps += 1
        async with opened(tmp_path) as store:
            assert words_of(await store.search(ASKED)) == before
            assert store._index.statistics()["entries"] == 0
    assert steps > 2
    assert segments(tmp_path) == 1
