"""Vectors of tapes: kept up, disposable, erased, and never in the way."""

from __future__ import annotations

import logging
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from embedding_rig import HashedWords, said, vector_of

from bot.core.errors import TransientModelError
from bot.memory.session import vector_index as vectors_module
from bot.memory.session.vector_index import VectorIndex
from bot.tape.entries import TapeEntry
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import ManualClock

TALK = [
    "the boat is green",
    "my sister plays the cello",
    "herring for supper",
    "rain in the afternoon",
    "the cello concert was long",
    "call the dentist tomorrow",
]


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Questions wait for however slow a machine, but in the test of that."""
    monkeypatch.setattr(vectors_module, "_PATIENCE", 60.0)
    monkeypatch.setattr(vectors_module, "_LONGEST_ASKED", 60.0)


@pytest.fixture
def embedder() -> HashedWords:
    return HashedWords()


async def stored(*texts: str, tape: str = "a") -> InMemoryTapeStore:
    store = InMemoryTapeStore()
    await store.create_tape(tape)
    await store.append_many(tape, [said(text) for text in texts or TALK])
    return store


async def found(vectors: VectorIndex, text: str, limit: int = 3, **options) -> list[int]:
    return [one.id for one in await vectors.nearest("a", text, limit=limit, **options)]


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("archive", [False, True], ids=["dropped", "archived"])
async def test_nothing_is_left_of_what_was_reset_while_nobody_looked_after_vectors(
    tmp_path, embedder, archive
):
    store = await stored()
    await VectorIndex(tmp_path, store, embedder).catch_up("a")
    begin_anew = store.archive if archive else store.reset
    await begin_anew("a", [said("the harbour at night")])
    version, embedded = await store.version("a"), len(embedder.texts)
    vectors = VectorIndex(tmp_path, store, embedder)
    await vectors.catch_up("a")
    assert embedder.texts[embedded:] == ["the harbour at night"]
    [path] = files(tmp_path)
    left = [text for text in TALK if vector_of(text).tobytes() in path.read_bytes()]
    assert left == (TALK if archive else [])
    assert (await found(vectors, "the harbour at night"))[0] == version


async def test_erasing_leaves_no_vector_and_no_text_in_any_file(tmp_path, embedder):
    store = await stored()
    vectors = VectorIndex(tmp_path, store, embedder)
    await vectors.catch_up("a")
    secret = vector_of(TALK[1]).tobytes()
    assert any(secret in file.read_bytes() for file in files(tmp_path))
    assert not any(b"cello" in file.read_bytes() for file in files(tmp_path))
    await vectors.erase("a", [3, 99])
    for file in files(tmp_path):
        assert secret not in file.read_bytes()
    assert 3 not in await found(vectors, TALK[1], 6)
    assert 3 not in await found(VectorIndex(tmp_path, store, embedder), TALK[1], 6)
    assert (await found(vectors, TALK[0]))[0] == 2


class Forgetful(InMemoryTapeStore):
    """A store whose entries can be emptied, as erasing does."""

    erased: frozenset[int] = frozenset()

    async def read(self, tape, from_entry_id=None, to_entry_id=None):
        entries = await super().read(tape, from_entry_id, to_entry_id)
        return [
            TapeEntry(one.id, one.kind, {}, {}) if one.id in self.erased else one for one in entries
        ]


async def test_what_is_erased_while_it_is_embedded_is_not_written_afterwards(tmp_path, embedder):
    store = Forgetful()
    await store.create_tape("a")
    await store.append_many("a", [said(text) for text in TALK])
    embedder.gate = anyio.Event()
    vectors = VectorIndex(tmp_path, store, embedder)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(vectors.catch_up, "a")
            await embedder.asked.wait()
            store.erased = frozenset({3})
            await vectors.erase("a", [3])
            embedder.gate.set()
    secret = vector_of(TALK[1]).tobytes()
    assert not any(secret in file.read_bytes() for file in files(tmp_path))
    assert sorted(await found(vectors, "the", 6)) == [2, 4, 5, 6, 7]


async def test_an_outage_is_told_once_and_costs_nothing_until_the_next_try(
    tmp_path, embedder, caplog
):
    clock = ManualClock()
    vectors = VectorIndex(tmp_path, await stored(), embedder, clock=clock)
    embedder.failing = TransientModelError("embed: no answer")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert await found(vectors, "cello") == []
        assert embedder.calls == 1
        clock.advance(16)
        assert await found(vectors, "cello") == []
        assert embedder.calls == 2
    warned = [one.message for one in caplog.records]
    assert warned == ["embeddings fail, so recall uses words only for now: embed: no answer"]
    embedder.failing = None
    clock.advance(29)
    assert await found(vectors, "cello") == []
    clock.advance(2)
    assert (await found(vectors, "cello"))[0] in (3, 6)
    assert not vectors.statistics()["failing"]


async def test_a_message_that_the_model_rejects_costs_no_other_its_vector(tmp_path, embedder):
    store = await stored(TALK[0])
    vectors = VectorIndex(tmp_path, store, embedder)
    await vectors.catch_up("a")
    embedder.rejects = "long"
    for text in (TALK[4], TALK[1]):
        await store.append_many("a", [said(text)])
        await vectors.catch_up("a")
    assert (await found(vectors, TALK[1], 6))[0] == 4
    assert 3 not in await found(vectors, TALK[4], 6)


async def test_two_processes_keep_one_vector_for_each_message(tmp_path, embedder):
    store = await stored(TALK[0])
    one, other = (VectorIndex(tmp_path, store, embedder) for _ in range(2))
    for text in TALK[1:]:
        await one.catch_up("a")
        await other.catch_up("a")
        await store.append_many("a", [said(text)])
        one, other = other, one
    assert await found(one, "the cello", 20) == await found(
        VectorIndex(tmp_path, store, embedder), "the cello", 20
    )
    assert len(await found(one, "the cello", 20)) == len(TALK)


async def test_vectors_of_other_dimensions_are_all_made_again(tmp_path, embedder):
    store = await stored(*TALK[:3])
    vectors = VectorIndex(tmp_path, store, embedder)
    await vectors.catch_up("a")
    embedder.repeats = 4
    await store.append_many("a", [said(TALK[3])])
    await vectors.catch_up("a")
    assert sorted(await found(vectors, TALK[0], 20)) == [2, 3, 4, 5]
