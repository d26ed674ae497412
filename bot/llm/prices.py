"""List prices of models, from the price table."""

from __future__ import annotations

from dataclasses import dataclass

import anyio.to_thread

from bot.llm.price_table import read_price_entry

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    read: float
    written: float


FREE = Price(0.0, 0.0)


async def list_price(model: str) -> Price | None:
    """Return a model's list price; None if it is unknown.

    Args:
        model: As in the settings, e.g. ``openai/gpt-5-mini``, ``gguf:NAME`` or ``offline``.
    """
    entry = await anyio.to_thread.run_sync(read_price_entry, model) or {}
    read, written = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    if not isinstance(read, (int, float)) or not isinstance(written, (int, float)):
        return None
    return Price(read * _MILLION, written * _MILLION)
