"""What a model call costs, whom it is counted for, and limits on it. Pure.

Money is counted in whole nanodollars, so that sums depend on no order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from bot.llm.base import Usage

Period = Literal["minute", "day", "month"]
Unit = Literal["usd", "tokens", "requests"]

NANO = 1_000_000_000
"""Nanodollars in a dollar."""

ASSUMED_PRICE = 3.0
"""Dollars for a million tokens that a call without a price counts against limits in money."""
_ASSUMED_NANO = round(ASSUMED_PRICE * NANO / 1_000_000)
"""Nanodollars for such a token."""


@dataclass(frozen=True, slots=True)
class Amount:
    """What was used.

    Attributes:
        calls: Number of calls.
        tokens: Tokens read and written.
        cost: Nanodollars that providers charge.
        assumed: Nanodollars assumed for calls whose price is unknown.
    """

    calls: int = 0
    tokens: int = 0
    cost: int = 0
    assumed: int = 0

    def __add__(self, other: Amount) -> Amount:
        """Return the sum."""
        return Amount(
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.cost + other.cost,
            self.assumed + other.assumed,
        )

    def __neg__(self) -> Amount:
        """Return what takes this amount back."""
        return Amount(-self.calls, -self.tokens, -self.cost, -self.assumed)

    @property
    def money(self) -> int:
        """Nanodollars, known and assumed."""
        return self.cost + self.assumed

    @property
    def priced_tokens(self) -> int:
        """Tokens of the calls whose price is known."""
        return self.tokens - self.assumed // _ASSUMED_NANO

    def in_unit(self, unit: Unit) -> int:
        """Return the amount as a limit counts it: nanodollars, tokens or calls."""
        return {"usd": self.money, "tokens": self.tokens, "requests": self.calls}[unit]

    @classmethod
    def of(cls, usage: Usage) -> Amount:
        """Return the amount of a usage."""
        tokens = usage.prompt_tokens + usage.completion_tokens
        if usage.cost is None:
            return cls(usage.calls, tokens, assumed=tokens * _ASSUMED_NANO)
        return cls(usage.calls, tokens, round(usage.cost * NANO))


@dataclass(frozen=True, slots=True)
class SpendingKey:
    """What sums are kept for.

    Attributes:
        who: Identity of the person, ``telegram:42``; empty if nobody asked.
        session: Key of the conversation; empty outside of one.
        role: What the call was for, such as ``turn`` or ``consolidation``.
        model: Name of the model.
    """

    who: str
    session: str
    role: str
    model: str

    def scopes(self) -> tuple[str, ...]:
        """Return the names of the totals that it counts in."""
        named = [f"role:{self.role}"]
        named += [f"person:{self.who}"] if self.who else []
        named += [f"session:{self.session}"] if self.session else []
        return (EVERYONE, *named)


EVERYONE = "everyone"
"""The scope of all calls."""
EACH = "each"
"""The scope of a limit that holds for each person alone."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on spending.

    Attributes:
        scope: ``everyone``, ``each``, ``person:IDENTITY``, ``session:KEY`` or ``role:NAME``.
        period: The period after which counting starts anew.
        unit: What is counted.
        amount: Nanodollars, tokens or requests.
    """

    scope: str
    period: Period
    unit: Unit
    amount: int

    @property
    def key(self) -> str:
        """What identifies it: there is one limit for each scope, period and unit."""
        return f"{self.scope} {self.period} {self.unit}"

    def as_json(self) -> dict[str, Any]:
        """Return the data of its event."""
        amount = self.amount / NANO if self.unit == "usd" else self.amount
        return {"scope": self.scope, "period": self.period, "unit": self.unit, "amount": amount}


@dataclass(frozen=True, slots=True)
class Charge:
    """An amount on a day, for a key; negative if it takes back a reservation."""

    day: str
    key: SpendingKey
    amount: Amount


def read_usage(value: object) -> Usage | None:
    """Return the usage in an event; None if it is malformed or negative."""
    if not isinstance(value, dict):
        return None
    counts = [
        value.get(name, 0)
        for name in ("prompt_tokens", "cached_tokens", "completion_tokens", "calls")
    ]
    if any(type(count) is not int or count < 0 for count in counts):
        return None
    cost = None if value.get("cost") is None else _number(value["cost"], 1e9)
    if cost is None and value.get("cost") is not None:
        return None
    return Usage(counts[0], counts[1], counts[2], cost, counts[3])


def read_limit(value: object) -> Limit | None:
    """Return the limit in an event; None if it is malformed. An amount of 0 removes it."""
    if not isinstance(value, dict):
        return None
    scope, period, unit = (value.get(part) for part in ("scope", "period", "unit"))
    amount = _number(value.get("amount"), 1e15)
    if not isinstance(scope, str) or amount is None:
        return None
    if period not in get_args(Period) or unit not in get_args(Unit):
        return None
    if scope not in (EVERYONE, EACH) and not scope.startswith(("person:", "session:", "role:")):
        return None
    counted = round(amount * NANO) if unit == "usd" else round(amount)
    return Limit(scope, cast(Period, period), cast(Unit, unit), counted)


def _number(value: object, below: float) -> float | None:
    """Return a number from 0 to a bound; None for anything else."""
    if type(value) not in (int, float):
        return None
    number = cast(float, value)
    return number if 0 <= number < below else None
