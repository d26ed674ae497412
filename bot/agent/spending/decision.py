"""Decide whether a model may be called, given what was spent and the limits. Pure.

Rule 1: a call may begin as long as something is left, so the last one may exceed a limit by its own
    cost. Running calls count as their estimates.
Rule 2: background work may use ``BACKGROUND_SHARE`` of a limit, so that it never takes what a person
    needs. Of a limit for everyone, people who do not own the bot may use ``MEMBER_SHARE``.
Rule 3: a person's own limit replaces the one for each person of the same period and unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta

from bot.llm.spender import Spender
from bot.memory.records.spending import SpendingFold
from bot.memory.records.spending_amounts import EACH, EVERYONE, Amount, Charge, Limit

BACKGROUND_SHARE = 0.8
WARNING_SHARE = 0.8
MEMBER_SHARE = 0.9

BACKGROUND_ROLES = frozenset(
    {"consolidation", "judgement", "summary", "task", "schedule", "embedding"}
)
"""What nobody waits for, or what a turn can do without."""

Members = Callable[[str], tuple[str, ...]]
"""Returns all identities of a person, given one of them."""

Totals = dict[tuple[str, str], Amount]
"""Amounts by period and scope."""

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class LimitUse:
    """How much of a limit is used.

    Attributes:
        limit: The limit.
        used: Used so far, in the limit's unit.
        allowed: How much of the limit the spender may use.
        assumed: Of the used nanodollars, those assumed for calls without a price.
        again: When the limit counts anew, in the workspace's time zone.
    """

    limit: Limit
    used: int
    allowed: int
    assumed: int
    again: datetime

    @property
    def left(self) -> int:
        """What the spender may still use."""
        return max(0, self.allowed - self.used)

    @property
    def is_reached(self) -> bool:
        """Whether nothing is left."""
        return self.used >= self.allowed

    @property
    def is_near(self) -> bool:
        """Whether so much is used that people are told."""
        return self.limit.unit != "requests" and self.used >= WARNING_SHARE * self.limit.amount


def period_name(period: str, now: datetime) -> str:
    """Return the name of the day or month of a local time."""
    return f"{now:%Y-%m}" if period == "month" else f"{now:%Y-%m-%d}"


def period_end(period: str, now: datetime) -> datetime:
    """Return when the day or month of a local time ends."""
    day = now.date().replace(day=1) if period == "month" else now.date()
    following = day + timedelta(days=32 if period == "month" else 1)
    if period == "month":
        following = following.replace(day=1)
    return datetime.combine(following, time(), now.tzinfo)


def limits_for(fold: SpendingFold, spender: Spender, role: str, members: Members) -> list[Limit]:
    """Return the limits that hold for a call, those of the narrowest scope first."""
    people = members(spender.identity) if spender.identity else ()
    own = {f"person:{one}" for one in people}
    found = [limit for limit in fold.limits.values() if limit.scope in own]
    replaced = {(limit.period, limit.unit) for limit in found}
    each = [limit for limit in fold.limits.values() if limit.scope == EACH and people]
    found += [limit for limit in each if (limit.period, limit.unit) not in replaced]
    rest = (f"session:{spender.session}", f"role:{role}", EVERYONE)
    found += [limit for scope in rest for limit in fold.limits.values() if limit.scope == scope]
    return found


def limit_use(
    fold: SpendingFold,
    limit: Limit,
    spender: Spender,
    role: str,
    *,
    now: datetime,
    members: Members,
    pending: Mapping[tuple[str, str], Amount],
) -> LimitUse:
    """Return how much of a limit is used by those whom it counts.

    Args:
        fold: What was spent.
        limit: One of the spender's limits.
        spender: For whom a model is called.
        role: What for.
        now: The time in the workspace's time zone.
        members: Returns a person's identities.
        pending: Amounts to add: those of events that are about to be written.
    """
    people = members(spender.identity) if spender.identity else ()
    if limit.period == "minute":
        return _request_use(fold, limit, spender, people, now)
    scopes: Iterable[str] = [limit.scope]
    if limit.scope == EACH or limit.scope.startswith("person:"):
        scopes = [f"person:{one}" for one in people]
    period = period_name(limit.period, now)
    total = Amount()
    for scope in scopes:
        total += fold.total(period, scope) + pending.get((period, scope), Amount())
    return LimitUse(
        limit,
        total.in_unit(limit.unit),
        int(limit.amount * _share(limit, spender, role)),
        total.assumed if limit.unit == "usd" else 0,
        period_end(limit.period, now),
    )


def _share(limit: Limit, spender: Spender, role: str) -> float:
    """Return the share of a limit that a spender may use."""
    if role in BACKGROUND_ROLES:
        return BACKGROUND_SHARE
    return MEMBER_SHARE if limit.scope == EVERYONE and not spender.owner else 1.0


def _request_use(
    fold: SpendingFold, limit: Limit, spender: Spender, people: tuple[str, ...], now: datetime
) -> LimitUse:
    """Return how often a person asked within the last minute, apart from the running turn."""
    recent = [
        at
        for at, who, request in fold.requests
        if who in people and abs(now - at) < _MINUTE and request != spender.request
    ]
    again = min(recent, default=now) + _MINUTE
    used = len(recent) if spender.request else 0
    return LimitUse(limit, used, limit.amount, 0, again.astimezone(now.tzinfo))


def add_pending(pending: Totals, charges: Iterable[Charge]) -> None:
    """Add charges to the amounts of events that are about to be written."""
    for charge in charges:
        for period in (charge.day, charge.day[:7]):
            for scope in charge.key.scopes():
                at = (period, scope)
                pending[at] = pending.get(at, Amount()) + charge.amount
