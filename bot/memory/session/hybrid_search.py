"""Search a tape by words and, if there are vectors, by meaning, in one ranking."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace
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
    tape: TapeService, query: SearchQuery, *, asking: int = 0, vectors: VectorIndex | None = None
) -> list[Hit]:
    """Return the best hits for a query by its words and, if there are vectors, by its meaning.

    ``asking`` is the id of the message that asks, which is left out.
    """
    wider = replace(query, limit=query.limit + 1)
    kinds = query.kinds or frozenset({"message"})
    if vectors is not None and "message" in kinds and (parsed := parse_query(query.text)).terms:
        # An exact phrase is searched by words first.
        if parsed.exact and (hits := await _search(tape, wider, asking)):
            return hits[: query.limit]
        near = await _nearest_messages(tape, wider, asking, vectors)
        if near and (hits := await _search_both(tape, wider, asking, vectors, near)):
            return hits[: query.limit]
    return (await _search(tape, wider, asking))[: query.limit]


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
    return {one.id: one for one in vector_matches if one.similarity >= _ALIKE}


async def _search_both(
    tape: TapeService,
    query: SearchQuery,
    asking: int,
    vectors: VectorIndex,
    near: dict[int, VectorMatch],
) -> list[Hit]:
    """Return the hits by words and meaning in one ranking; empty if the vectors cannot be used."""
    nearness = {one.id: one.nearness for one in near.values()}
    try:
        both = await _search(tape, replace(query, near=nearness), asking)
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
    """Return a query without the terms of speakers' names, which say nothing about its topic."""
    names = set(names)
    kept = [word for word in text.split() if not names.issuperset(tokenize(word) or [""])]
    return " ".join(kept) or text
