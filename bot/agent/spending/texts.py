"""What people read about budgets. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bot.agent.spending.decision import BACKGROUND_ROLES, LimitUse
from bot.memory.records.spending_amounts import (
    ASSUMED_PRICE,
    EACH,
    EVERYONE,
    NANO,
    Amount,
    Limit,
    Unit,
)

ROLES = {
    "turn": "answers",
    "task": "sub-tasks",
    "schedule": "scheduled tasks",
    "consolidation": "consolidations",
    "judgement": "fact checks",
    "summary": "summaries",
    "embedding": "embeddings",
    "transcription": "transcriptions",
    "tool": "tools",
}
"""What calls are for, in words."""

_PERIODS = {"minute": "a minute", "day": "a day", "month": "a month"}
_NOW = {"minute": "in this minute", "day": "today", "month": "this month"}


def count_text(amount: int, unit: Unit) -> str:
    """Return an amount in words: nanodollars as dollars, tokens, or requests."""
    if unit == "usd":
        return money_text(amount)
    return f"{amount:,} {unit}" if amount != 1 else f"1 {unit.removesuffix('s')}"


def money_text(nano: int) -> str:
    """Return nanodollars as dollars: cents, and more digits below ten cents."""
    dollars = nano / NANO
    if nano == 0 or dollars >= 0.1:
        return f"${dollars:,.2f}"
    if dollars < 0.0001:
        return "under $0.0001"
    cents, rest = f"${dollars:.4f}"[:-2], f"{dollars:.4f}"[-2:].rstrip("0")
    return f"{cents}{rest}"


def amount_text(amount: Amount) -> str:
    """Return an amount as money, tokens and calls."""
    assumed = f" and about {money_text(amount.assumed)} for calls without a known price"
    money = f"{money_text(amount.cost)}{assumed if amount.assumed else ''}"
    return f"{money}, {count_text(amount.tokens, 'tokens')}, {_calls(amount.calls)}"


def _calls(calls: int) -> str:
    return f"{calls:,} model call{'' if calls == 1 else 's'}"


def scope_text(scope: str) -> str:
    """Return whom a limit holds for."""
    kind, _, name = scope.partition(":")
    if scope == EVERYONE:
        return "everybody together"
    if scope == EACH:
        return "each person"
    return {"person": f"`{name}`", "session": f"the chat `{name}`"}.get(kind) or ROLES.get(
        name, f"`{name}`"
    )


def limit_text(limit: Limit) -> str:
    """Return a limit, such as "each person: $5.00 a day"."""
    amount = count_text(limit.amount, limit.unit)
    return f"{scope_text(limit.scope)}: {amount} {_PERIODS[limit.period]}"


def use_text(use: LimitUse) -> str:
    """Return how much of a limit is used and left."""
    limit = use.limit
    text = f"{_share_text(use)} {_NOW[limit.period]} ({_whose(limit)})"
    if limit.unit == "requests":
        return text
    return f"{text}, {count_text(use.left, limit.unit)} left{_assumed_text(use)}"


def refusal_text(use: LimitUse, role: str, now: datetime) -> str:
    """Return why a model was not called, and when it will be."""
    limit, again = use.limit, again_text(use.again, now)
    if limit.unit == "requests":
        times = "once" if limit.amount == 1 else f"{limit.amount} times"
        return f"each person may ask {times} a minute; try again {again}"
    share = _share_text(use)
    if role in BACKGROUND_ROLES and use.used < limit.amount:
        text = f"{ROLES.get(role, role)} stop at 80 % of a budget, and {share} are used"
    elif use.allowed < limit.amount and use.used < limit.amount:
        text = f"{share} are used, and the rest is kept for the owners"
    else:
        whole = count_text(limit.amount, limit.unit)
        text = f"the budget of {whole} {_PERIODS[limit.period]} ({_whose(limit)}) is used up"
    return f"{text}{_assumed_text(use)}; it goes on {again}"


def notice_text(uses: Sequence[LimitUse]) -> str:
    """Return what a person is told once when limits are near."""
    return " ".join(f"Budget: {use_text(use)}." for use in uses)


def instead_text(why: str, model: str | None) -> str:
    """Return what is said below an answer that another model gave, because a budget is used up.

    Args:
        why: Which budget, and until when.
        model: The model on this machine; None for the offline responder.
    """
    if model is not None:
        return f"_`{model}` on this machine answered this: {why}._"
    return f"_I answered this by simple rules, without a language model: {why}._"


def again_text(again: datetime, now: datetime) -> str:
    """Return when a limit counts anew."""
    seconds = max(1, round((again - now).total_seconds()))
    if seconds <= 90:
        return f"in {seconds} second{'' if seconds == 1 else 's'}"
    if again.date() == now.date() or seconds <= 24 * 3600:
        return f"at {again:%H:%M}"
    return f"on {again:%Y-%m-%d}"


def _share_text(use: LimitUse) -> str:
    """Return what is used of how much, such as "$0.81 of $1.00"."""
    whole = count_text(use.limit.amount, use.limit.unit)
    used = money_text(use.used) if use.limit.unit == "usd" else f"{use.used:,}"
    return f"{used} of {whole}"


def _whose(limit: Limit) -> str:
    if limit.scope == EACH:
        return "for each person"
    return f"for {scope_text(limit.scope)}"


def _assumed_text(use: LimitUse) -> str:
    if not use.assumed:
        return ""
    price = f"${ASSUMED_PRICE:g} for a million tokens"
    return (
        f" (of it {money_text(use.assumed)} assumed, at {price}, for calls without a known price)"
    )
