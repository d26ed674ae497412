"""Evaluate the bot's search on a dataset, by words alone or with embeddings."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from bot.agent.views.automatic_recall import (
    CANDIDATES,
    UNLIMITED_DAYS,
    asks_about_past,
    asks_assistant,
)
from bot.agent.views.passage_selection import select_passages
from bot.core.clock import format_time
from bot.llm.embeddings.base import Embedder
from bot.memory.session.hybrid_search import search_tape
from bot.memory.session.recall import recall_passages
from bot.memory.session.state.zone_snapshot import MemorySnapshot
from bot.memory.session.vector_index import VectorIndex
from bot.tape.entries import SESSION_NEW, TapeEntry, anchor, message
from bot.tape.search import SearchQuery
from bot.tape.service import TapeService
from bot.tape.store import TapeStore
from bot.tape.stores.file import FileTapeStore
from evals.dataset import Dataset, DatasetMessage
from evals.metrics import DEPTHS, SearchAnswer

_TAPE = "eval:recall"
_PORTION = 500
_ASSISTANT = "assistant"
_SAID = frozenset({"message"})


async def ask_all(
    dataset: Dataset, folder: Path, embedder: Embedder | None = None, *, name: str = ""
) -> list[SearchAnswer]:
    """Write the messages to a tape, search for each question, and return the results.

    Args:
        dataset: Messages and questions.
        folder: Empty folder for the tape.
        embedder: Embeds texts for semantic search; the caller closes it. None searches by words
            alone.
        name: Name of the conversation.

    Raises:
        ModelError: The embedding model failed.
    """
    store = FileTapeStore(folder / "tapes", sync=False)
    try:
        names = await _write(store, dataset)
        # The first search builds the index, so that only searching is timed.
        await store.search(SearchQuery(tapes=(_TAPE,), limit=1))
        vectors = None
        if embedder is not None:
            vectors = VectorIndex(folder / "vectors", store, embedder)
            await vectors.catch_up(_TAPE)
        tape, answers = TapeService(store, _TAPE), []
        by_assistant = {
            dataset_message.id: _is_assistant(dataset_message)
            for dataset_message in dataset.messages
        }
        for question in dataset.questions:
            began = perf_counter()
            query = SearchQuery(question.text, kinds=_SAID, limit=max(DEPTHS))
            hits = await search_tape(tape, query, vectors=vectors)
            taken = perf_counter() - began
            found = tuple(names[hit.entry.id] for hit in hits)
            given = tuple(names[one] for one in await _unasked(tape, question.text, vectors))
            roles = {by_assistant[one] for one in question.evidence}
            said_by = "both" if len(roles) > 1 else _ASSISTANT if True in roles else "person"
            answers.append(
                SearchAnswer(
                    question.evidence, found, taken, question.category, given, name, said_by
                )
            )
        return answers
    finally:
        await store.close()


async def _unasked(tape: TapeService, question: str, vectors: VectorIndex | None) -> list[int]:
    """Return the ids of the messages that automatic recall would add to a prompt."""
    recalled_passages = await recall_passages(
        tape,
        MemorySnapshot(),
        question,
        days=UNLIMITED_DAYS,
        now=datetime.now(UTC),
        timezone=UTC,
        limit=CANDIDATES,
        vectors=vectors,
        without_assistant=not asks_assistant(question),
        quick=True,
    )
    wanted = asks_about_past(question)
    return [
        recalled_passage.entry
        for recalled_passage in select_passages(recalled_passages, question)
        if wanted and recalled_passage.entry is not None
    ]


async def _write(store: TapeStore, dataset: Dataset) -> dict[int, str]:
    """Write the messages, with boundaries between sessions; return dataset ids by entry id."""
    await store.create_tape(_TAPE)
    planned: list[tuple[TapeEntry, str]] = []
    before: DatasetMessage | None = None
    for dataset_message in dataset.messages:
        if before is not None and before.session != dataset_message.session:
            planned.append((anchor(SESSION_NEW, {"owner": "human"}), ""))
        planned.append((dataset_entry(dataset_message), dataset_message.id))
        before = dataset_message
    names: dict[int, str] = {}
    for start in range(0, len(planned), _PORTION):
        portion = planned[start : start + _PORTION]
        written = await store.append_many(_TAPE, [entry for entry, _ in portion])
        names |= {entry.id: name for entry, (_, name) in zip(written, portion, strict=True)}
    return names


def _is_assistant(dataset_message: DatasetMessage) -> bool:
    return dataset_message.speaker is not None and dataset_message.speaker.casefold() == _ASSISTANT


def dataset_entry(dataset_message: DatasetMessage) -> TapeEntry:
    """Return a message as a tape entry."""
    assistant = _is_assistant(dataset_message)
    entry = message(_ASSISTANT if assistant else "user", dataset_message.text)
    if dataset_message.speaker is not None and not assistant:
        entry = entry.with_meta(
            sender={"id": dataset_message.speaker, "name": dataset_message.speaker}
        )
    if dataset_message.said is not None:
        entry = entry.with_meta(
            ts=format_time(dataset_message.said), sent=format_time(dataset_message.said)
        )
    return entry
