"""Tapes that change behind the index's back: what a search finds is on the tapes as it is now."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from index_talk import (
    QUERIES,
    TAPES,
    answers,
    copy_tapes,
    indexed_and_closed,
    opened,
    shape,
    write_tapes,
)

from bot.tape.entries import TapeEntry, message
from bot.tape.search import SearchQuery
from bot.tape.stores.file import FileTapeStore

pytestmark = pytest.mark.slow

TAPE = TAPES[0]
WORDS = ("walnut", "velvet", "花园", "starling")


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """Tapes with an index that was closed in order."""
    await write_tapes(tmp_path / "tapes")
    await indexed_and_closed(tmp_path / "tapes")
    return tmp_path / "tapes"


def parts_of(folder: Path, tape: str = TAPE) -> list[Path]:
    """The files of a tape: what is sealed, and the live one last."""
    [stem] = {
        path.name.partition(".")[0]
        for path in folder.glob("*.jsonl")
        if json.loads(path.read_bytes().split(b"\n")[0])["payload"]["data"].get("session") == tape
    }
    sealed = sorted(folder.glob(f"{stem}.*.*.jsonl"))
    return [*sealed, folder / f"{stem}.jsonl"]


def edit(path: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change the records of a file by hand."""
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    change(records)
    path.chmod(0o600)
    path.write_bytes(
        b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)
    )


def messages(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [record for record in records if record["kind"] == "message"]


async def check_no_hit_is_wrong(store: FileTapeStore, fresh: FileTapeStore) -> None:
    """Every hit is an entry of its tape, with true neighbours, and found without an old index, too."""
    held = {
        (tape, entry.id): entry
        for tape in await store.list_tapes()
        for entry in await store.read(tape)
    }
    queries = [SearchQuery(text=word, limit=1_000, neighbours=1) for word in WORDS]
    by_name = SearchQuery(senders=frozenset({"Ada"}), limit=1_000)
    for query in (*queries, *QUERIES[5:7], by_name):
        found = shape(await store.search(query))
        right = {(tape, entry.id) for tape, entry, *_ in shape(await fresh.search(query))}
        assert {(tape, entry.id) for tape, entry, *_ in found} <= right, query
        for tape, entry, before, after in found:
            around = [*before, entry, *after]
            assert [held[tape, one.id] for one in around] == around
            ids = [one.id for one in around]
            assert ids == sorted(set(ids))


async def check_all(folder: Path, scratch: Path) -> None:
    """No hit is wrong, neither at once nor after the tape grew and the store was opened again."""
    for _ in range(2):
        copy_tapes(folder, scratch)
        async with opened(scratch) as fresh, opened(folder) as store:
            await check_no_hit_is_wrong(store, fresh)
            await store.create_tape(TAPE)
            await store.append(TAPE, message("user", "kestrel", ts="2026-03-01T10:00Z"))
        shutil.rmtree(scratch)


async def test_a_file_replaced_by_another_of_the_same_length(folder, tmp_path):
    live = parts_of(folder)[-1]
    before = live.stat()
    text = live.read_text(encoding="utf-8")
    for word, other in (("kestrel", "bramble"), ("walnut", "hazels"), ("Ada", "Eve")):
        assert word in text
        text = text.replace(word, other)
    replacement = live.with_name("replacement")
    replacement.write_text(text, encoding="utf-8")
    replacement.rename(live)
    assert live.stat().st_size == before.st_size
    await check_all(folder, tmp_path / "scratch")
    async with opened(folder) as store:
        hits = await store.search(SearchQuery(text="kestrel", tapes=(TAPE,), limit=1_000))
        begin = json.loads(text.partition("\n")[0])["id"]
        end = json.loads(text.splitlines()[-1])["id"]
        live_hits = [hit.entry for hit in hits if begin <= hit.entry.id <= end]
        assert not any("kestrel" in entry.payload["content"] for entry in live_hits)


async def test_entries_edited_in_the_middle(folder, tmp_path):
    def change(records: list[dict[str, Any]]) -> None:
        said = messages(records)
        for record in said[1:6]:
            record["payload"]["content"] = "starling umbrella"
        said[8]["meta"]["sender"] = {"id": "Z", "name": "Zoe"}
        said[9]["meta"]["ts"] = said[9]["meta"]["sent"] = "2031-01-01T00:00:00+00:00"
        said[10]["payload"]["role"] = "assistant"
        said[11]["kind"] = "system"
        said[12]["payload"] = {}

    edit(parts_of(folder)[0], change)
    await check_all(folder, tmp_path / "scratch")


async def test_a_tape_that_was_deleted_is_not_found(folder, tmp_path):
    for path in parts_of(folder):
        path.unlink()
    async with opened(folder) as store:
        for query in QUERIES:
            if query.after_anchor is None:
                assert all(hit.tape != TAPE for hit in await store.search(query))
        assert await store.search(SearchQuery(text="kestrel", tapes=(TAPE,))) == []
    await check_all(folder, tmp_path / "scratch")


async def grown_after_a_backup(folder: Path, backup: Path, texts: list[str]) -> None:
    """Go on after a backup, then put the backup in the tapes' place; the index knows what was after."""
    copy_tapes(folder, backup)
    async with opened(folder) as store:
        await store.append_many(TAPE, [message("user", text) for text in texts])
        await answers(store)
    for path in folder.glob("*.jsonl"):
        path.unlink()
    for path in backup.glob("*.jsonl"):
        shutil.copy2(path, folder)
    shutil.rmtree(backup)


@pytest.mark.parametrize("more", [1, 40], ids="{} entries".format)
async def test_a_backup_that_was_restored_and_grew_again(folder, tmp_path, more):
    """Its new entries have the ids of those that the index knows."""
    await grown_after_a_backup(folder, tmp_path / "backup", ["starling one", "starling two"])
    async with opened(folder) as store:
        fresh: list[TapeEntry] = [message("user", f"velvet {n}") for n in range(more)]
        await store.append_many(TAPE, fresh)
    assert await fresh_hits(folder, tmp_path / "scratch") == await hits_of(folder)
    await check_all(folder, tmp_path / "scratch")


async def hits_of(folder: Path) -> list[Any]:
    async with opened(folder) as store:
        return [
            shape(await store.search(SearchQuery(text=word, tapes=(TAPE,), limit=1_000)))
            for word in WORDS
        ]


async def fresh_hits(folder: Path, scratch: Path) -> list[Any]:
    copy_tapes(folder, scratch)
    found = await hits_of(scratch)
    shutil.rmtree(scratch)
    return found
