"""Recall by words and by meaning, with the facts beside what was said."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from bot.core.errors import TransientModelError
from bot.llm.embeddings.local import LocalEmbedder
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.session import vector_index as vectors_module
from bot.memory.session.recall import RecalledPassage, recall_passages
from bot.memory.session.state.zone_snapshot import MemorySnapshot
from bot.memory.session.vector_index import VectorIndex
from bot.tape.entries import TapeEntry, event, message, tool_result
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore

loads_a_model = pytest.mark.slow

NOW = datetime(2026, 2, 20, 12, tzinfo=UTC)
TALK = ["My sister got a kitten last week.", "The tax return is due in May.", "The lake was cold."]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Questions wait for however slow a machine, which has to load the model first."""
    monkeypatch.setattr(vectors_module, "_PATIENCE", 60.0)
    monkeypatch.setattr(vectors_module, "_LONGEST_ASKED", 60.0)


@pytest.fixture(scope="module")
async def local():
    embedder = LocalEmbedder()
    yield embedder
    await embedder.aclose()


@pytest.fixture
async def store(tmp_path: Path):
    opened = FileTapeStore(tmp_path / "tapes", sync=False)
    with anyio.fail_after(30):
        yield opened
    await opened.close()


def said(text: str) -> TapeEntry:
    return message(
        "user", text, sender={"id": "7", "name": "Ada"}, sent="2026-02-10T10:00:00+00:00"
    )


async def tape(store: FileTapeStore, *entries: TapeEntry | str, name: str = "a") -> TapeService:
    await store.create_tape(name)
    await store.append_many(name, [said(e) if isinstance(e, str) else e for e in entries])
    return TapeService(store, name)


async def ask(
    of: TapeService, query: str | None, *, days: int = 365, **more: Any
) -> list[RecalledPassage]:
    return await recall_passages(
        of, MemorySnapshot(), query, days=days, now=NOW, timezone=UTC, **more
    )


@pytest.fixture
def vectors(tmp_path: Path, store: FileTapeStore, local: LocalEmbedder) -> VectorIndex:
    return VectorIndex(tmp_path / "vectors", store, local)


@loads_a_model
async def test_what_shares_no_word_with_the_question_is_found_by_its_meaning(store, vectors):
    of = await tape(store, *TALK, "now")
    assert await ask(of, "Does anybody have a cat?") == []
    [first, *_] = await ask(of, "Does anybody have a cat?", vectors=vectors)
    assert first.render() == "- 2026-02-10 10:00, Ada [#2]: My sister got a kitten last week."
    assert await ask(of, "Who won the election in France?", vectors=vectors) == []


@loads_a_model
async def test_nothing_of_another_session_is_found(store, vectors):
    await tape(store, *TALK, name="b")
    of = await tape(store, "The printer is new.", "now")
    await vectors.catch_up("b")
    found = await ask(of, "Does anybody have a kitten?", vectors=vectors)
    assert not any("kitten" in one.text for one in found)


@loads_a_model
async def test_what_was_recalled_or_remembered_is_not_found_as_if_it_had_been_said(store, vectors):
    of = await tape(
        store,
        "Hello there.",
        tool_result("c1", "memory.recall", "- 2026-01-01, Ada [#3]: The kitten is called Minka."),
        event("memory.long_term", {"content": "- The kitten is called Minka."}),
        event("loop.step", {"extra": ["From the tape and memory:\n- The kitten is called Minka."]}),
        event(HISTORY_EVENT, {"entry": "The kitten Minka was ill."}),
        "now",
    )
    found = await ask(of, "How is the kitten called Minka?", vectors=vectors)
    assert [(one.who, one.text) for one in found if "inka" in one.text] == [
        ("history", "The kitten Minka was ill.")
    ]


async def test_while_embeddings_fail_words_find_what_they_find(store, tmp_path):
    class Failing(LocalEmbedder):
        async def embed(self, texts):
            raise TransientModelError("no answer")

    of = await tape(store, *TALK, "now")
    failing = VectorIndex(tmp_path / "vectors", store, Failing())
    assert await ask(of, "the kitten", vectors=failing) == await ask(of, "the kitten")
    assert failing.statistics()["failing"]


@loads_a_model
async def test_a_tape_that_is_not_what_was_embedded_gives_no_wrong_passage(
    store, tmp_path, vectors
):
    of = await tape(store, *TALK, "now")
    assert (await ask(of, "Does anybody have a cat?", vectors=vectors))[0].entry == 2
    other = FileTapeStore(tmp_path / "others", sync=False)
    changed = await tape(other, *reversed(TALK), "now")
    # Its second entry is another one than that whose vector is near.
    assert await ask(changed, "Does anybody have a cat?", vectors=vectors) == []
    await other.close()
    assert (await ask(of, "Does anybody have a cat?", vectors=vectors))[0].entry == 2
