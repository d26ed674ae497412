"""Prices and limits of models: litellm's table, read as data, without importing litellm.

Rule 1: an entry is found by the whole name, or by the name without its provider, if the entry is
that provider's.
Rule 2: above a threshold of prompt tokens, the higher prices hold for all tokens of the call.
Rule 3: cached tokens whose price is unknown cost as much as others.
Rule 4: in a provider's off-peak hours, the prices that it names for them take the place of others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import anyio.to_thread

from bot.core.patterns import LazyPattern

_READ, _WRITTEN = "input_cost_per_token", "output_cost_per_token"
_TABLE = "model_prices_and_context_window_backup.json"

_THRESHOLD = LazyPattern(r"input_cost_per_token_above_(\d{1,6})k_tokens")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    read: float
    written: float


FREE = Price(0.0, 0.0)


async def list_price(model: str) -> Price | None:
    """Return a model's list price; None if it is unknown."""
    entry = await anyio.to_thread.run_sync(read_price_entry, model) or {}
    read, written = _price(entry, _READ, ""), _price(entry, _WRITTEN, "")
    return None if read is None or written is None else Price(read * 1e6, written * 1e6)


def read_price_entry(name: str) -> dict[str, Any] | None:
    """Return a model's entry in the table; None if it has none, or litellm is not installed.

    The whole table is read (3 MB, 50 ms): call this in a thread.
    """
    if name == "offline" or name.startswith("gguf:"):
        return {_READ: 0.0, _WRITTEN: 0.0}
    package = find_spec("litellm")
    if package is None or not package.submodule_search_locations:
        return None
    path = Path(package.submodule_search_locations[0]) / _TABLE
    try:
        table: dict[str, dict[str, Any]] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return price_entry(table, name)


def price_entry(table: Mapping[str, dict[str, Any]], name: str) -> dict[str, Any] | None:
    """Return a model's entry in a table; None if it has none."""
    provider, _, bare = name.partition("/")
    if (entry := table.get(name)) is not None:
        return entry
    other = table.get(bare)
    return other if other is not None and other.get("litellm_provider") == provider else None


def call_cost(
    entry: Mapping[str, Any] | None,
    *,
    at: datetime,
    prompt: int,
    completion: int,
    cached: int,
    stored: int = 0,
) -> float | None:
    """Return the cost of a call in US dollars; None if the prices are unknown.

    The prompt's tokens include those that the cache served, and those that were stored in it.
    """
    if entry is None:
        return None
    suffix = _suffix(entry, prompt)
    off_peak = entry.get("off_peak_pricing")
    if off_peak and _is_off_peak(off_peak, at):
        prices = {f"{name}{suffix}": price for name, price in off_peak.items()}
        entry = {**entry, **prices}
    read, written = _price(entry, _READ, suffix), _price(entry, _WRITTEN, suffix)
    if read is None or written is None:
        return None
    from_cache = _price(entry, "cache_read_input_token_cost", suffix)
    to_cache = _price(entry, "cache_creation_input_token_cost", suffix)
    return (
        (prompt - cached - stored) * read
        + cached * (read if from_cache is None else from_cache)
        + stored * (read if to_cache is None else to_cache)
        + completion * written
    )


def _suffix(entry: Mapping[str, Any], prompt: int) -> str:
    passed = [
        int(found[1])
        for key in entry
        if (found := _THRESHOLD.fullmatch(key)) and prompt > int(found[1]) * 1000
    ]
    return f"_above_{max(passed)}k_tokens" if passed else ""


def _is_off_peak(pricing: Mapping[str, Any], at: datetime) -> bool:
    """Return whether one of the provider's rules covers a moment; False if they cannot be read.

    A rule names hours in UTC, and days of the week on the provider's calendar; without days it
    covers each.
    """
    try:
        day = at.astimezone(ZoneInfo(pricing.get("weekday_timezone") or "UTC")).isoweekday()
        return any(
            day in rule.get("weekdays", (day,)) and _covers(hours, at)
            for rule in (pricing, *pricing.get("windows", ()))
            if (hours := rule.get("hours_utc"))
        )
    except (AttributeError, LookupError, TypeError, ValueError):
        return False


def _covers(hours: str | Iterable[str], at: datetime) -> bool:
    """Return whether a moment is in one of these windows, as 16:30-00:30; equal ends are a day."""
    moment = at.astimezone(UTC).time()
    for window in (hours,) if isinstance(hours, str) else hours:
        start, end = map(time.fromisoformat, window.split("-"))
        if start <= moment < end if start < end else moment >= start or moment < end:
            return True
    return False


def _price(entry: Mapping[str, Any], name: str, suffix: str) -> float | None:
    for key in (name + suffix, name):
        if isinstance(value := entry.get(key), (int, float)):
            return float(value)
    return None
