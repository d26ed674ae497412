"""Search a tape by words and, if there are vectors, by meaning, in one ranking."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from bot.core.errors import TapeRefused
from bot.memory.session.vector_index import VectorIndex, embeddable_text, text_checksum
from bot.tape.index.groups import sender_of
from bot.tape.index.terms import parse_query, tokenize
from bot.tape.search import Hit, SearchQuery
from bot.tape.service import TapeService

if TYPE_CHECKING:
    from bot.memory.session.vector_files import VectorMatch

logger = logging.getLogger(__name__)

_NEAREST = 100
"""Number of nearest messages by meaning that are ranked."""

_SPEAKERS = 20
"""Newest messages whose senders' names are removed from a query by meaning."""

_ALIKE = 0.2
"""Least similarity for a hit without a common word. With most models, vectors of unrelated texts
are nearly perpendicular; if all vectors of a model point one way, all messages pass."""


async def search_tape(
    tape: TapeService,
    text: str,
    *,
    kinds: frozenset[str],
    limit: int,
    since: datetime | None = None,
    before: int | None = None,
    asking: int = 0,
    vectors: VectorIndex | None = None,
    problem: str | None = None,
    without_assistant: bool = False,
    at_hand: bool = False,
    quick: bool = False,
) -> list[Hit]:
    """Return the best hits for a text by its words and, if there are vectors, by its meaning.

    Args:
        tape: The tape to search.
        text: The query; without words, the newest entries are returned.
        kinds: Only entries of these kinds.
        limit: Most hits.
        since: Only entries from this time on.
        before: Only entries with a lower id.
        asking: Id of the message that asks, which is left out.
        vectors: The vector index; None searches by words only.
        problem: Only this problem; ``general`` for entries without one.
        without_assistant: Leave out the assistant's messages.
        at_hand: Wait for no indexing; see ``SearchQuery``.
        quick: Answer at once; see ``SearchQuery``.
    """
    last = before - 1 if before is not None else None
    query = SearchQuery(
        text,
        kinds=kinds,
        problem=problem,
        since=since,
        last=last,
        limit=limit + 1,
        without_assistant=without_assistant,
        at_hand=at_hand,
        quick=quick,
    )
    if vectors is not None and "message" in kinds and (parsed := parse_query(text)).terms:
        # An exact phrase is searched by words first.
        if parsed.exact and (hits := await _search(tape, query, asking)):
            return hits[:limit]
        near = await _nearest_messages(tape, query, asking, vectors)
        if near and (hits := await _search_both(tape, query, asking, vectors, near)):
            return hits[:limit]
    return (await _search(tape, query, asking))[:limit]


async def _search(tape: TapeService, query: SearchQuery, asking: int) -> list[Hit]:
    return [hit for hit in await tape.search(query) if hit.entry.id != asking]


async def _nearest_messages(
    tape: TapeService, query: SearchQuery, asking: int, vectors: VectorIndex
) -> dict[int, VectorMatch]:
    """Return the messages that are near a query in meaning, by id."""
    newest = SearchQuery(
        kinds=frozenset({"message"}),
        last=query.last,
        limit=_SPEAKERS,
        at_hand=query.is_comparable,
    )
    names = {term for hit in await tape.search(newest) for term in _names(hit)}
    vector_matches = await vectors.nearest(
        tape.name,
        strip_speaker_names(query.text, names),
        limit=_NEAREST,
        since=query.since,
        before=query.last + 1 if query.last is not None else None,
        skip=asking,
        problem=query.problem,
    )
    return {
        vector_match.id: vector_match
        for vector_match in vector_matches
        if vector_match.similarity >= _ALIKE
    }


async def _search_both(
    tape: TapeService,
    query: SearchQuery,
    asking: int,
    vectors: VectorIndex,
    near: dict[int, VectorMatch],
) -> list[Hit]:
    """Return the hits by words and meaning in one ranking; empty if the vectors cannot be used."""
    search_query = replace(
        query, near={vector_match.id: vector_match.nearness for vector_match in near.values()}
    )
    try:
        both = await _search(tape, search_query, asking)
    except TapeRefused as error:
        logger.warning("found by words alone: the tape server must be of this version (%s)", error)
        return []
    stale = any(
        text_checksum(embeddable_text(hit.entry)) != other.checksum
        for hit in both
        if (other := near.get(hit.entry.id))
    )
    if not stale:
        return both
    # The vectors belong to an earlier state of the tape.
    await vectors.discard(tape.name)
    return []


def _names(hit: Hit) -> list[str]:
    """Return the terms of the sender's name."""
    return tokenize(sender_of(hit.entry)[1])


def strip_speaker_names(text: str, names: Collection[str]) -> str:
    """Return a query without the names of speakers, which say nothing about its topic.

    Args:
        text: The query.
        names: Terms of the names.
    """
    names = set(names)
    kept = [word for word in text.split() if not names.issuperset(tokenize(word) or [""])]
    return " ".join(kept) or text
