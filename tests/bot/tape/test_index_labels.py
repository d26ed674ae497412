"""Problems, tags, layers and names in the index: on disk, in long tapes, and where the tape has changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from index_talk import index_files, opened

from bot.tape.chain import CHAIN_START
from bot.tape.codec import decode_line, encode_chained
from bot.tape.entries import TapeEntry, anchor, event, message
from bot.tape.index import full_text_search as searching
from bot.tape.index import search_filter as scope
from bot.tape.index.ranking import IndexRow, read_row
from bot.tape.search import GENERAL_PROBLEM, SearchQuery
from bot.tape.stores.in_memory import InMemoryTapeStore

TAPE = "telegram:42"


def said(text: str, **meta: Any) -> TapeEntry:
    return message("user", text, **meta)


async def stored(*entries: TapeEntry) -> InMemoryTapeStore:
    store = InMemoryTapeStore()
    await store.create_tape(TAPE)
    await store.append_many(TAPE, entries)
    return store


async def test_the_few_of_a_problem_are_found_by_a_word_that_very_many_have(monkeypatch):
    monkeypatch.setattr(searching, "_GATHERED", 20)
    few = [said("project plan", problem="p1"), said("the project", problem="p1")]
    store = await stored(*few, *(said("project plan") for _ in range(100)))
    for words in ("project", "project plan", "plan project zebra"):
        hits = await store.search(SearchQuery(words, problem="p1", limit=100))
        assert {hit.entry.id for hit in hits} == {2, 3}
    hits = await store.search(SearchQuery("project", problem=GENERAL_PROBLEM, limit=5))
    assert len(hits) == 5
    assert not {2, 3} & {hit.entry.id for hit in hits}


async def test_a_word_that_very_many_have_counts_beside_one_that_only_the_problem_has(monkeypatch):
    monkeypatch.setattr(searching, "_GATHERED", 20)
    few = [said("zebra", problem="p1"), anchor("chapter"), said("project", problem="p1")]
    store = await stored(*few, *(said("project plan") for _ in range(100)))
    hits = await store.search(SearchQuery("project zebra", problem="p1"))
    assert {hit.entry.id for hit in hits} == {2, 4}


async def test_what_stands_beside_without_the_label_is_no_hit_and_no_sign_of_a_changed_tape(caplog):
    red = [said("tea", tags=["red"]), said("tea")]
    store = await stored(*red * 3)
    for limit in (3, 10):
        hits = await store.search(SearchQuery("tea", tags=frozenset({"red"}), limit=limit))
        assert sorted(hit.entry.id for hit in hits) == [2, 4, 6]
    assert "anew" not in caplog.text


async def test_without_words_only_what_has_the_labels_is_looked_at(monkeypatch):
    """However much else the tape holds."""
    few = [said("a", problem="p1"), event("episode", {"content": {}}, problem="p1", tags=["x"])]
    store = await stored(*few, *(said("b", problem="p2") for _ in range(3_000)))
    await store.search(SearchQuery())
    read = 0

    def counted(*arguments: Any) -> IndexRow:
        nonlocal read
        read += 1
        return read_row(*arguments)

    monkeypatch.setattr(scope, "read_row", counted)
    for query in (
        SearchQuery(problem="p1"),
        SearchQuery(tags=frozenset({"x"})),
        SearchQuery(names=frozenset({"episode"}), neighbours=5),
    ):
        assert await store.search(query)
    assert read <= 10


@pytest.mark.parametrize("when", ["at once", "after a restart"])
async def test_what_was_written_on_an_entry_is_in_no_byte_of_the_index_once_it_is_erased(
    tmp_path, when
):
    secret = "gooseberry"
    labels = {"problem": f"{secret}1", "layer": f"{secret}2", "tags": [f"{secret}3"]}
    held = lambda: [f for f in index_files(tmp_path) if secret.encode() in f.read_bytes()]  # noqa: E731
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
        kept = said("tea", problem="p1", tags=["kept"])
        await store.append_many(TAPE, [kept, said("tea", **labels), said("tea")])
        await store.search(SearchQuery("tea"))
        assert held()
    async with opened(tmp_path) as store:
        if when == "at once":
            await store.search(SearchQuery("tea"))
        await store.erase(TAPE, [replace(said(""), id=3)])
        assert held() == []
        hits = await store.search(SearchQuery("tea", tags=frozenset({"kept"}), problem="p1"))
        assert [hit.entry.id for hit in hits] == [2]
    assert held() == []


async def edited(folder: Path, number: int, problem: str) -> None:
    """Give an entry another problem behind the index's back; its words stay."""
    [path] = folder.glob("*.jsonl")
    entries = [line.entry for line in map(decode_line, path.read_bytes().splitlines()) if line]
    entries[number - 1].meta["problem"] = problem
    path.write_bytes(encode_chained(entries, CHAIN_START)[0])


@pytest.mark.parametrize("text", ["tea", ""])
async def test_no_hit_and_nothing_beside_it_is_of_another_problem_than_the_tape_says(
    tmp_path, text
):
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
        await store.append_many(TAPE, [said(f"tea {n}", problem="p1") for n in range(3)])
        await store.append(TAPE, said("cake", problem="p1"))
        assert len(await store.search(SearchQuery(text, problem="p1"))) >= 3
    await edited(tmp_path, 3, "p2")
    async with opened(tmp_path) as store:
        cake = await store.search(SearchQuery('"cake"', problem="p1", neighbours=3))
        assert [[one.id for one in hit.before] for hit in cake] == [[2, 4]]
        hits = await store.search(SearchQuery(text, problem="p1", kinds=frozenset({"message"})))
        assert {hit.entry.id for hit in hits} == {2, 4, 5}
        hits = await store.search(SearchQuery(text, problem="p2", kinds=frozenset({"message"})))
        assert [hit.entry.id for hit in hits] == [3]
