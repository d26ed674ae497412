"""Vectors of tapes: kept up, disposable, erased, and never in the way."""

from __future__ import annotations

import logging
import random
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from embedding_rig import HashedWords, said, vector_of

from bot.core.errors import TransientModelError
from bot.memory.session import vector_index as vectors_module
from bot.memory.session.vector_index import VectorIndex, text_checksum
from bot.tape.entries import TapeEntry, event, tool_result
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


async def test_what_was_said_last_is_found_by_the_next_question(tmp_path, embedder):
    store = await stored()
    vectors = VectorIndex(tmp_path, store, embedder)
    assert (await found(vectors, "the boat is green"))[0] == 2
    newest = await store.append("a", said("a yellow submarine"))
    assert (await found(vectors, "yellow submarine"))[0] == newest.id


async def test_only_what_was_said_has_a_vector(tmp_path, embedder):
    store = await stored("the boat")
    await store.append_many(
        "a",
        [
            tool_result("c1", "memory.recall", "the boat of old"),
            event("memory.long_term", {"content": "the boat"}),
            event("loop.step", {"extra": ["the boat"]}),
            said("  "),
        ],
    )
    vectors = VectorIndex(tmp_path, store, embedder)
    assert await found(vectors, "boat") == [2]
    assert embedder.texts == ["the boat", "boat"]


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


async def test_the_background_embeds_what_is_noted_and_a_restart_begins_where_it_was(tmp_path):
    store, clock = await stored(), ManualClock()
    first, second = HashedWords(), HashedWords()
    vectors = VectorIndex(tmp_path, store, first, clock=clock)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(vectors.run)
            vectors.mark_changed("a")
            while len(first.texts) < len(TALK):
                await anyio.lowlevel.checkpoint()
            await store.append("a", said("a yellow submarine"))
            vectors.mark_changed("a")
            await clock.wait_for_sleepers()
            clock.advance(2)
            while len(first.texts) < len(TALK) + 1:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    again = VectorIndex(tmp_path, store, second)
    assert (await found(again, "cello"))[0] in (3, 6)
    assert len(second.texts) <= 2  # the question, and what a kill may have cost


async def test_another_model_makes_all_vectors_anew(tmp_path, embedder):
    store = await stored()
    await VectorIndex(tmp_path, store, embedder).catch_up("a")
    [before] = files(tmp_path)
    content = before.read_bytes()
    other = HashedWords("another")
    vectors = VectorIndex(tmp_path, store, other)
    assert (await found(vectors, "boat"))[0] == 2
    assert other.texts[:-1] == TALK
    assert [one.read_bytes() == content for one in files(tmp_path)] == [False]


DAMAGES = {
    "emptied": lambda data: b"",
    "cut in its head": lambda data: data[:20],
    "cut in a row": lambda data: data[: len(data) // 2],
    "zeroed": lambda data: bytes(len(data)),
    "of something else": lambda data: b"SQLite format 3\0" + data,
    "with rows in the wrong order": lambda data: data[:48] + data[48:][280:] + data[48:][:280],
    "with wild numbers": lambda data: data[:200] + b"\xff" * 100 + data[300:],
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_file_is_made_anew(tmp_path, embedder, damage):
    store = await stored()
    await VectorIndex(tmp_path, store, embedder).catch_up("a")
    wanted = await found(VectorIndex(tmp_path, store, embedder), "cello", 6)
    [file] = files(tmp_path)
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    vectors = VectorIndex(tmp_path, store, embedder)
    assert await found(vectors, "cello", 6) == wanted


@pytest.mark.parametrize("damage", [*DAMAGES, "gone"])
async def test_a_file_that_is_damaged_while_it_is_used_costs_no_more_than_a_question(
    tmp_path, embedder, damage
):
    store = await stored()
    vectors = VectorIndex(tmp_path, store, embedder)
    wanted = await found(vectors, "cello", 6)
    [file] = files(tmp_path)
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(DAMAGES[damage](file.read_bytes()))
    await vectors.nearest("a", "cello", limit=6)
    await store.append("a", said("the end"))
    await vectors.catch_up("a")
    again = VectorIndex(tmp_path, store, embedder)
    assert [one for one in await found(again, "cello", 6) if one < 8] == wanted


async def test_no_damage_raises_an_error(tmp_path, embedder):
    store = await stored()
    await VectorIndex(tmp_path, store, embedder).catch_up("a")
    [file] = files(tmp_path)
    sound, chance = file.read_bytes(), random.Random(7)
    for _ in range(60):
        data = bytearray(sound)
        for _ in range(chance.choice([1, 1, 8, 64])):
            data[chance.randrange(len(data))] = chance.randrange(256)
        file.write_bytes(data[: chance.choice([len(data), chance.randrange(len(data))])])
        vectors = VectorIndex(tmp_path, store, embedder)
        await vectors.nearest("a", "cello", limit=6)
        assert not vectors.statistics()["failing"]


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


async def test_a_row_that_a_kill_cut_short_is_erased_with_the_others(tmp_path, embedder):
    store = await stored()
    vectors = VectorIndex(tmp_path, store, embedder)
    await vectors.catch_up("a")
    [file] = files(tmp_path)
    torn = bytes(range(1, 101))
    file.write_bytes(file.read_bytes() + torn)
    await vectors.erase("a", [3])
    assert torn not in file.read_bytes()


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


async def test_a_tape_that_was_restored_from_an_older_copy_is_embedded_anew(tmp_path, embedder):
    await VectorIndex(tmp_path, await stored(), embedder).catch_up("a")
    older = await stored("something else", "altogether")
    vectors = VectorIndex(tmp_path, older, embedder)
    assert sorted(await found(vectors, "else", 6)) == [2, 3]


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


async def test_a_question_does_not_wait_for_a_long_tape_to_be_embedded(
    tmp_path, embedder, monkeypatch
):
    vectors = VectorIndex(tmp_path, await stored(), embedder)
    embedder.gate = anyio.Event()
    with anyio.fail_after(30), monkeypatch.context() as patch:
        patch.setattr(vectors_module, "_PATIENCE", 0.05)
        assert await found(vectors, "cello") == []
    embedder.gate.set()
    assert (await found(vectors, "cello"))[0] in (3, 6)


async def test_a_question_is_not_near_to_itself(tmp_path, embedder):
    store = await stored(*TALK, "who plays the cello")
    vectors = VectorIndex(tmp_path, store, embedder)
    assert 8 in await found(vectors, "who plays the cello", 7)
    assert 8 not in await found(vectors, "who plays the cello", 7, skip=8)


async def of_problems(*said_in: tuple[str, str]) -> InMemoryTapeStore:
    """A tape of texts, each with its problem; empty for none."""
    store = InMemoryTapeStore()
    await store.create_tape("a")
    entries = [said(text).with_meta(problem=problem) for text, problem in said_in]
    await store.append_many("a", entries)
    return store


async def test_only_what_is_of_the_problem_is_found_and_as_much_of_it_as_is_asked_for(
    tmp_path, embedder
):
    """What others say takes nobody's place, however near it is."""
    texts = [("the cello plays", "p2"), ("a cello", "p1"), ("rain", "p1"), ("the cello", "")]
    store = await of_problems(*(one for one in texts for _ in range(40)))
    for vectors in (VectorIndex(tmp_path, store, embedder) for _ in "12"):
        for problem, wanted in (("p1", range(42, 122)), ("general", range(122, 162))):
            near = await found(vectors, "the cello plays", 30, problem=problem)
            assert len(near) == 30
            assert set(near) <= set(wanted)
        assert await found(vectors, "the cello plays", 30, problem="p3") == []
        assert set(await found(vectors, "the cello plays", 200)) == {*range(2, 162)}


async def test_what_another_problem_says_lends_nothing_to_what_stands_beside_it(tmp_path, embedder):
    store = await of_problems(
        *(("the boat sails", "p1"), ("rain today", "p1"), ("herring soup", "p1")),
        *(("my cello", "p2"), ("dentist call", "p1")),
    )
    vectors = VectorIndex(tmp_path, store, embedder)
    alone = [one for one in (await store.read("a"))[1:] if one.meta["problem"] == "p1"]
    other = VectorIndex(
        tmp_path / "alone",
        await of_problems(*((one.payload["content"], "p1") for one in alone)),
        embedder,
    )
    wanted = [alone[number - 2].id for number in await found(other, "my cello boat", 9)]
    assert await found(vectors, "my cello boat", 9, problem="p1") == wanted


async def test_a_file_of_an_earlier_version_is_of_no_problem_and_stays_of_use(tmp_path, embedder):
    """Its checksums had eight bytes, of which four were always zero."""
    store = await stored()
    await VectorIndex(tmp_path, store, embedder).catch_up("a")
    [file] = files(tmp_path)
    data = file.read_bytes()
    size = (len(data) - 48) // len(TALK)
    for place, text in enumerate(TALK):
        row = data[48 + place * size :]
        assert int.from_bytes(row[16:24], "little") == text_checksum(text)
    again = HashedWords()
    vectors = VectorIndex(tmp_path, store, again)
    assert (await found(vectors, "cello", problem="general"))[0] in (3, 6)
    assert again.texts == ["cello"]
    assert await found(vectors, "cello", problem="p1") == []


async def test_what_is_erased_is_of_no_problem(tmp_path, embedder):
    store = await of_problems(("my cello", "p1"), ("the boat", "p1"))
    vectors = VectorIndex(tmp_path, store, embedder)
    assert await found(vectors, "cello", problem="p1") == [2, 3]
    [file] = files(tmp_path)
    assert text_checksum("p1").to_bytes(4, "little") in file.read_bytes()
    await vectors.erase("a", [2, 3])
    assert text_checksum("p1").to_bytes(4, "little") not in file.read_bytes()
    for problem in ("p1", "general", None):
        assert await found(vectors, "cello", problem=problem) == []
