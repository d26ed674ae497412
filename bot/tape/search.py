"""What is asked of a tape store's search, and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from bot.core.errors import InvalidSearch
from bot.tape.entries import ENTRY_KINDS, TapeEntry

MAX_HITS = 1_000
MAX_SEMANTIC_MATCHES = 500
MAX_NEIGHBOURS = 20
MAX_QUERY_LENGTH = 4_000
"""Characters."""

GENERAL_PROBLEM = "general"
"""The problem of all entries whose ``meta`` names none."""


def problem_of(entry: TapeEntry) -> str:
    """Return the problem that an entry belongs to."""
    problem = entry.meta.get("problem")
    return problem if isinstance(problem, str) and problem else GENERAL_PROBLEM


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What to look for; every filter that is given must hold.

    Attributes:
        text: Words in any script. A phrase between quotation marks weighs; where the text is nothing but
            phrases, what has them as they are is found alone, if there is any. Without words, all that the filters let through, newest first.
        tapes: Only these tapes; those that do not exist hold nothing. None for all.
        kinds: Only entries of these kinds. None for what was said, done and remembered: all but
            ``system``.
        senders: Only what these said: a platform's id or a shown name, in any case; ``assistant``
            for the assistant.
        problem: Only what belongs to this problem; ``general`` for what belongs to none. The turns
            beside a hit, those that come with it and those that count for its rank, are of it, too.
        tags: Only entries whose ``meta["tags"]`` has all of these.
        layer: Only entries whose ``meta["layer"]`` is this; empty for those that have none.
        names: Only events and anchors of these names. Bookkeeping (turns, steps, commands, the
            memory's own records) is in no index: no search finds it, by its name neither.
        since: Said at this time or later; aware.
        until: Said before this time; aware.
        first: Entries with this id or a higher one.
        last: Entries with this id or a lower one.
        after_anchor: Entries after the last anchor of this name. Needs exactly one tape.
        before_anchor: Entries before the last anchor of this name. Needs exactly one tape.
        limit: Hits at most.
        neighbours: Messages before and after each hit that come with it.
        near: How near in meaning to the text messages are, by their ids: 0 for what is no nearer than
            most, about 1 for the nearest. They are found though they have no word of it. Needs
            exactly one tape.
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

    def validate(self) -> None:
        """See that it can be answered.

        Raises:
            InvalidSearch: It cannot; the text says why.
        """
        for moment in (self.since, self.until):
            if moment is not None and moment.tzinfo is None:
                raise InvalidSearch("a time in a search needs its zone")
        if unknown := set(self.kinds or ()) - ENTRY_KINDS:
            raise InvalidSearch(f"no kind of entry: {', '.join(sorted(unknown))}")
        if len(self.text) > MAX_QUERY_LENGTH:
            raise InvalidSearch(f"a search takes at most {MAX_QUERY_LENGTH} characters")
        if not 1 <= self.limit <= MAX_HITS:
            raise InvalidSearch(f"a search gives 1 to {MAX_HITS} hits")
        if not 0 <= self.neighbours <= MAX_NEIGHBOURS:
            raise InvalidSearch(f"a hit comes with 0 to {MAX_NEIGHBOURS} neighbours on each side")
        by_anchor = self.after_anchor is not None or self.before_anchor is not None
        if by_anchor and (self.tapes is None or len(self.tapes) != 1):
            raise InvalidSearch("a search by anchors needs exactly one tape")
        self._check_near()

    def _check_near(self) -> None:
        if self.near is not None:
            if self.tapes is None or len(self.tapes) != 1:
                raise InvalidSearch("a search by meaning needs exactly one tape")
            if len(self.near) > MAX_SEMANTIC_MATCHES:
                raise InvalidSearch(
                    f"a search takes at most {MAX_SEMANTIC_MATCHES} messages that are near"
                )
            if not all(0 < entry < 2**63 for entry in self.near):
                raise InvalidSearch("an entry's id is a number above 0")
            if not all(0 <= worth <= 10 for worth in self.near.values()):
                raise InvalidSearch("how near a message is lies between 0 and 10")


async def resolve_query_anchors(
    query: SearchQuery, resolve: Callable[[str, str], Awaitable[int]]
) -> SearchQuery:
    """Return the same search with ids in place of its anchors.

    Args:
        query: What is asked; it has been checked.
        resolve: ``TapeStore.resolve_anchor``.

    Raises:
        TapeNotFound: There is no such anchor.
    """
    if not query.tapes:
        return query
    [tape, *_] = query.tapes
    first, last = query.first, query.last
    if query.after_anchor is not None:
        first = max(first or 1, await resolve(tape, query.after_anchor) + 1)
    if query.before_anchor is not None:
        before = await resolve(tape, query.before_anchor) - 1
        last = before if last is None else min(last, before)
    return replace(query, first=first, last=last, after_anchor=None, before_anchor=None)


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that was found.

    Attributes:
        tape: The tape it is on.
        entry: The entry.
        score: Higher is better; comparable within one answer only.
        before: Messages before it, oldest first.
        after: Messages after it, oldest first.
        direct: Whether it has words of the question itself; else the turns beside it have them, and it
            may be their answer.
    """

    tape: str
    entry: TapeEntry
    score: float
    before: tuple[TapeEntry, ...] = ()
    after: tuple[TapeEntry, ...] = ()
    direct: bool = True

    @property
    def evidence(self) -> list[tuple[str, int]]:
        """Tape and id of the entry, then of its neighbours: what a claim can cite."""
        around: Sequence[TapeEntry] = (self.entry, *self.before, *self.after)
        return [(self.tape, entry.id) for entry in around]
