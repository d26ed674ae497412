"""What a search finds whatever is asked, and what recall and a running bot make of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from searched_words import BEGIN, said, stored, words_of

from bot.memory.session.recall import recall_passages
from bot.memory.session.state.zone_snapshot import MemorySnapshot
from bot.runtime.app.control_commands import _search
from bot.runtime.control_socket import call_control, serve_control
from bot.tape.entries import event, message, tool_call
from bot.tape.index import full_text_search as searching
from bot.tape.search import Hit, SearchQuery
from bot.tape.stores.in_memory import InMemoryTapeStore


async def test_a_word_that_other_tapes_have_more_often_than_this_one_has_rows(monkeypatch, caplog):
    monkeypatch.setattr(searching, "_GATHERED", 20)
    store = await stored(a=[said("project")] * 30, b=[said("project")] * 100)
    assert len(await store.search(SearchQuery("project"))) == 10
    assert len(await store.search(SearchQuery("project", tapes=("a",)))) == 10
    assert "damaged" not in caplog.text


@pytest.mark.parametrize(
    ("query", "hours"),
    [
        (SearchQuery("project", until=BEGIN + timedelta(hours=5)), {0, 1, 2, 3, 4}),
        (SearchQuery("project", senders=frozenset({"3"})), {3}),
        (SearchQuery("project zebra", kinds=frozenset({"message"}), last=4), {0, 1, 2}),
        (SearchQuery("project plan", senders=frozenset({"3", "4"})), {3, 4}),
    ],
)
async def test_filters_find_the_few_among_very_many_that_have_a_word(monkeypatch, query, hours):
    monkeypatch.setattr(searching, "_GATHERED", 20)
    entries = [said("project plan", hour) for hour in range(100)]
    store = await stored(a=[*entries, event("zebra/crossing")])
    found = await store.search(query)
    assert {int(hit.entry.meta["sender"]["id"]) for hit in found} == hours


async def test_more_than_sixteen_of_very_many_tapes(monkeypatch):
    monkeypatch.setattr(searching, "_GATHERED", 20)
    few = {f"a{number:02}": [said("project")] * 2 for number in range(17)}
    store = await stored(**few, b=[said("project")] * 100, c=[said("other")])
    await store.search(SearchQuery("project"))
    found = await store.search(SearchQuery("project", tapes=(*few, "c", "nowhere"), limit=100))
    assert {hit.tape for hit in found} == set(few)


async def test_a_phrase_of_common_words_beside_a_word_that_is_nowhere():
    store = await stored(a=[said("to be or not to be"), said("kestrel walnut")])
    for query in ('"to be or not" zebra', '"to be or not"', '"to be or not" kestrel'):
        found = [hit for hit in await store.search(SearchQuery(query)) if hit.direct]
        said_so = [hit.entry.payload["content"] for hit in found]
        assert "to be or not to be" in said_so
        assert len(said_so) == 1 + ("kestrel" in query)


async def test_nearly_equal_words_of_other_tapes_hide_none_of_this_one():
    near = "harbosr harbogr harbohr harbojr harbokr harbolr harbomr harbonr".split()
    store = await stored(a=[said("harbour")], b=[said(word) for word in near for _ in "12"])
    assert len(await store.search(SearchQuery("harbosr"))) >= 2
    found = await store.search(SearchQuery("harbowr", tapes=("a",)))
    assert words_of(found) == ["harbour"]


async def test_what_nobody_spelt_so_is_guessed_for_some_words_of_a_long_question_only(monkeypatch):
    asked: list[str] = []
    looked = searching.similar_terms

    def counted(connection: Any, term: str, **options: Any) -> dict[str, float]:
        asked.append(term)
        return looked(connection, term, **options)

    monkeypatch.setattr(searching, "similar_terms", counted)
    store = await stored(a=[said("kestrel")])
    unknown = " ".join(f"unknown{number:03}x" for number in range(300))
    assert words_of(await store.search(SearchQuery(f"{unknown} kestrel"))) == ["kestrel"]
    assert 0 < len(asked) < 50


async def test_a_call_whose_name_is_no_text_is_found_by_what_was_said():
    store = await stored(a=[tool_call("kestrel", [{"name": ["x"], "arguments": {}}])])  # type: ignore[dict-item]
    assert len(await store.search(SearchQuery("kestrel"))) == 1


async def test_an_entry_that_looks_like_a_header_hides_nothing():
    store = await stored(a=[said("kestrel"), event("tape.header", {"session": "a"}), said("ember")])
    assert words_of(await store.search(SearchQuery("kestrel"))) == ["kestrel"]
    await store.reset("a", [said("walnut")])
    assert await store.search(SearchQuery("kestrel")) == []
    assert words_of(await store.search(SearchQuery("walnut"))) == ["walnut"]


class _Session:
    def __init__(self, store: InMemoryTapeStore, tape: str) -> None:
        self._store = store
        self._tape = tape

    def read_back(self) -> Any:
        return self._store.read_back(self._tape)

    async def search(self, query: SearchQuery) -> list[Hit]:
        return await self._store.search(replace(query, tapes=(self._tape,)))


@pytest.mark.parametrize("words", ["jumiper", "juniper", "January 1"])
async def test_recall_finds_what_is_spelt_a_little_differently_and_what_has_the_date(words):
    store = await stored(a=[said("the juniper blooms"), said("what is asked now", 48)])
    found = await recall_passages(
        _Session(store, "a"),  # type: ignore[arg-type]
        MemorySnapshot(),
        words,
        days=30,
        now=BEGIN + timedelta(days=2),
        timezone=UTC,
    )
    assert [passage.text for passage in found] == ["the juniper blooms"]


async def asked(home: Path, store: InMemoryTapeStore, **request: Any) -> dict[str, Any]:
    """Ask a bot's socket as ``tapebot tape search`` does."""
    answer: Callable[[Any], Any] = lambda request: _search(store, request)  # noqa: E731
    async with anyio.create_task_group() as tasks:
        await tasks.start(serve_control, home, {"search": answer})
        reply = await call_control(home, {"do": "search", **request})
        tasks.cancel_scope.cancel()
    assert reply is not None
    return reply


async def test_the_running_bot_tells_of_hits_however_long_their_texts_are(tmp_path):
    file = {"name": "a.txt", "text": "walnut " * 100_000}
    long = message("user", "kestrel " * 200_000, attachments=[file], ts=BEGIN.isoformat())
    store = await stored(a=[long, said("kestrel")])
    # What is asked at the socket is given up after some seconds, and all this is indexed first.
    await store.search(SearchQuery("kestrel"))
    reply = await asked(tmp_path, store, words="kestrel")
    assert reply["ok"]
    assert {hit["entry"]["id"] for hit in reply["hits"]} == {2, 3}


async def test_a_long_text_in_many_pieces_hides_no_other_entry():
    other = [said(f"kestrel {word}") for word in ("ember", "walnut", "lagoon")]
    store = await stored(a=[*other, said("kestrel " * 100_000)])
    assert len(await store.search(SearchQuery("kestrel"))) == 4
    found = await store.search(SearchQuery("kestrel", senders=frozenset({"0"}), limit=3))
    assert len(found) == 3


async def test_the_running_bot_says_where_an_answer_has_too_many_hits(tmp_path):
    store = await stored(a=[said(f"kestrel {'x' * 2_000}")] * 1_000)
    reply = await asked(tmp_path, store, words="kestrel", limit=1_000)
    assert not reply["ok"]
    assert "fewer" in reply["text"]
