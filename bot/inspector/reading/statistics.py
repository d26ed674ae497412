"""Sum up the statistics of all tapes by day, with a cache.

Rule 1: statistics are folded from the tapes, each part once; a later request reads only new
    entries.
Rule 2: a request reads for a bounded time; later requests read the rest.
"""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import aclosing, suppress
from dataclasses import asdict
from datetime import date, timedelta, tzinfo
from typing import Annotated

import anyio
from fastapi import Depends
from pydantic import Field
from starlette.requests import HTTPConnection

from bot.core.errors import TapeError, TapeNotFound
from bot.inspector.dependencies import WebContext
from bot.inspector.reading import ReadModel
from bot.inspector.reading.facts import home_of, load_session_fold
from bot.inspector.reading.sessions import is_conversation
from bot.inspector.reading.tape_statistics import (
    NEVER,
    DayStatistics,
    TapeStatistics,
    TapeTotals,
    day_of,
    percentile,
)
from bot.memory.session.state.fold_loader import fold_at
from bot.tape.batches import read_batches
from bot.tape.entries import SESSION_FORK
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

BUDGET = 0.2
"""Seconds that a request may read."""

MOST_TAPES = 10_000
"""The most tapes that are read, the first by name."""

_FRESH = 1.0
"""Seconds for which a tape that was read to its end is not read again."""


class ModelUsage(ReadModel):
    """The usage of one model on one day."""

    model: str = Field(description="Its name; `unknown` if the tape does not record it.")
    prompt_tokens: int
    cached_tokens: int = Field(
        description="Of those, tokens from the providers' caches, as far as reported."
    )
    completion_tokens: int
    cost: float | None = Field(description="US dollars; null if a price is unknown.")
    calls: int


class DayModel(ReadModel):
    """One day, in the user's time zone."""

    day: str = Field(description="ISO 8601.")
    turns: int = Field(description="Turns that ended, commands not counted.")
    failed: int = Field(description="Failed turns.")
    p50_ms: float | None = Field(description="Median duration of turns in milliseconds.")
    p95_ms: float | None = Field(description="95th percentile of their duration in milliseconds.")
    waited_p50_ms: float | None = Field(
        description="Median wait of messages for their turn in milliseconds, from the platform's "
        "time of sending, which may be in whole seconds."
    )
    usage: tuple[ModelUsage, ...] = Field(description="By model: turns, summaries, consolidations.")
    facts: int = Field(description="Active facts at the end of the day.")
    zone_bytes: int = Field(description="Bytes of the memory zones at the end of the day.")
    entries: int = Field(description="Entries of the tapes at the end of the day.")


class StatisticsModel(ReadModel):
    """Statistics by day, without gaps."""

    tape: str | None = Field(description="Only of this tape; null for all.")
    facts_of: str | None = Field(
        description="Tape of the facts that are counted: a person's chats share theirs. Null for all."
    )
    timezone: str
    days: tuple[DayModel, ...]
    tapes: int = Field(description="Number of tapes to read.")
    read: int = Field(description="Number of tapes read completely; each request reads more.")
    complete: bool = Field(description="Whether all have been read.")
    left_out: int = Field(description="Number of tapes beyond the limit; request them by name.")


class StatisticsCache:
    """Read tapes, and keep their statistics in memory.

    Args:
        store: Holds the tapes.
        timezone: The user's time zone, which defines the days.
    """

    def __init__(self, store: TapeStore, timezone: tzinfo) -> None:
        self._store = store
        self._timezone = timezone
        self._kept: dict[str, TapeStatistics] = {}
        self._reading = anyio.Lock()

    async def summary(
        self, since: date, until: date, tape: str | None = None, *, budget: float = BUDGET
    ) -> StatisticsModel:
        """Return the statistics of a range of days, as far as they can be read in time.

        Args:
            since: The first day.
            until: The last day.
            tape: Only this tape; by default all.
            budget: Seconds that may be spent on reading.

        Raises:
            TapeNotFound: There is no such tape.
        """
        if tape is not None:
            await self._store.version(tape)
        there = [tape] if tape is not None else await self._store.list_tapes()
        names = there[:MOST_TAPES]
        end = time.monotonic() + budget
        async with self._reading:
            # Tapes never read come first, then the least recently read.
            due = sorted(names, key=lambda name: self._checked(name, since))
            for place, name in enumerate(due):
                # Every request reads at least one tape, however busy the machine is.
                if place and time.monotonic() >= end:
                    break
                if tape is not None or self._checked(name, since) < end - budget - _FRESH:
                    await self._catch_up(name, since, end)
            read = sum(self._checked(name, since) > NEVER for name in names)
            tape_statisticses = [self._kept[name] for name in names if name in self._kept]
            days = await _added(tape_statisticses, since, until)
        return StatisticsModel(
            tape=tape,
            facts_of=tape,
            timezone=str(self._timezone),
            days=tuple(_day(day, day_statistics) for day, day_statistics in days.items()),
            tapes=len(names),
            read=read,
            complete=read >= len(names),
            left_out=len(there) - len(names),
        )

    def _checked(self, name: str, since: date) -> float:
        """Return when a tape was last read to its end.

        Returns ``NEVER`` if its counts begin after ``since``.
        """
        tape_statistics = self._kept.get(name)
        return (
            tape_statistics.checked
            if tape_statistics is not None and tape_statistics.since <= since
            else NEVER
        )

    async def _catch_up(self, name: str, since: date, until: float) -> None:
        """Read a tape's new entries, as far as time allows."""
        try:
            await self._read_on(name, since, until)
        except TapeError:
            # A missing or damaged tape has no statistics; the others still have theirs.
            broken = self._kept[name] = TapeStatistics(since, self._timezone)
            broken.checked = time.monotonic()

    async def _read_on(self, name: str, since: date, until: float) -> None:
        tape_statistics = self._kept.get(name)
        erasures = await self._store.erasures(name)
        version = await self._store.version(name)
        if (
            tape_statistics is None
            or tape_statistics.since > since
            or tape_statistics.erasures != erasures
            or tape_statistics.at > version
        ):
            tape_statistics = self._kept[name] = await self._opened(name, since)
            tape_statistics.erasures = erasures
        async with aclosing(
            read_batches(self._store, name, tape_statistics.at + 1, version)
        ) as parts:
            async for entries in parts:
                for entry in entries:
                    tape_statistics.apply(entry)
                await anyio.lowlevel.checkpoint()
                if time.monotonic() >= until and tape_statistics.at < version:
                    return
        tape_statistics.checked = time.monotonic()

    async def _opened(self, name: str, since: date) -> TapeStatistics:
        """Return a tape's statistics from a day on; older entries are not counted."""
        tape_statistics = TapeStatistics(since, self._timezone)
        first = await self._first_since(name, since) if is_conversation(name) else 1
        if first > 1:
            fold = await fold_at(TapeService(self._store, name), first - 1)
            copied = await self._copied(name, first - 1)
            tape_statistics.begin(first - 1, fold.facts, fold.zone, copied=copied)
        return tape_statistics

    async def _copied(self, name: str, until: int) -> int:
        """Return the last entry that a fork copied from its parent; 0 if it is no fork by then."""
        try:
            fork = await self._store.get_anchor(name, SESSION_FORK)
        except TapeNotFound:
            return 0
        return fork.at if fork.at <= until else 0

    async def _first_since(self, name: str, since: date) -> int:
        """Return the id of the first entry of a day or later, assuming that times ascend."""
        low, high = 1, await self._store.version(name) + 1
        while low < high:
            middle = (low + high) // 2
            day = await self._day_before(name, middle + 1)
            if day is None or day < since:
                low = middle + 1
            else:
                high = middle
        return low

    async def _day_before(self, name: str, entry_id: int) -> date | None:
        async with aclosing(self._store.read_back(name, entry_id)) as entries:
            async for entry in entries:
                return day_of(str(entry.meta.get("ts", "")), self._timezone)
        return None


async def recent_statistics(
    web: WebContext, cache: StatisticsCache, days: int, tape: str | None
) -> StatisticsModel:
    """Return the statistics of the last days, today included.

    Those of one conversation count the facts of the scope that its facts belong to.

    Raises:
        TapeNotFound: There is no such tape.
    """
    today = web.agent.clock.now().astimezone(web.agent.timezone).date()
    since = today - timedelta(days=days - 1)
    statistics_model = await cache.summary(since, today, tape)
    if tape is not None and is_conversation(tape):
        home = await home_of(web, tape, await load_session_fold(web, tape))
        with suppress(TapeNotFound):  # a person of whom nothing is known yet has no tape
            if home != tape:
                scope = await cache.summary(since, today, home)
                statistics_model = _with_facts_of(statistics_model, scope)
    return statistics_model.model_copy(update={"timezone": web.agent.timezone_name})


def statistics_cache(connection: HTTPConnection) -> StatisticsCache:
    """Return the application's statistics cache; a FastAPI dependency."""
    state = connection.app.state
    kept = getattr(state, "figures", None)
    if kept is None:
        kept = state.figures = StatisticsCache(state.web.store, state.web.agent.timezone)
    assert isinstance(kept, StatisticsCache)
    return kept


StatisticsDep = Annotated[StatisticsCache, Depends(statistics_cache)]
"""Route parameter: the cache of statistics."""


async def _added(
    tapes: list[TapeStatistics], since: date, until: date
) -> dict[date, DayStatistics]:
    days = [since + timedelta(days=one) for one in range((until - since).days + 1)]
    sums = {day: DayStatistics() for day in days}
    grown: defaultdict[date, TapeTotals] = defaultdict(TapeTotals)
    for place, tape in enumerate(tapes):
        if place % 200 == 199:
            await anyio.lowlevel.checkpoint()
        level = tape.before
        grown[since] += level
        # Clocks may be set back: the order on the tape counts.
        for day, day_statistics in sorted(tape.days.items()):
            grown[max(day, since)] += day_statistics.totals - level
            level = day_statistics.totals
            if day in sums:
                _add(sums[day], day_statistics)
    level = TapeTotals()
    for day in days:
        level += grown[day]
        sums[day].totals = level
    return sums


def _add(total: DayStatistics, day_statistics: DayStatistics) -> None:
    for model, usage in day_statistics.usage.items():
        total.spend(model, usage)
    total.ms.extend(day_statistics.ms)
    total.waits_ms.extend(day_statistics.waits_ms)
    total.turns += day_statistics.turns
    total.failed += day_statistics.failed


def _with_facts_of(conversation: StatisticsModel, scope: StatisticsModel) -> StatisticsModel:
    """Return a conversation's statistics with the facts of a scope instead of its own."""
    days = zip(conversation.days, scope.days, strict=True)
    return conversation.model_copy(
        update={
            "facts_of": scope.tape,
            "days": tuple(day.model_copy(update={"facts": other.facts}) for day, other in days),
            "tapes": conversation.tapes + scope.tapes,
            "read": conversation.read + scope.read,
            "complete": conversation.complete and scope.complete,
        }
    )


def _day(day: date, day_statistics: DayStatistics) -> DayModel:
    return DayModel(
        day=day.isoformat(),
        turns=day_statistics.turns,
        failed=day_statistics.failed,
        p50_ms=percentile(day_statistics.ms, 0.5),
        p95_ms=percentile(day_statistics.ms, 0.95),
        waited_p50_ms=percentile(day_statistics.waits_ms, 0.5),
        usage=tuple(
            ModelUsage(model=model, **asdict(usage))
            for model, usage in sorted(day_statistics.usage.items())
        ),
        facts=day_statistics.totals.facts,
        zone_bytes=day_statistics.totals.zone,
        entries=day_statistics.totals.entries,
    )
