"""One order of what is found by words and what is found by meaning.

Reciprocal rank fusion: each list gives a hit what its rank is worth. Words count twice as much, or names
and numbers drown in what sounds alike; the constants were chosen by ``tapebot eval recall``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from bot.embeddings.vectors import VectorIndex, checksum, text_of
from bot.tape.index.documents import sender_of
from bot.tape.index.terms import parse_query, terms_of
from bot.tape.search import Hit, SearchQuery, problem_of
from bot.tape.service import TapeService

_RANK = 20
_WORDS = 2.0
_LEAST_WORDS, _NEAREST = 40, 100
"""Hits of either that are looked at: where fewer are wanted, more of the first still move the order."""

_ALIKE = 0.2
"""Similarity from which on something is about what is asked where it has no word of it. Most models'
vectors of texts that have nothing in common are nearly perpendicular; of one whose vectors all point one
way, all pass."""


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
    """Return what fits a text best by its words, and by its meaning where there are vectors.

    Scores are those of the search by words, in the order of both.

    Args:
        tape: Where to look.
        text: What is looked for; without words, the newest.
        kinds: Only entries of these kinds.
        limit: Hits at most.
        since: Only what was said then or later.
        before: Only entries with a lower id.
        asking: Id of the message that asks: it is no answer.
        vectors: Of the tapes.
        problem: Only what belongs to this problem; ``general`` for what belongs to none.
    """
    parsed = parse_query(text)
    by_meaning = vectors is not None and "message" in kinds and bool(parsed.terms)
    most = max(limit, _LEAST_WORDS) if by_meaning else limit
    last = before - 1 if before is not None else None
    query = SearchQuery(text, kinds=kinds, problem=problem, since=since, last=last, limit=most + 1)
    found = await tape.search(query)
    hits = [hit for hit in found if hit.entry.id != asking][:most]
    # What is looked for word by word is no question.
    if vectors is None or not by_meaning or (parsed.exact and hits):
        return hits[:limit]
    near = await vectors.nearest(
        tape.name,
        _without_names(text, hits),
        limit=_NEAREST,
        since=since,
        before=before,
        skip=asking,
        problem=problem,
    )
    known = {hit.entry.id: hit for hit in hits}
    worth = {one.id: one for one in near}
    fused = _fused(list(known), list(worth))
    fit = (one for one in fused if one in known or worth[one].similarity >= _ALIKE)
    order = list(islice(fit, limit))
    for one in order:
        if one not in known:
            read = await tape.read_entries(one, one)
            same = bool(read) and checksum(text_of(read[0])) == worth[one].checksum
            if not same or problem not in (None, problem_of(read[0])):
                # The tape is another one than it was.
                await vectors.discard(tape.name)
                return hits[:limit]
            known[one] = Hit(tape.name, read[0], 0.0, direct=False)
    return _scored([known[one] for one in order], hits)


def _fused(by_words: Sequence[int], by_meaning: Sequence[int]) -> list[int]:
    """Return what both lists have, best first; of equal worth what words found first."""
    worth: defaultdict[int, float] = defaultdict(float)
    for weight, ranked in ((_WORDS, by_words), (1.0, by_meaning)):
        for rank, one in enumerate(ranked, start=1):
            worth[one] += weight / (_RANK + rank)
    return sorted(worth, key=lambda one: -worth[one])


def _scored(order: Sequence[Hit], by_words: Sequence[Hit]) -> list[Hit]:
    """Give hits in a new order the scores of those by words; what is left over falls off evenly."""
    scores = sorted((hit.score for hit in by_words), reverse=True)
    last = scores[-1] if scores else 1.0
    scores += [
        last * (_RANK + len(scores)) / (_RANK + len(scores) + further)
        for further in range(1, len(order) - len(scores) + 1)
    ]
    return [replace(hit, score=score) for hit, score in zip(order, scores, strict=False)]


def _without_names(text: str, hits: Sequence[Hit]) -> str:
    """Return a question without the names of people who spoke: they say nothing of what it is about."""
    names = {term for hit in hits for term in terms_of(sender_of(hit.entry)[1])}
    kept = [word for word in text.split() if not names.issuperset(terms_of(word) or [""])]
    return " ".join(kept) or text
