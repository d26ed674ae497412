"""How long a search takes by the number of entries, beside what SQLite alone takes for its words."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.library import EACH, drop_caches, index_files, tape_name, write_store
from bench.machine import clocked
from bench.processes import environment
from bench.report import Cell, Scale, Table, ms, p50, p95
from bench.words import Talk
from bot.tape.search import SearchQuery
from bot.tape.stores.file import FileTapeStore

_SIZES = (10_000, 100_000, 1_000_000)
_QUICK_SIZES = (4_000, 20_000)
_LIMIT = 10


def _in_process(root: Path, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.library", str(root), *arguments],
        env=environment(),
        capture_output=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


async def _timed(store: FileTapeStore, queries: list[SearchQuery]) -> list[float]:
    taken = []
    for query in queries:
        began = perf_counter()
        await store.search(query)
        taken.append(perf_counter() - began)
    return taken


class Plain:
    """The machine's limit: the same rows in a table of FTS5's own, with nothing around it."""

    def __init__(self, path: Path, root: Path) -> None:
        self._connection = sqlite3.connect(path)
        self._connection.execute("CREATE VIRTUAL TABLE said USING fts5(text)")
        for file in sorted(root.glob("*.jsonl")):
            with file.open("rb") as lines:
                self._connection.executemany(
                    "INSERT INTO said VALUES (?)", (_content(line) for line in lines)
                )
        self._connection.commit()

    def search(self, text: str) -> None:
        """Ask for rows with any of the words, best first by its own bm25."""
        words = " OR ".join(f'"{word}"' for word in text.split())
        self._connection.execute(
            "SELECT rowid, bm25(said) FROM said WHERE said MATCH ? ORDER BY rank LIMIT ?",
            (words, _LIMIT),
        ).fetchall()

    def close(self) -> None:
        self._connection.close()


def _content(line: bytes) -> tuple[str]:
    content: str = json.loads(line)["payload"].get("content", "")
    return (content,)


def _preads(path: Path) -> Callable[[], None]:
    """Return what reads as many entries as an answer has, each where it stands in a file."""
    descriptor = os.open(path, os.O_RDONLY)
    step = os.fstat(descriptor).st_size // (_LIMIT + 1)

    def read() -> None:
        for place in range(_LIMIT):
            os.pread(descriptor, 512, place * step)

    return read


async def _measure_one(
    work: Path, entries: int, asked: int
) -> tuple[list[tuple[Cell, ...]], tuple[Cell, ...]]:
    """Return the rows of one size: of searching, and of the index."""
    root = work / f"store-{entries}"
    await write_store(root, entries)
    built = _in_process(root, "index")
    drop_caches(root)
    cold = _in_process(root, "cold", Talk(3).question())
    warm = _in_process(root, "cold", Talk(4).question())

    talk = Talk(2)
    questions = [talk.question() for _ in range(asked)]
    tapes = entries // EACH
    within = [
        SearchQuery(text=text, tapes=(tape_name(number * 7 % tapes),), limit=_LIMIT)
        for number, text in enumerate(questions)
    ]
    everywhere = [SearchQuery(text=text, limit=_LIMIT) for text in questions]
    plain = Plain(work / "plain.db", root)
    store = FileTapeStore(root, sync=False)
    await _timed(store, [within[0], everywhere[0]])
    one, every = await _timed(store, within), await _timed(store, everywhere)
    await store.close()
    limit = [clocked(lambda text=text: plain.search(text)) for text in questions]  # type: ignore[misc]
    read = _preads(next(root.glob("*.jsonl")))
    reads = [clocked(read) for _ in range(asked)]
    plain.close()
    (work / "plain.db").unlink()
    size = sum(path.stat().st_size for path in index_files(root))

    searches: list[tuple[Cell, ...]] = [
        (f"{entries:,} entries: one tape", *_row(one, limit)),
        (f"{entries:,} entries: all {tapes} tapes", *_row(every, limit)),
        (f"{entries:,} entries: plain FTS5, OR and bm25", *_row(limit, limit)),
        (f"{entries:,} entries: {_LIMIT} preads", *_row(reads, limit)),
    ]
    index: tuple[Cell, ...] = (
        f"{entries:,} entries",
        entries / built["seconds"],
        1e6 * built["cpu"] / entries,
        size / entries,
        built["resident_kb"] / 1000,
        built["close"],
        ms(cold["seconds"]),
        ms(warm["seconds"]),
        warm["more_kb"] / 1000,
    )
    for path in root.iterdir():
        path.unlink()
    return searches, index


def _row(taken: list[float], limit: list[float]) -> tuple[Cell, ...]:
    return ms(p50(taken)), ms(p95(taken)), p50(taken) / p50(limit), p95(taken) / p95(limit)


async def measure(scale: Scale) -> list[Table]:
    """Measure each size in a store of its own."""
    searches: list[tuple[Cell, ...]] = []
    index: list[tuple[Cell, ...]] = []
    for entries in _QUICK_SIZES if scale.quick else _SIZES:
        rows, row = await _measure_one(scale.work, entries, scale.pick(100, 15))
        searches += rows
        index.append(row)
    return [
        Table(
            f"Search: questions of 4 to 10 words, {_LIMIT} hits, tapes of {EACH:,} entries",
            ("", "p50 ms", "p95 ms", "p50 × FTS5", "p95 × FTS5"),
            searches,
            ["plain FTS5 has all rows in one table and reads no tape"],
        ),
        Table(
            "The index of a whole store, made in a process of its own",
            (
                "",
                "entries a second",
                "CPU µs an entry",
                "bytes an entry",
                "resident MB",
                "close s",
                "cold open + search ms",
                "again ms",
                "MB more",
            ),
            index,
            ["cold: new process, files not in the system's memory; again: they are"],
        ),
    ]
