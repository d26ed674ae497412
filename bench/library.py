"""Stores with very many entries, written as the file store writes them but for the waiting.

``python -m bench.library FOLDER index`` makes the index of such a store; ``… cold QUESTION`` opens it
and searches once. Both say as JSON what it took.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time

import anyio

from bench.resident import resident
from bench.words import Talk
from bot.core.append_file import AppendFile
from bot.tape.codec import encode_entries
from bot.tape.entries import TapeEntry
from bot.tape.search import SearchQuery
from bot.tape.store import header_entry
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder import TapeFolder

EACH = 2_000
"""Entries of a tape, its header included."""

_PORTION = 500


def tape_name(number: int) -> str:
    """Return the name of a store's tape of that number, from 0."""
    return f"bench:{number}"


async def write_store(root: Path, entries: int) -> None:
    """Write tapes with so many entries in all.

    The store's own appends would stamp, and wait for, every portion; what is in the files is the same.
    """
    store = FileTapeStore(root, sync=False)
    await store.create_tape(tape_name(0))
    await store.close()
    folder, talk = TapeFolder(root, ""), Talk(1)
    for number in range(entries // EACH):
        write_tape(folder.live_path(tape_name(number)), tape_name(number), talk, EACH)


def write_tape(path: Path, tape: str, talk: Talk, entries: int) -> None:
    """Write the file of a tape with so many entries, its header included."""
    path.unlink(missing_ok=True)
    begin = replace(header_entry(tape, None), id=1, meta={"ts": "2024-01-01T00:00:00.000+00:00"})
    file = AppendFile(path, sync=False)
    try:
        file.append_now(encode_entries([begin]), 1)
        for portion in _portions(talk.messages(entries - 1)):
            file.append_now(encode_entries(portion), portion[-1].id)
    finally:
        file.close()


def _portions(entries: Iterator[TapeEntry]) -> Iterator[list[TapeEntry]]:
    while portion := list(islice(entries, _PORTION)):
        yield portion


def index_files(root: Path) -> list[Path]:
    """Return the files of the store's index."""
    return sorted(root.glob("*.index.db*"))


def _delete_index(root: Path) -> None:
    for path in index_files(root):
        path.unlink()


async def _index(root: Path) -> dict[str, float]:
    _delete_index(root)
    store = FileTapeStore(root, sync=False)
    wall, cpu = perf_counter(), process_time()
    await store.search(SearchQuery(text="dinner", limit=1))
    wall, cpu = perf_counter() - wall, process_time() - cpu
    held = resident()
    closing = perf_counter()
    await store.close()
    return {
        "seconds": wall,
        "cpu": cpu,
        "resident_kb": held,
        "close": perf_counter() - closing,
        "bytes": sum(path.stat().st_size for path in index_files(root)),
    }


async def _cold(root: Path, question: str) -> dict[str, float]:
    before = resident()
    began = perf_counter()
    store = FileTapeStore(root, sync=False)
    hits = await store.search(SearchQuery(text=question, limit=10))
    taken = perf_counter() - began
    held = resident()
    await store.close()
    return {"seconds": taken, "resident_kb": held, "more_kb": held - before, "hits": len(hits)}


def drop_caches(root: Path) -> None:
    """Ask the system to forget what it holds of a store's files in memory."""
    for path in root.iterdir():
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


if __name__ == "__main__":
    if sys.argv[2] == "index":
        print(json.dumps(anyio.run(_index, Path(sys.argv[1]))))
    else:
        print(json.dumps(anyio.run(_cold, Path(sys.argv[1]), sys.argv[3])))
