"""CPU that automatic recall adds to a turn, by the entries on the tape.

Ordinary talk is what people say in ``evals/chats``: few of their messages ask. At worst every
message asks, with some rare words among common ones.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time

import anyio

from bench.report import Cell, Scale, Table, ms, p50, p95
from bench.words import Talk
from bot.agent.views.automatic_recall import (
    CANDIDATES,
    UNLIMITED_DAYS,
    asks_about_past,
    asks_assistant,
    has_no_search_words,
)
from bot.memory.session.recall import recall_passages
from bot.memory.session.state.zone_snapshot import MemorySnapshot
from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL_PROBLEM, SearchQuery
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore

_CHATS = Path(__file__).parents[1] / "evals" / "chats" / "held-out"
_TAPE = "bench:long"
_IN_VIEW = 20
_PORTION = 500
_HITS = 10
_SIZES = (1_000, 10_000, 100_000, 1_000_000)
_QUICK_SIZES = (1_000, 10_000)


def _said() -> list[str]:
    """Return what people say in the conversations, in turn."""
    lines = (json.loads(line) for path in sorted(_CHATS.iterdir()) for line in path.open())
    return [
        line["text"]
        for line in lines
        if line["type"] == "message" and line["speaker"] != "assistant"
    ]


async def _recall(tape: TapeService, text: str, before: int) -> None:
    """Do what a turn does with the newest message."""
    if has_no_search_words(text) or not asks_about_past(text):
        return
    await recall_passages(
        tape,
        MemorySnapshot(),
        text,
        days=UNLIMITED_DAYS,
        now=datetime.now(UTC),
        timezone=UTC,
        limit=CANDIDATES,
        before=before,
        problem=GENERAL_PROBLEM,
        without_assistant=not asks_assistant(text),
        quick=True,
    )


async def _spent(tape: TapeService, texts: Sequence[str], before: int) -> list[float]:
    taken = []
    for text in texts:
        began = process_time()
        await _recall(tape, text, before)
        taken.append(process_time() - began)
    return taken


async def _measure_one(work: Path, entries: int, asked: int) -> tuple[Cell, ...]:
    root = work / f"tape-{entries}"
    store = FileTapeStore(root, sync=False)
    await store.create_tape(_TAPE)
    for portion in _portions(Talk(1).messages(entries - 1)):
        await store.append_many(_TAPE, portion)
    await store.close()
    store = FileTapeStore(root, sync=False)
    tape, before = TapeService(store, _TAPE), await store.version(_TAPE) - _IN_VIEW
    talk = Talk(2)
    worst = [f"{talk.question()}?" for _ in range(asked)]
    ordinary = list(islice(_said(), 10 * asked))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        # Let it begin, so that the search meets an index in the making.
        await anyio.sleep(0.01)
        began = perf_counter()
        await _recall(tape, worst[0], before)
        first = perf_counter() - began
        await store.search(SearchQuery("dinner", tapes=(_TAPE,), limit=1))
        complete = perf_counter() - began
        await _spent(tape, worst[:3], before)
        usual, hard = await _spent(tape, ordinary, before), await _spent(tape, worst, before)
        tasks.cancel_scope.cancel()
    await store.close()
    alone = _alone(work / f"plain-{entries}", root, worst)
    for path in root.iterdir():
        path.unlink()
    return (
        f"{entries:,} entries",
        p50([ms(one) for one in usual]),
        ms(sum(usual) / len(usual)),
        p95([ms(one) for one in usual]),
        p50([ms(one) for one in hard]),
        p95([ms(one) for one in hard]),
        p50([ms(one) for one in alone]),
        ms(first),
        complete,
    )


def _alone(path: Path, root: Path, texts: Sequence[str]) -> list[float]:
    """Return the CPU seconds that SQLite's own ranking takes for each."""
    plain, taken = _SqliteAlone(path, root), []
    for text in texts:
        began = process_time()
        plain.search(text)
        taken.append(process_time() - began)
    plain.close()
    path.unlink()
    return taken


def _portions(entries: Iterator[TapeEntry]) -> Iterator[list[TapeEntry]]:
    while portion := list(islice(entries, _PORTION)):
        yield portion


class _SqliteAlone:
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
            (words, _HITS),
        ).fetchall()

    def close(self) -> None:
        self._connection.close()


def _content(line: bytes) -> tuple[str]:
    content: str = json.loads(line)["payload"].get("content", "")
    return (content,)


async def measure(scale: Scale) -> list[Table]:
    """Measure each size on a tape of its own."""
    sizes = _QUICK_SIZES if scale.quick else _SIZES
    # What a first search loads and compiles is no part of what it costs on a tape.
    await _measure_one(scale.work, 100, 1)
    rows = [await _measure_one(scale.work, entries, scale.pick(60, 20)) for entries in sizes]
    texts = _said()
    searched = sum(asks_about_past(text) and not has_no_search_words(text) for text in texts)
    return [
        Table(
            "Automatic recall for one message: CPU ms",
            ("", "talk p50", "mean", "p95", "worst p50", "p95", "SQLite", "first ms", "indexed s"),
            rows,
            [
                f"talk: {searched / len(texts):.0%} of what people say in evals/chats/held-out is searched for",
                "SQLite: what FTS5 alone takes to rank the same entries for the same words of the worst messages, p50",
                "first: wall time of a search just after opening the tape, which has no index yet",
                "indexed: until all of the tape can be searched, for somebody who asks for that",
            ],
        )
    ]
