"""Search a tape by words and, if there are vectors, by meaning, in one ranking."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from bot.core.errors import TapeRefused
from bot.memory.session.vector_index import VectorIndex, embeddable_text, text_checksum
from bot.tape.index.documents import sender_of
from bot.tape.index.terms import parse_query, tokenize
from bot.tape.search import Hit, SearchQuery
from bot.tape.service import TapeService

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
    """
    parsed = parse_query(text)
    last = before - 1 if before is not None else None
    query = SearchQuery(text, kinds=kinds, problem=problem, since=since, last=last, limit=limit + 1)

    async def found(wanted: SearchQuery) -> list[Hit]:
        return [hit for hit in await tape.search(wanted) if hit.entry.id != asking]

    if vectors is None or "message" not in kinds or not parsed.terms:
        return (await found(query))[:limit]
    # An exact phrase is searched by words first.
    if parsed.exact and (hits := await found(query)):
        return hits[:limit]
    newest = SearchQuery(kinds=frozenset({"message"}), last=last, limit=_SPEAKERS)
    names = {term for hit in await tape.search(newest) for term in _names(hit)}
    near = {
        one.id: one
        for one in await vectors.nearest(
            tape.name,
            strip_speaker_names(text, names),
            limit=_NEAREST,
            since=since,
            before=before,
            skip=asking,
            problem=problem,
        )
        if one.similarity >= _ALIKE
    }
    if not near:
        return (await found(query))[:limit]
    meant = replace(query, near={one.id: one.nearness for one in near.values()})
    try:
        both = await found(meant)
    except TapeRefused as error:
        logger.warning("found by words alone: the tape server must be of this version (%s)", error)
        return (await found(query))[:limit]
    stale = [
        hit
        for hit in both
        if (one := near.get(hit.entry.id))
        and text_checksum(embeddable_text(hit.entry)) != one.checksum
    ]
    if stale:
        # The vectors belong to an earlier state of the tape.
        await vectors.discard(tape.name)
        return (await found(query))[:limit]
    return both[:limit]


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
