"""Define search queries, their validation, and hits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from bot.core.errors import InvalidSearch
from bot.core.i18n import _
from bot.tape.entries import ENTRY_KINDS, TapeEntry

MAX_HITS = 1_000
MAX_SEMANTIC_MATCHES = 500
MAX_NEIGHBOURS = 20
MAX_QUERY_LENGTH = 4_000
"""Longest query, in characters."""

GENERAL_PROBLEM = "general"
"""The problem of entries whose ``meta`` names none."""


def problem_of(entry: TapeEntry) -> str:
    """Return the problem that an entry belongs to."""
    problem = entry.meta.get("problem")
    return problem if isinstance(problem, str) and problem else GENERAL_PROBLEM


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What to search for; an entry must pass every given filter.

    Attributes:
        text: Words in any script. A phrase in quotation marks adds to the score. If the text is
            only phrases, entries with the exact phrases exclude all others, if there are any.
            Without words the newest entries that pass the filters are returned.
        tapes: Only these tapes; names that do not exist match nothing. None for all.
        kinds: Only entries of these kinds. None for all kinds but ``system``.
        senders: Only messages of these senders: platform ids or display names, in any case;
            ``assistant`` for the assistant.
        problem: Only entries of this problem; ``general`` for entries without one. Neighbours of a
            hit, whether returned or used for its rank, are of this problem, too.
        tags: Only entries whose ``meta["tags"]`` has all of these.
        layer: Only entries whose ``meta["layer"]`` equals this; empty for entries without a layer.
        names: Only events and anchors of these names. Bookkeeping (turns, steps, commands, the
            memory's own records) is not indexed, so no search finds it, not even by name.
        since: Entries of this time or later; timezone-aware.
        until: Entries before this time; timezone-aware.
        first: Entries with this id or a higher one.
        last: Entries with this id or a lower one.
        after_anchor: Entries after the last anchor of this name. Needs exactly one tape.
        before_anchor: Entries before the last anchor of this name. Needs exactly one tape.
        limit: Maximum number of hits.
        neighbours: How many messages before and after each hit to return with it.
        near: Semantic similarity of messages to the text, by entry id: 0 for average, about 1 for
            the most similar. These are found even without a word of the query. Needs exactly one
            tape.
        without_assistant: Leave out the assistant's messages in a search by words. They still count
            for the rank of the messages beside them.
        at_hand: Wait for no indexing: of entries that the index lacks, search the newest. Needs
            exactly one tape, else it waits.
        quick: Answer at once, for a search that nobody asked for: ``at_hand``, too. It ranks fewer
            candidates, and finds nothing if many entries have all of the words, since the best are
            arbitrary then.
    """

    text: str = ""
    tapes: tuple[str, ...] | None = None
    kinds: frozenset[str] | None = None
    senders: frozenset[str] | None = None
    problem: str | None = None
    tags: frozenset[str] = frozenset()
    layer: str | None = None
    names: frozenset[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    first: int | None = None
    last: int | None = None
    after_anchor: str | None = None
    before_anchor: str | None = None
    limit: int = 10
    neighbours: int = 0
    near: Mapping[int, float] | None = None
    without_assistant: bool = False
    at_hand: bool = False
    quick: bool = False

    @property
    def is_comparable(self) -> bool:
        """Whether scores are shares of all words, and so comparable with those of other searches."""
        return self.quick or self.at_hand

    def validate(self) -> None:
        """Validate the query.

        Raises:
            InvalidSearch: The query is invalid; the message says why.
        """
        for moment in (self.since, self.until):
            if moment is not None and moment.tzinfo is None:
                raise InvalidSearch(_("a time in a search needs its zone"))
        if unknown := set(self.kinds or ()) - ENTRY_KINDS:
            raise InvalidSearch(_("no kind of entry: {sorted}", sorted=", ".join(sorted(unknown))))
        if len(self.text) > MAX_QUERY_LENGTH:
            raise InvalidSearch(
                _(
                    "a search takes at most {MAX_QUERY_LENGTH} characters",
                    MAX_QUERY_LENGTH=MAX_QUERY_LENGTH,
                )
            )
        if not 1 <= self.limit <= MAX_HITS:
            raise InvalidSearch(_("a search gives 1 to {MAX_HITS} hits", MAX_HITS=MAX_HITS))
        if not 0 <= self.neighbours <= MAX_NEIGHBOURS:
            raise InvalidSearch(
                _(
                    "a hit comes with 0 to {MAX_NEIGHBOURS} neighbours on each side",
                    MAX_NEIGHBOURS=MAX_NEIGHBOURS,
                )
            )
        by_anchor = self.after_anchor is not None or self.before_anchor is not None
        if by_anchor and (self.tapes is None or len(self.tapes) != 1):
            raise InvalidSearch(_("a search by anchors needs exactly one tape"))
        self._check_near()

    def _check_near(self) -> None:
        if self.near is not None:
            if self.tapes is None or len(self.tapes) != 1:
                raise InvalidSearch(_("a search by meaning needs exactly one tape"))
            if len(self.near) > MAX_SEMANTIC_MATCHES:
                raise InvalidSearch(
                    _(
                        "a search takes at most {MAX_SEMANTIC_MATCHES} messages that are near",
                        MAX_SEMANTIC_MATCHES=MAX_SEMANTIC_MATCHES,
                    )
                )
            if not all(0 < entry < 2**63 for entry in self.near):
                raise InvalidSearch(_("an entry's id is a number above 0"))
            if not all(0 <= worth <= 10 for worth in self.near.values()):
                raise InvalidSearch(_("how near a message is lies between 0 and 10"))


async def resolve_query_anchors(
    query: SearchQuery, resolve: Callable[[str, str], Awaitable[int]]
) -> SearchQuery:
    """Return the query with ids in place of its anchors.

    Args:
        query: A valid query.
        resolve: ``TapeStore.resolve_anchor``.

    Raises:
        TapeNotFound: There is no such anchor.
    """
    if not query.tapes:
        return query
    [tape, *_unused] = query.tapes
    first, last = query.first, query.last
    if query.after_anchor is not None:
        first = max(first or 1, await resolve(tape, query.after_anchor) + 1)
    if query.before_anchor is not None:
        before = await resolve(tape, query.before_anchor) - 1
        last = before if last is None else min(last, before)
    return replace(query, first=first, last=last, after_anchor=None, before_anchor=None)


@dataclass(frozen=True, slots=True)
class Hit:
    """A matching entry.

    Attributes:
        tape: Name of the tape.
        entry: The entry.
        score: Higher is better; comparable only within one result.
        before: Neighbouring messages before it, oldest first.
        after: Neighbouring messages after it, oldest first.
        direct: Whether the entry itself has words of the query. Otherwise messages beside it have
            them, and it may be the answer to them.
    """

    tape: str
    entry: TapeEntry
    score: float
    before: tuple[TapeEntry, ...] = ()
    after: tuple[TapeEntry, ...] = ()
    direct: bool = True

    @property
    def evidence(self) -> list[tuple[str, int]]:
        """Tape and id of the entry, then of its neighbours: the evidence that a claim can cite."""
        around: Sequence[TapeEntry] = (self.entry, *self.before, *self.after)
        return [(self.tape, entry.id) for entry in around]
