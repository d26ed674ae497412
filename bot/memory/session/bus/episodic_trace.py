"""The episodic trace of a session: append episodes to its tape, and query them.

It has no storage of its own. A query without words reads the tape in batches, including sealed
segments, because the search index leaves out recalled entries. A query with words uses the index.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import get_args

from bot.core.clock import Clock, format_time
from bot.core.errors import InvalidSearch, MemoryRefused
from bot.core.i18n import _
from bot.memory.records.compartment_records import EpisodeEntry, EpisodeType
from bot.memory.records.episodes import (
    entry_of,
    episode_entry,
    episode_from_entry,
    episode_id,
    parse_episode_id,
    search_all,
)
from bot.tape.batches import read_batches
from bot.tape.search import GENERAL_PROBLEM, SearchQuery
from bot.tape.service import TapeService

LONGEST_CONTENT = 8_000
"""Size limit of an appended episode's content, in bytes of JSON."""

LONGEST_LABEL = 64
"""Size limit of a layer or tag, in characters."""

MOST_TAGS = 20

_KINDS = frozenset({"message", "tool_call", "tool_result", "anchor", "event"})
_TYPES: tuple[str, ...] = get_args(EpisodeType)

_Fits = Callable[[EpisodeEntry], bool]


class EpisodicTraceStore:
    """Append and query the episodes of one session.

    Args:
        tape: The session's tape; no other tape is written.
        clock: The current time.
    """

    def __init__(self, tape: TapeService, clock: Clock) -> None:
        self._tape = tape
        self._clock = clock

    async def append(self, entry: EpisodeEntry) -> str:
        """Append an episode, whose id is ignored, and return its id.

        Raises:
            MemoryRefused: It is too long, not plain JSON, or dated in the future.
        """
        _check(entry, self._clock.now())
        made = episode_entry(
            entry.entry_type,
            entry.content,
            problem=entry.problem_id or GENERAL_PROBLEM,
            layer=entry.hrm_layer,
            tags=entry.tags,
            supersedes=entry.supersedes,
        )
        written = await self._tape.append(made.with_meta(sent=format_time(entry.timestamp)))
        return episode_id(self._tape.name, written.id)

    async def supersede(self, old_id: str, new_entry: EpisodeEntry) -> str:
        """Append an episode that replaces another, which stays on the tape, and return its id.

        By default it belongs to the old one's problem.

        Raises:
            MemoryRefused: There is no such episode; or see ``append``.
        """
        old = await self.get(old_id)
        if old is None:
            raise MemoryRefused(
                _("there is no episode {old_id} that could be superseded", old_id=repr(old_id))
            )
        problem = new_entry.problem_id or old.problem_id
        return await self.append(replace(new_entry, problem_id=problem, supersedes=old.id))

    async def get(self, id: str) -> EpisodeEntry | None:  # noqa: A002 (the seed's name)
        """Return an episode on any tape by its id, ``tape#entry``; None if there is none."""
        found = await entry_of(self._tape.store, id)
        return episode_from_entry(*found) if found is not None else None

    async def query(  # noqa: PLR0917 (the seed's signature)
        self,
        start: datetime | None = None,
        end: datetime | None = None,
        problem_id: str | None = None,
        hrm_layer: str | None = None,
        entry_type: EpisodeType | None = None,
        tags: Collection[str] | None = None,
        *,
        text: str = "",
        limit: int | None = None,
    ) -> list[EpisodeEntry]:
        """Return the session's episodes that match all conditions, in tape order, or the newest ``limit``.

        They are from ``start`` on and before ``end``, timezone-aware, have all the tags, and any word of
        ``text``, by full-text search, which finds no recalled entries. The problem is ``general``, and the
        layer an empty text, for episodes without one. The model must not see other problems than the active.

        Raises:
            InvalidSearch: A condition is invalid.
        """
        for moment in (start, end):
            if moment is not None and moment.tzinfo is None:
                raise InvalidSearch("a time in a search needs its zone")
        if entry_type is not None and entry_type not in _TYPES:
            raise InvalidSearch(_unknown(entry_type))
        if limit is not None and limit < 1:
            raise InvalidSearch("a search gives at least one episode")
        wanted = frozenset(tags or ())

        def fits(episode: EpisodeEntry) -> bool:
            return (
                (start is None or episode.timestamp >= start)
                and (end is None or episode.timestamp < end)
                and problem_id in (None, episode.problem_id or GENERAL_PROBLEM)
                and hrm_layer in (None, episode.hrm_layer)
                and entry_type in (None, episode.entry_type)
                and wanted <= set(episode.tags)
            )

        if text.strip():
            labels = SearchQuery(text, problem=problem_id, layer=hrm_layer, tags=wanted)
            episodes = [episode for episode in await self._searched(labels) if fits(episode)]
            return episodes if limit is None else episodes[-limit:]
        return await (self._all(fits) if limit is None else self._newest(fits, limit))

    async def get_chunk(
        self,
        date: date,
        timezone: tzinfo = UTC,
    ) -> list[EpisodeEntry]:
        """Return the episodes of one day, in tape order; by default of UTC, so that all have the same chunks."""
        begin = datetime.combine(date, time.min, timezone)
        return await self.query(
            begin, datetime.combine(date + timedelta(days=1), time.min, timezone)
        )

    async def export_for_synthesis(self, problem_id: str) -> list[EpisodeEntry]:
        """Return a problem's episodes in order, without superseded ones; ``general`` is no problem."""
        gone: set[str | None] = set()

        def fits(episode: EpisodeEntry) -> bool:
            gone.add(episode.supersedes)
            return (episode.problem_id or GENERAL_PROBLEM) == problem_id

        return [episode for episode in await self._all(fits) if episode.id not in gone]

    async def _all(self, fits: _Fits) -> list[EpisodeEntry]:
        found: list[EpisodeEntry] = []
        async with aclosing(read_batches(self._tape.store, self._tape.name)) as parts:
            async for entries in parts:
                episodes = (episode_from_entry(self._tape.name, entry) for entry in entries)
                found += (episode for episode in episodes if episode is not None and fits(episode))
        return found

    async def _newest(self, fits: _Fits, limit: int) -> list[EpisodeEntry]:
        episodes: list[EpisodeEntry] = []
        async with aclosing(self._tape.read_back()) as entries:
            async for entry in entries:
                episode = episode_from_entry(self._tape.name, entry)
                if episode is not None and fits(episode):
                    episodes.append(episode)
                    if len(episodes) == limit:
                        break
        return episodes[::-1]

    async def _searched(self, query: SearchQuery) -> list[EpisodeEntry]:
        last = await self._tape.version()
        hits = await search_all(self._tape.search, replace(query, kinds=_KINDS), 1, last)
        found = {hit.entry.id: hit.entry for hit in hits if hit.direct}
        episodes = (episode_from_entry(self._tape.name, found[number]) for number in sorted(found))
        return [episode for episode in episodes if episode is not None]


def _check(entry: EpisodeEntry, now: datetime) -> None:
    """Check that an episode can be appended.

    Raises:
        MemoryRefused: It cannot be appended; the message says why.
    """
    if entry.entry_type not in _TYPES:
        raise MemoryRefused(_unknown(entry.entry_type))
    try:
        told = json.dumps(entry.content, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise MemoryRefused(f"an episode's content must be plain JSON: {error}") from error
    if json.loads(told) != entry.content:
        raise MemoryRefused(
            "an episode's content would not read back as it is: it is not plain JSON"
        )
    size = len(told.encode("utf-8", "surrogatepass"))
    if size > LONGEST_CONTENT:
        raise MemoryRefused(
            f"an episode's content may have {LONGEST_CONTENT:,} bytes as JSON, this one has {size:,}: "
            "append it in parts, or name the entries that hold it"
        )
    if len(entry.tags) > MOST_TAGS:
        raise MemoryRefused(f"an episode may have {MOST_TAGS} tags, this one has {len(entry.tags)}")
    for label in (entry.hrm_layer, *entry.tags):
        if len(label) > LONGEST_LABEL:
            raise MemoryRefused(f"a layer or tag is a text of at most {LONGEST_LABEL} characters")
    if entry.timestamp.tzinfo is None or entry.timestamp > now:
        raise MemoryRefused("an episode needs the time, with its zone, at which it has happened")
    if entry.supersedes is not None and parse_episode_id(entry.supersedes) is None:
        raise MemoryRefused(
            f"{entry.supersedes!r} is no episode's id: those are as `telegram:1#12`"
        )


def _unknown(kind: str) -> str:
    return f"there is no episode of the type {kind!r}; types are {', '.join(_TYPES)}"
