"""What is erased is in no file any more, whatever bytes the tape, its segments and its index held."""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from erased_words import (
    SECRET,
    TAPE,
    bytes_below,
    erase_all,
    found,
    laid_out,
    problems,
    secrets,
    tell,
    tombstone,
    traces,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from tape_files import opened, pack_all, refuse_syncs_of_folders, says
from waiting import until

from bot.core.errors import TapeWriteError
from bot.tape.codec import encode_append
from bot.tape.entries import TapeEntry, anchor, message
from bot.tape.search import SearchQuery
from bot.tape.stores.file import FileTapeStore


@pytest.mark.parametrize("indexed", ["closed", "written ahead"])
async def test_what_is_erased_is_in_no_file_and_all_else_is_as_it_was(tmp_path, indexed):
    await laid_out(tmp_path)
    async with opened(tmp_path) as store:
        if indexed == "written ahead":
            await found(store, "tea")
            await tell(store, 4)
            assert await found(store, f"{SECRET}4x3")
            assert [name for name in traces(tmp_path) if name.endswith("-wal")]
        before = await store.read(TAPE)
        segments = await store.segments(TAPE)
        gone = await secrets(store)
        assert await erase_all(store) == len(gone) > 20
        assert traces(tmp_path) == []
        assert problems(tmp_path) == []
        numbers = {entry.id for entry in gone}
        wanted = [tombstone(one) if one.id in numbers else one for one in before]
        assert await store.read(TAPE) == wanted
        assert await store.segments(TAPE) == segments
        assert await found(store, SECRET) == await found(store, "tea") == []
        assert len(await found(store, '"words 5"')) == sum(
            entry.payload.get("content") == "plain words 5" for entry in wanted
        )
        await store.append(TAPE, says("and on"))
        assert traces(tmp_path) == []
    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("*-*.jsonl*")} == {0o400}
    assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {0}
    async with opened(tmp_path) as store:
        assert (await store.read(TAPE))[: len(wanted)] == wanted
        assert await found(store, "plain") == await found(store, "words")
        assert store.statistics()["damaged_lines"] == 0
    assert traces(tmp_path) == problems(tmp_path) == []


async def test_names_labels_and_anchors_leave_the_index(tmp_path):
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
        named = {"sender": {"id": SECRET, "name": SECRET}, "problem": SECRET, "tags": [SECRET]}
        await store.append(TAPE, message("user", "hi", **named))
        await store.append(TAPE, anchor(SECRET, {"summary": SECRET}))
        assert await found(store, "hi") == [2]
        held = await store.read(TAPE, 2)
        fresh = [tombstone(held[0]), replace(held[1], payload={"name": "erased", "state": {}})]
        assert await store.erase(TAPE, fresh) == 2
        assert traces(tmp_path) == []
        assert [one.name for one in await store.list_anchors(TAPE)] == ["erased"]
        await store.append_many(TAPE, [anchor("memory/open", {"why": SECRET}), says("tea")])
        assert await found(store, "tea")
        await store.erase(TAPE, [tombstone((await store.read(TAPE))[-1])])
        await store.reset(TAPE)
        assert traces(tmp_path) == await store.list_anchors(TAPE) == []


@pytest.mark.slow
async def test_what_is_erased_while_another_program_reads_the_index_is_in_no_file(tmp_path):
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
        gone = await store.append(TAPE, says(f"{SECRET} tea"))
        assert await found(store, "tea")
        [index] = tmp_path.glob("*.index.db")
        with closing(sqlite3.connect(index, isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT count(*) FROM docs").fetchone()
            await store.erase(TAPE, [tombstone(gone)])
            assert traces(tmp_path) == await found(store, "tea") == []


async def test_packing_in_the_background_brings_nothing_back(tmp_path):
    async with opened(tmp_path) as store:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.run)
            for number in range(4):
                await tell(store, number)
                await store.archive(TAPE)
                await erase_all(store)
            await until(lambda: not list(tmp_path.glob("*-*.jsonl")))
            tasks.cancel_scope.cancel()
        assert traces(tmp_path) == problems(tmp_path) == []
        assert len(await store.segments(TAPE)) == 4


async def test_torn_and_unreadable_lines_go_and_no_id_is_given_anew(tmp_path):
    async with opened(tmp_path) as store:
        await tell(store, 1, 8)
    [live] = tmp_path.glob("*.jsonl")
    good = live.read_bytes().splitlines(keepends=True)
    bad = f'{{"id": 6, "kind": "message" {SECRET}\xff'.encode("latin-1") + b"\n"
    void = [TapeEntry(10 + n, "message", {"content": SECRET}) for n in range(3)]
    begun = encode_append(void).splitlines(keepends=True)[:2]
    torn = b"".join([*begun, b'{"id":12,"', SECRET.encode()])
    live.write_bytes(b"".join([*good[:5], bad, *good[6:]]) + torn)
    async with opened(tmp_path) as store:
        before = await store.read(TAPE)
        assert [entry.id for entry in before] == [1, 2, 3, 4, 5, 7, 8, 9]
        gone = await secrets(store)
        assert await erase_all(store) == len(gone) == 1
        assert traces(tmp_path) == []
        kept = [tombstone(one) if one == gone[0] else one for one in before]
        assert await store.read(TAPE) == kept
        assert (await store.append(TAPE, says("next"))).id == 10
        assert await store.erase(TAPE, [tombstone(gone[0])]) == 0
    told = problems(tmp_path)
    assert len(told) == 2
    assert "entries 6 to 6 are missing" in told[1]


async def test_where_the_storage_refuses_nothing_is_lost_and_erasing_again_completes(
    tmp_path, monkeypatch
):
    await laid_out(tmp_path)
    async with opened(tmp_path) as store:
        before = await store.read(TAPE)
        marks = [tombstone(entry) for entry in await secrets(store)]

        def refuse(*args: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", refuse)
            with pytest.raises(TapeWriteError, match="erase again"):
                await store.erase(TAPE, marks)
        assert not list(tmp_path.glob("*.new"))
        by_id = {entry.id: entry for entry in marks}
        held = await store.read(TAPE)
        assert all(one in (old, by_id.get(old.id)) for one, old in zip(held, before, strict=True))
        await store.append(TAPE, says("goes on"))
        left = await secrets(store)
        assert await store.erase(TAPE, marks) == len(left)
        assert traces(tmp_path) == problems(tmp_path) == []


async def test_a_fork_that_was_begun_before_an_erasure_brings_nothing_back(tmp_path, monkeypatch):
    held, go_on = threading.Event(), threading.Event()
    rename = Path.replace

    def slow(path: Path, target: Path) -> Path:
        monkeypatch.undo()
        held.set()
        assert go_on.wait(30)
        return rename(path, target)

    async with opened(tmp_path) as store:
        await tell(store, 1)
        marks = [tombstone(entry) for entry in await secrets(store)]
        erased = anyio.Event()

        async def erase() -> None:
            await store.erase(TAPE, marks)
            erased.set()

        async with anyio.create_task_group() as tasks:
            monkeypatch.setattr(Path, "replace", slow)
            tasks.start_soon(store.fork, TAPE, "fork")
            await until(held.is_set)
            tasks.start_soon(erase)
            with anyio.move_on_after(0.4):
                await erased.wait()
            go_on.set()
        assert len(await store.read("fork")) == len(await store.read(TAPE))
        assert traces(tmp_path) == []


@pytest.mark.parametrize("refused", ["sync", "remove"])
async def test_a_file_left_from_before_packing_is_erased_in_by_erasing_again(
    tmp_path, monkeypatch, refused
):
    async with opened(tmp_path) as store:
        await tell(store, 1)
        await store.archive(TAPE)
        marks = [tombstone(entry) for entry in await secrets(store)]
        unlink = Path.unlink

        def refuse(path: Path, **options: bool) -> None:
            if path.name.endswith(".jsonl"):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            unlink(path, **options)

        with monkeypatch.context() as patch:
            if refused == "sync":
                refuse_syncs_of_folders(patch)
            else:
                patch.setattr(Path, "unlink", refuse)
            with pytest.raises(TapeWriteError, match="erase again"):
                await store.erase(TAPE, marks)
        assert traces(tmp_path)
        await store.erase(TAPE, marks)
        assert traces(tmp_path) == []


@pytest.mark.parametrize("seen", ["*.sum", "*.gz.new"])
async def test_what_is_cancelled_leaves_a_whole_tape_and_can_be_completed(tmp_path, seen):
    await laid_out(tmp_path)
    ended = anyio.Event()
    async with opened(tmp_path) as store:
        marks = [tombstone(entry) for entry in await secrets(store)]

        async def work() -> None:
            try:
                await store.erase(TAPE, marks)
            finally:
                ended.set()

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(work)
                # The index's digest is there until the first byte goes, the others come.
                while not ended.is_set() and bool(list(tmp_path.glob(seen))) == (seen == "*.sum"):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            assert problems(tmp_path) == []
            assert not list(tmp_path.glob("*.new"))
            await store.append(TAPE, says("plain and on"))
            await store.erase(TAPE, marks)
        assert traces(tmp_path) == problems(tmp_path) == []
        assert len(await found(store, "plain")) > 120


# Any tape.

piece = st.sampled_from(["say", "secret", "many", "archive", "pack", "reset", "erase", "anchor"])


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(history=st.lists(piece, min_size=3, max_size=14), sample=st.randoms(use_true_random=False))
def test_whatever_a_tape_has_lived_through_what_is_erased_is_gone_and_all_else_stays(
    history, sample
):
    async def live() -> None:
        with tempfile.TemporaryDirectory() as name:
            await _live(Path(name), [*history, "secret", "erase"], sample.random)

    anyio.run(live)


async def _live(folder: Path, history: list[str], chance: Callable[[], float]) -> None:
    gone: set[str] = set()
    store = FileTapeStore(folder, sync=False)
    await store.create_tape(TAPE)
    for told, step in enumerate(history):
        if step == "say":
            await store.append(TAPE, says(f"words {told} of tea"))
        elif step in ("secret", "many"):
            texts = [f"{_word(told, n)} w" for n in range(1 if step == "secret" else 6)]
            await store.append_many(TAPE, [says(text) for text in texts])
        elif step == "archive":
            await store.archive(TAPE, [says("carried")])
        elif step == "reset":
            await store.reset(TAPE)
        elif step == "pack":
            await store.close()
            await pack_all(folder)
            store = FileTapeStore(folder, sync=False)
        elif step == "anchor":
            await store.create_anchor(TAPE, f"anchor {told}")
        else:
            await store.search(SearchQuery("tea"))
            before = await store.read(TAPE)
            hit = [e for e in before if "qz" in repr(e) and chance() < 0.6]
            marks = {entry.id: tombstone(entry) for entry in hit}
            gone |= {entry.payload["content"].split()[0] for entry in hit}
            assert await store.erase(TAPE, list(marks.values())) == len(hit)
            assert await store.read(TAPE) == [marks.get(e.id, e) for e in before]
            assert [e async for e in store.read_back(TAPE)] == (await store.read(TAPE))[::-1]
            for word in gone:
                assert await found(store, f'"{word}"') == []
            held = [e for e in await store.read(TAPE) if "qz" in repr(e)]
            for entry in held:
                word = entry.payload["content"].split()[0]
                assert await found(store, f'"{word}"') == [entry.id]
    data = bytes_below(folder)
    assert not [(name, word) for name, raw in data.items() for word in gone if word.encode() in raw]
    await store.close()
    assert problems(folder) == []


def _word(number: int, place: int) -> str:
    letters = "bdfghjklmnprtv"
    return (
        f"qz{letters[number % 14]}{letters[place]}a{letters[-1 - number % 14]}o{number:03}{place}k"
    )
