"""The page of statistics: plots, with their numbers in tables."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from bot.core.i18n import _, pgettext
from bot.inspector.dependencies import Owner, WebContextDep
from bot.inspector.numbers import money, rounded, short_day
from bot.inspector.parameters import Days
from bot.inspector.plots import Format, Plot, Series
from bot.inspector.reading.sessions import is_conversation
from bot.inspector.reading.statistics import (
    DayModel,
    ModelUsage,
    StatisticsDep,
    StatisticsModel,
    recent_statistics,
)
from bot.inspector.rendering import render_page

router = APIRouter(include_in_schema=False)

SPANS = (7, 30, 90, 365)
_MODELS = 5
_OFFERED = 200

OptionalTape = Annotated[str, Query(max_length=600)]


@router.get("/statistics")
async def statistics(
    *,
    request: Request,
    web: WebContextDep,
    cache: StatisticsDep,
    visitor: Owner,
    days: Days = 30,
    tape: OptionalTape = "",
) -> HTMLResponse:
    """Render plots of the last days."""
    statistics_model = await recent_statistics(web, cache, days, tape or None)
    names = [name for name in await web.store.list_tapes() if is_conversation(name)]
    return render_page(
        request,
        "statistics.html",
        visitor,
        found=statistics_model,
        days=days,
        spans=sorted({*SPANS, days}),
        tape=tape,
        names=names[:_OFFERED],
        totals=_totals(statistics_model.days),
        plots=_plots(statistics_model),
    )


def _totals(days: Sequence[DayModel]) -> dict[str, float | None]:
    used = [model_usage for day in days for model_usage in day.usage]
    prompt = sum(model_usage.prompt_tokens for model_usage in used)
    cached = sum(model_usage.cached_tokens for model_usage in used)
    known = [model_usage.cost for model_usage in used if model_usage.cost is not None]
    return {
        "turns": sum(day.turns for day in days),
        "failed": sum(day.failed for day in days),
        "prompt": prompt,
        # None for a provider that reports no cached tokens; a tape holds 0 for it, too.
        "cached": cached / prompt if cached and prompt else None,
        "completion": sum(model_usage.completion_tokens for model_usage in used),
        "cost": sum(known) if known or not used else None,
        "unpriced": sum(model_usage.calls for model_usage in used if model_usage.cost is None),
    }


def _plots(statistics_model: StatisticsModel) -> list[Plot]:
    labels = [short_day(day.day) for day in statistics_model.days]
    return [
        _tokens(statistics_model.days, labels),
        _cost(statistics_model.days, labels),
        _latency(statistics_model.days, labels),
        _level(
            "facts",
            _facts_title(statistics_model),
            labels,
            [day.facts for day in statistics_model.days],
            count,
        ),
        _level(
            "zone",
            _("Memory zones"),
            labels,
            [day.zone_bytes for day in statistics_model.days],
            size,
        ),
        _level(
            "entries",
            _("Entries of tapes"),
            labels,
            [day.entries for day in statistics_model.days],
            count,
        ),
    ]


def _facts_title(statistics_model: StatisticsModel) -> str:
    shared = statistics_model.facts_of != statistics_model.tape
    return _("Active facts of this person, from all their chats") if shared else _("Active facts")


def _tokens(days: Sequence[DayModel], labels: Sequence[str]) -> Plot:
    cached = [sum(model_usage.cached_tokens for model_usage in day.usage) for day in days]
    prompt = [sum(model_usage.prompt_tokens for model_usage in day.usage) for day in days]
    written = [sum(model_usage.completion_tokens for model_usage in day.usage) for day in days]
    fresh = [max(0, whole - part) for whole, part in zip(prompt, cached, strict=True)]
    read, out = count(sum(prompt)), count(sum(written))
    if any(cached):
        summary = _(
            "{prompt} prompt tokens, {cached} of them from the provider's cache, and {written} tokens written.",
            prompt=read, cached=count(sum(cached)), written=out,
        )  # fmt: skip
    else:
        summary = _(
            "{prompt} prompt tokens, and {written} tokens written.", prompt=read, written=out
        )
    in_cache = (Series(_("prompt, from the provider's cache"), cached),) if any(cached) else ()
    return Plot(
        "tokens",
        _("Tokens"),
        summary,
        labels,
        (
            *in_cache,
            Series(pgettext("tokens", "prompt"), fresh),
            Series(pgettext("tokens", "written"), written),
        ),
        count,
        whole=True,
    )


def _cost(days: Sequence[DayModel], labels: Sequence[str]) -> Plot:
    spent: defaultdict[str, float] = defaultdict(float)
    for one in (model_usage for day in days for model_usage in day.usage):
        spent[one.model] += one.cost or 0
    named = sorted(spent, key=lambda model: -spent[model])[:_MODELS]
    others = spent.keys() - set(named)
    series = [Series(model, [_cost_of(day.usage, {model}) for day in days]) for model in named]
    if others:
        series.append(Series(_("others"), [_cost_of(day.usage, others) for day in days]))
    whole = sum(value or 0 for other in series for value in other.values)
    summary = _("{amount} in total, as far as prices are known, by model.", amount=dollars(whole))
    return Plot("cost", _("Cost by model"), summary, labels, tuple(series), dollars)


def _latency(days: Sequence[DayModel], labels: Sequence[str]) -> Plot:
    series = (
        Series(_("half of the turns"), [_seconds(day.p50_ms) for day in days]),
        Series(_("95 % of the turns"), [_seconds(day.p95_ms) for day in days]),
        Series(_("half of the waiting times"), [_seconds(day.waited_p50_ms) for day in days]),
    )
    highest = max((value or 0 for value in series[1].values), default=0)
    summary = _(
        "Longest duration of these shares of turns, in seconds; on the slowest day, 95 % took at most {duration}.",
        duration=seconds(highest),
    )
    return Plot("latency", _("Duration of turns"), summary, labels, series, seconds, stacked=False)


def _level(
    key: str, title: str, labels: Sequence[str], values: Sequence[int], shown: Format
) -> Plot:
    summary = _("From {first} to {last}.", first=shown(values[0]), last=shown(values[-1]))
    series = (Series(title, values),)
    return Plot(key, title, summary, labels, series, shown, stacked=False, whole=True)


def _cost_of(usage: Sequence[ModelUsage], models: Collection[str]) -> float | None:
    known = [
        model_usage.cost
        for model_usage in usage
        if model_usage.model in models and model_usage.cost is not None
    ]
    return sum(known) if known else None


def _seconds(ms: float | None) -> float | None:
    return ms / 1000 if ms is not None else None


def count(value: float) -> str:
    """Format a number with at most three digits and a suffix for thousands or more."""
    for limit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{rounded(value / limit)}{sign}"
    return rounded(value)


def size(value: float) -> str:
    """Format a number of bytes."""
    if value >= 1000:
        return _("{number} kB", number=rounded(value / 1000))
    return pgettext("bytes", "{number} B", number=rounded(value))


def dollars(value: float) -> str:
    """Format a price in US dollars."""
    # Small prices get two significant digits, and at least cents.
    digits = 2 if value >= 1 or value <= 0 else max(2, 1 - math.floor(math.log10(value)))
    return money(value, digits)


def seconds(value: float) -> str:
    """Format a duration."""
    return pgettext("seconds", "{number} s", number=rounded(value))
