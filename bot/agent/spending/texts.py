"""What people read about budgets, in their language. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bot.agent.spending.decision import BACKGROUND_ROLES, LimitUse
from bot.agent.texts import joined, local_day
from bot.core.i18n import N_, _, format_money, format_number, ngettext
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
    "turn": N_("answers"),
    "task": N_("sub-tasks"),
    "schedule": N_("scheduled tasks"),
    "consolidation": N_("consolidations"),
    "judgement": N_("fact checks"),
    "summary": N_("summaries"),
    "embedding": N_("embeddings"),
    "transcription": N_("transcriptions"),
    "tool": N_("tools"),
}
"""What calls are for, in words that are marked for translation."""

_LIMITS = {
    "minute": N_("{whom}: {amount} a minute"),
    "day": N_("{whom}: {amount} a day"),
    "month": N_("{whom}: {amount} a month"),
}
_USES = {
    "minute": N_("{used} of {whole} in this minute ({whose})"),
    "day": N_("{used} of {whole} today ({whose})"),
    "month": N_("{used} of {whole} this month ({whose})"),
}
_USED_UP = {
    "day": N_("the budget of {amount} a day ({whose}) is used up"),
    "month": N_("the budget of {amount} a month ({whose}) is used up"),
}


def count_text(amount: int, unit: Unit) -> str:
    """Return an amount in words: nanodollars as dollars, tokens, or requests."""
    if unit == "usd":
        return money_text(amount)
    if unit == "tokens":
        return ngettext("{n} token", "{n} tokens", amount)
    return ngettext("{n} request", "{n} requests", amount)


def money_text(nano: int) -> str:
    """Return nanodollars as dollars: cents, and more digits below ten cents."""
    amount = nano / NANO
    if nano == 0 or amount >= 0.1:
        return format_money(amount)
    if amount < 0.0001:
        return _("under {amount}", amount=format_money(0.0001, 4))
    digits = 4 - len(f"{amount:.4f}"[-2:]) + len(f"{amount:.4f}"[-2:].rstrip("0"))
    return format_money(amount, digits)


def amount_text(amount: Amount) -> str:
    """Return an amount as money, tokens and calls."""
    money = money_text(amount.cost)
    if amount.assumed:
        assumed = money_text(amount.assumed)
        money = _(
            "{money} and about {assumed} for calls without a known price",
            money=money,
            assumed=assumed,
        )
    calls = ngettext("{n} model call", "{n} model calls", amount.calls)
    return joined([money, count_text(amount.tokens, "tokens"), calls])


def role_text(role: str) -> str:
    """Return what calls of a role are for; a name that is none, as code."""
    return _(ROLES[role]) if role in ROLES else f"`{role}`"


def scope_text(scope: str) -> str:
    """Return whom a limit holds for."""
    kind, _sep, name = scope.partition(":")
    if scope == EVERYONE:
        return _("everybody together")
    if scope == EACH:
        return _("each person")
    if kind == "session":
        return _("the chat {chat}", chat=f"`{name}`")
    return f"`{name}`" if kind == "person" else role_text(name)


def limit_text(limit: Limit) -> str:
    """Return a limit, such as "each person: $5.00 a day"."""
    amount = count_text(limit.amount, limit.unit)
    return _(_LIMITS[limit.period], whom=scope_text(limit.scope), amount=amount)


def use_text(use: LimitUse) -> str:
    """Return how much of a limit is used and left."""
    limit = use.limit
    text = _(_USES[limit.period], used=_used(use), whole=_whole(use), whose=_whose(limit))
    if limit.unit == "requests":
        return text
    left = _("{use}, {amount} left", use=text, amount=count_text(use.left, limit.unit))
    return _with_assumed(left, use)


def refusal_text(use: LimitUse, role: str, now: datetime) -> str:
    """Return why a model was not called, and when it will be."""
    limit, again = use.limit, again_text(use.again, now)
    if limit.unit == "requests":
        return ngettext(
            "each person may ask once a minute; try again {again}",
            "each person may ask {n} times a minute; try again {again}",
            limit.amount,
            again=again,
        )
    used, whole = _used(use), _whole(use)
    if role in BACKGROUND_ROLES and use.used < limit.amount:
        text = _(
            "{role} stop at 80 % of a budget, and {used} of {whole} are used",
            role=_(ROLES[role]) if role in ROLES else role,
            used=used,
            whole=whole,
        )
    elif use.allowed < limit.amount and use.used < limit.amount:
        text = _(
            "{used} of {whole} are used, and the rest is kept for the owners",
            used=used,
            whole=whole,
        )
    else:
        text = _(_USED_UP[limit.period], amount=whole, whose=_whose(limit))
    return _("{reason}; it goes on {again}", reason=_with_assumed(text, use), again=again)


def notice_text(uses: Sequence[LimitUse]) -> str:
    """Return what a person is told once when limits are near."""
    return " ".join(_("Budget: {use}.", use=use_text(use)) for use in uses)


def instead_text(why: str, model: str | None) -> str:
    """Return what is said below an answer that another model gave, because a budget is used up.

    Args:
        why: Which budget, and until when.
        model: The model on this machine; None for the notebook.
    """
    if model is not None:
        told = _("{model} on this machine answered this: {why}.", model=f"`{model}`", why=why)
    else:
        told = _("I answered this as a notebook, without a language model: {why}.", why=why)
    return f"_{told}_"


def again_text(again: datetime, now: datetime) -> str:
    """Return when a limit counts anew."""
    seconds = max(1, round((again - now).total_seconds()))
    if seconds <= 90:
        return ngettext("in {n} second", "in {n} seconds", seconds)
    if again.date() == now.date() or seconds <= 24 * 3600:
        return _("at {time}", time=f"{again:%H:%M}")
    return _("on {day}", day=local_day(again.isoformat(), again.tzinfo))


def _used(use: LimitUse) -> str:
    return money_text(use.used) if use.limit.unit == "usd" else format_number(use.used)


def _whole(use: LimitUse) -> str:
    return count_text(use.limit.amount, use.limit.unit)


def _whose(limit: Limit) -> str:
    if limit.scope == EACH:
        return _("for each person")
    return _("for {whom}", whom=scope_text(limit.scope))


def _with_assumed(text: str, use: LimitUse) -> str:
    if not use.assumed:
        return text
    return _(
        "{text} (of it {assumed} assumed, at {price} for a million tokens, for calls without a known price)",
        text=text,
        assumed=money_text(use.assumed),
        price=format_money(ASSUMED_PRICE, 0 if int(ASSUMED_PRICE) == ASSUMED_PRICE else 2),
    )
