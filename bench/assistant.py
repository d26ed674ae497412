"""A search in one long chat with an assistant, by words and with meaning, in files and in PostgreSQL.

The chat is made of the conversations in ``evals/chats``, one behind the other, until it has the tokens wanted;
asked are their own questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path
from time import perf_counter

from bench.library import index_files
from bench.machine import clocked
from bench.postgres_server import opened, running
from bench.report import Cell, Scale, Table, ms, p50, p95
from bench.resident import resident
from bench.search import Plain
from bot.core.database.wakeups import Wakeups
from bot.evals.dataset import Dataset, read_dataset
from bot.evals.recall_eval import dataset_entry
from bot.llm.base import estimate_tokens
from bot.llm.embeddings.local import LocalEmbedder
from bot.memory.session.hybrid_search import search_tape
from bot.memory.session.vector_index import VectorIndex
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService
from bot.tape.store import TapeStore
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.postgres import PostgresTapeStore
from testkit.postgres import PostgresServer

_CHATS = Path(__file__).parent.parent / "evals" / "chats"
_TAPE = "bench:assistant"
_TOKENS = (100_000, 500_000)
_QUICK_TOKENS = (10_000,)
_PORTION = 6
_LIMIT = 10
_SAID = frozenset({"message"})
_DERIVED = """
select sum(pg_total_relation_size(oid)) from pg_class
where relnamespace = 'tapebot'::regnamespace and relkind = 'r'
  and relname ~ '^(document|vocabulary|speaker|label)'
"""


async def measure(scale: Scale) -> list[Table]:
    """Ask both stores the same questions in chats of each length."""
    chats = [read_dataset(path) for path in sorted(_CHATS.glob("*/assistant-*.jsonl"))]
    asked = [question.text for chat in chats for question in chat.questions]
    asked = asked[:: scale.pick(2, 40)]
    embedder = LocalEmbedder()
    await embedder.embed(["Loads the model."])
    rows: list[tuple[Cell, ...]] = []
    with running() as server:
        for tokens in _QUICK_TOKENS if scale.quick else _TOKENS:
            said = [*_until(_messages(chats), tokens)]
            root = scale.work / str(tokens)
            rows += await _one_length(root, server, said, asked, embedder, f"{tokens:,} tokens")
    await embedder.aclose()
    return [
        Table(
            f"Search in one chat with an assistant: {len(asked)} questions, {_LIMIT} hits",
            ("", "messages", "p50 ms", "p95 ms", "p50 × FTS5", "MB more", "bytes on disk"),
            rows,
            [
                "with meaning: by the local model, the question's own embedding included",
                "MB more: resident in this process since before the store was opened",
                "bytes on disk: what is derived for the search, index and then vectors",
            ],
        )
    ]


def _messages(chats: Sequence[Dataset]) -> Iterator[TapeEntry]:
    """Yield what was said in all chats, over and over."""
    for chat in cycle(chats):
        for one in chat.messages:
            # Who talks to the assistant is one person.
            speaker = one.speaker if one.speaker == "assistant" else "user"
            yield dataset_entry(replace(one, speaker=speaker))


def _until(entries: Iterator[TapeEntry], tokens: int) -> Iterator[TapeEntry]:
    for entry in entries:
        if tokens <= 0:
            return
        tokens -= estimate_tokens(str(entry.payload["content"]))
        yield entry


async def _one_length(
    root: Path,
    server: PostgresServer,
    said: Sequence[TapeEntry],
    asked: Sequence[str],
    embedder: LocalEmbedder,
    name: str,
) -> list[tuple[Cell, ...]]:
    """Return the rows of a chat of one length."""
    tapes, derived = root / "tapes", root / "vectors"
    before = resident()
    files = FileTapeStore(tapes, sync=False)
    in_files = await _searched(files, said, asked, VectorIndex(derived, files, embedder), before)
    await files.close()
    index = sum(path.stat().st_size for path in index_files(tapes))
    vectors = sum(path.stat().st_size for path in derived.rglob("*") if path.is_file())
    plain = Plain(root / "plain.db", tapes)
    words = [" ".join(re.findall(r"\w+", text)) for text in asked]
    limit = [clocked(partial(plain.search, one)) for one in words]
    plain.close()
    before = resident()
    async with opened(server.create()) as database:
        there = PostgresTapeStore(database, Wakeups(database))
        # The same entries have the same ids: their vectors are made.
        meaning = VectorIndex(derived, there, embedder)
        in_database = await _searched(there, said, asked, meaning, before)
        [(size,)] = await database.fetch(_DERIVED)

    rows: list[tuple[Cell, ...]] = []
    for where, found, words in (("files", in_files, index), ("PostgreSQL", in_database, int(size))):
        for what, one, on_disk in zip(
            ("words", "with meaning"), found, (words, words + vectors), strict=True
        ):
            taken, more = one
            times = ms(p50(taken)), ms(p95(taken)), p50(taken) / p50(limit)
            rows.append((f"{name}: {where}, {what}", len(said), *times, more / 1000, on_disk))
    rows.append(
        (f"{name}: plain FTS5, OR and bm25", len(said), ms(p50(limit)), ms(p95(limit)), 1.0)
    )
    return rows


async def _searched(
    store: TapeStore,
    said: Sequence[TapeEntry],
    asked: Sequence[str],
    vectors: VectorIndex,
    before: int,
) -> list[tuple[list[float], int]]:
    """Write the chat, and ask each question by words, then with meaning.

    Returns:
        For both: the seconds of each search, and the kB that the process holds more than before.
    """
    await store.create_tape(_TAPE)
    for start in range(0, len(said), _PORTION):
        await store.append_many(_TAPE, said[start : start + _PORTION])
    tape, found = TapeService(store, _TAPE), []
    for meaning in (None, vectors):
        if meaning is not None:
            await meaning.catch_up(_TAPE)
        # What is timed is searching alone: the index catches up at the first search.
        await search_tape(tape, asked[0], kinds=_SAID, limit=_LIMIT, vectors=meaning)
        taken = []
        for text in asked:
            began = perf_counter()
            await search_tape(tape, text, kinds=_SAID, limit=_LIMIT, vectors=meaning)
            taken.append(perf_counter() - began)
        found.append((taken, resident() - before))
    return found
