"""Sum up spending for people and for the site. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from bot.memory.records.spending import SpendingFold
from bot.memory.records.spending_amounts import EVERYONE, Amount, SpendingKey

BREAKDOWNS: dict[str, Callable[[SpendingKey], str]] = {
    "person": lambda key: key.who,
    "chat": lambda key: key.session,
    "role": lambda key: key.role,
    "model": lambda key: key.model,
}
"""What spending is broken down by, and how each key names it; empty if nobody or nothing."""


@dataclass(frozen=True, slots=True)
class SpendingRow:
    """What one person, chat, role or model used.

    Attributes:
        name: Its name; empty for what has none, such as embeddings of no conversation.
        today: Used today.
        month: Used this month.
    """

    name: str
    today: Amount
    month: Amount


def totals(fold: SpendingFold, scopes: Iterable[str], day: str) -> SpendingRow:
    """Return what some scopes used on a day and in its month."""
    names = list(scopes)
    today = sum((fold.total(day, scope) for scope in names), Amount())
    return SpendingRow("", today, sum((fold.total(day[:7], scope) for scope in names), Amount()))


def breakdown(fold: SpendingFold, by: str, day: str) -> list[SpendingRow]:
    """Return rows for a day and its month, the most expensive month first.

    Args:
        fold: What was spent.
        by: A key of ``BREAKDOWNS``.
        day: The day.
    """
    name = BREAKDOWNS[by]
    today: dict[str, Amount] = {}
    month: dict[str, Amount] = {}
    for sums, rows in ((fold.days.get(day, {}), today), (fold.months.get(day[:7], {}), month)):
        for key, amount in sums.items():
            rows[name(key)] = rows.get(name(key), Amount()) + amount
    found = [
        SpendingRow(one, today.get(one, Amount()), month.get(one, Amount()))
        for one in today.keys() | month.keys()
    ]
    return sorted(found, key=lambda row: (-row.month.money, -row.month.tokens, row.name))


def by_day(
    fold: SpendingFold, people: Collection[str] | None, last: str, days: int
) -> list[tuple[str, dict[str, Amount]]]:
    """Return what was used on each of the newest days, by role, oldest first.

    Args:
        fold: What was spent.
        people: The identities whose spending counts; None for everybody's.
        last: The newest day.
        days: How many days; older ones than the fold keeps are empty.
    """
    newest = date.fromisoformat(last)
    found = []
    for back in reversed(range(days)):
        day = (newest - timedelta(days=back)).isoformat()
        roles: dict[str, Amount] = {}
        for key, amount in fold.days.get(day, {}).items():
            if people is None or key.who in people:
                roles[key.role] = roles.get(key.role, Amount()) + amount
        found.append((day, roles))
    return found


def person_scopes(members: Iterable[str]) -> list[str]:
    """Return the scopes of a person with these identities."""
    return [f"person:{one}" for one in members]


EVERYBODY = (EVERYONE,)
"""The scopes of the whole workspace."""
