"""API route of statistics: tokens, cost, latency and memory by day."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from bot.inspector.api import API
from bot.inspector.api.parameters import TapeName
from bot.inspector.dependencies import Owner, WebContext, WebContextDep
from bot.inspector.reading.statistics import StatisticsCache, StatisticsSummary, statistics_cache
from bot.inspector.reading.tape_statistics import DayStatistics, percentile
from bot.llm.base import Usage

router = APIRouter(prefix=API, tags=["statistics"])

StatisticsCacheDep = Annotated[StatisticsCache, Depends(statistics_cache)]
"""Route parameter: the cache of statistics."""

Days = Annotated[int, Query(ge=1, le=365, description="How many days, today included.")]


class ModelUsage(BaseModel):
    """The usage of one model on one day."""

    model_config = ConfigDict(frozen=True)

    model: str = Field(description="Its name; `unknown` where the tape does not tell it.")
    prompt_tokens: int
    cached_tokens: int = Field(description="Of those, as far as providers tell: from their cache.")
    completion_tokens: int
    cost: float | None = Field(description="US dollars; null where a price is unknown.")
    calls: int


class DayModel(BaseModel):
    """One day, in the user's time zone."""

    model_config = ConfigDict(frozen=True)

    day: str = Field(description="ISO 8601.")
    turns: int = Field(description="Turns that ended, commands not counted.")
    failed: int = Field(description="Of those, that failed.")
    p50_ms: float | None = Field(description="Milliseconds that half of the turns took at most.")
    p95_ms: float | None = Field(description="Milliseconds that 95 % of them took at most.")
    waited_p50_ms: float | None = Field(
        description="Milliseconds that half of the messages waited for their turn at most, from when the "
        "platform says that they were sent: its clock may count whole seconds."
    )
    usage: tuple[ModelUsage, ...] = Field(description="By model: turns, summaries, consolidations.")
    facts: int = Field(description="Facts that are active at the day's end.")
    zone_bytes: int = Field(description="Bytes of the memory zones at the day's end.")
    entries: int = Field(description="Entries of the tapes at the day's end.")


class StatisticsModel(BaseModel):
    """Statistics by day, without gaps."""

    model_config = ConfigDict(frozen=True)

    tape: str | None = Field(description="Of this tape alone; null for all.")
    timezone: str
    days: tuple[DayModel, ...]
    tapes: int = Field(description="Tapes that there are to be read.")
    read: int = Field(description="Of those, read to their end; every request reads some more.")
    complete: bool = Field(description="Whether all are.")
    left_out: int = Field(description="Tapes beyond the most that are read; ask for them by name.")


@router.get("/statistics")
async def statistics(
    *,
    web: WebContextDep,
    counted: StatisticsCacheDep,
    visitor: Owner,  # noqa: ARG001
    days: Days = 30,
    tape: TapeName | None = None,
) -> StatisticsModel:
    """Return by day the usage of models, the duration of turns, and the growth of memory.

    With many conversations the first look takes several requests: ask again until `complete`.
    """
    return statistics_model(web, tape, await summary_of(web, counted, days, tape))


async def summary_of(
    web: WebContext, counted: StatisticsCache, days: int, tape: str | None
) -> StatisticsSummary:
    """Return the statistics of the last days, today included.

    Raises:
        TapeNotFound: There is no such tape.
    """
    today = web.agent.clock.now().astimezone(web.agent.timezone).date()
    return await counted.summary(today - timedelta(days=days - 1), today, tape)


def statistics_model(
    web: WebContext, tape: str | None, found: StatisticsSummary
) -> StatisticsModel:
    """Convert statistics to their API model."""
    return StatisticsModel(
        tape=tape,
        timezone=web.agent.timezone_name,
        days=tuple(
            _day(day.isoformat(), one) for day, one in zip(found.days, found.per_day, strict=True)
        ),
        tapes=found.tapes,
        read=found.read,
        complete=found.complete,
        left_out=found.left_out,
    )


def _day(day: str, one: DayStatistics) -> DayModel:
    return DayModel(
        day=day,
        turns=one.turns,
        failed=one.failed,
        p50_ms=percentile(one.ms, 0.5),
        p95_ms=percentile(one.ms, 0.95),
        waited_p50_ms=percentile(one.waits_ms, 0.5),
        usage=tuple(_usage(model, one.usage[model]) for model in sorted(one.usage)),
        facts=one.totals.facts,
        zone_bytes=one.totals.zone,
        entries=one.totals.entries,
    )


def _usage(model: str, usage: Usage) -> ModelUsage:
    return ModelUsage(
        model=model,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        cost=usage.cost,
        calls=usage.calls,
    )
