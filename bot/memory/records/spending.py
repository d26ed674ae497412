"""Fold the tape ``workspace:spending``: who spent what on models, and the limits. Pure.

Rule 1: money is counted in whole nanodollars, so that sums depend on no order.
Rule 2: a reservation counts as its estimate until it is settled; one that a kill left unsettled
    counts as its estimate for good.
Rule 3: an id counts once, however often its event was written.
Rule 4: sums by day are kept for 62 days, sums by month for 24 months.
Rule 5: a call without a price counts by tokens; against limits in money it counts an assumed price.
Rule 6: there are ids, numbers and names of models here, no words of people.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, TypeGuard, cast

from bot.core.clock import parse_time
from bot.memory.records.spending_amounts import (
    Amount,
    Charge,
    Limit,
    SpendingKey,
    read_limit,
    read_usage,
)
from bot.tape.entries import TapeEntry

SPENDING_TAPE = "workspace:spending"
"""Name of the tape."""

SPENT_EVENT = "spent"
"""Calls without a reservation: ``{id, at, who, session, role, model, usage}``."""
RESERVED_EVENT = "reserved"
"""A call that may begin: as ``spent``, with ``usage`` estimated, and ``request``, the turn's id."""
SETTLED_EVENT = "settled"
"""What a reserved call used: ``{id, usage}``, and ``model`` if another one answered."""
LIMIT_EVENT = "budget.limit"
"""A limit: ``{scope, period, unit, amount}``; without an amount the limit is removed."""
WARNED_EVENT = "budget.warned"
"""Somebody was told that a limit is near: ``{limit, period, who}``."""

MAX_DAYS = 62
MAX_MONTHS = 24
_MAX_RECENT = 1_000
_MAX_OPEN = 5_000
_MINUTE = timedelta(minutes=1)

Sums = dict[str, dict[SpendingKey, Amount]]
"""Sums by period, a day ``2026-02-10`` or a month ``2026-02``, and by key."""


@dataclass(slots=True)
class SpendingFold:
    """What was spent, reserved and limited.

    Attributes:
        days: Sums by day.
        months: Sums by month.
        open: Reservations that are not settled, by id.
        limits: The limits, by their key.
        warned: Who was told which limit is near in which period.
        requests: Time, person and turn of what was asked within the last minute.
    """

    days: Sums = field(default_factory=dict)
    months: Sums = field(default_factory=dict)
    open: dict[str, Charge] = field(default_factory=dict)
    limits: dict[str, Limit] = field(default_factory=dict)
    warned: set[tuple[str, str, str]] = field(default_factory=set)
    requests: list[tuple[datetime, str, str]] = field(default_factory=list)
    _recent: dict[str, None] = field(default_factory=dict)
    _totals: dict[tuple[str, str], Amount] = field(default_factory=dict)

    def total(self, period: str, scope: str) -> Amount:
        """Return what a scope spent in a day or month."""
        return self._totals.get((period, scope), Amount())

    def is_known(self, call: str) -> bool:
        """Return whether a call's event is on the tape; old ones are forgotten."""
        return call in self.open or call in self._recent

    def average_cost(self, model: str, month: str) -> float | None:
        """Return the nanodollars that a token of a model cost in a month; None without calls."""
        amounts = [a for key, a in self.months.get(month, {}).items() if key.model == model]
        tokens = sum(amount.priced_tokens for amount in amounts)
        return sum(amount.cost for amount in amounts) / tokens if tokens > 0 else None

    def charges(self, name: str | None, data: Mapping[str, Any]) -> list[Charge]:
        """Return what an event changes in the sums: nothing if it is malformed or known."""
        call = data.get("id")
        usage = read_usage(data.get("usage"))
        if not isinstance(call, str) or not call or usage is None:
            return []
        if name == SETTLED_EVENT and (reserved := self.open.get(call)) is not None:
            key = reserved.key
            model = data.get("model")
            if isinstance(model, str) and model:
                key = SpendingKey(key.who, key.session, key.role, model)
            back = Charge(reserved.day, reserved.key, -reserved.amount)
            return [back, Charge(reserved.day, key, Amount.of(usage))]
        if name in (SPENT_EVENT, RESERVED_EVENT) and not self.is_known(call):
            day = data.get("at")
            if _is_date(day):
                return [Charge(day, _key(data), Amount.of(usage))]
        return []

    # Folding.

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry; a malformed one changes nothing."""
        if entry.kind != "event":
            if entry.is_reset:
                for slot in self.__slots__:
                    setattr(self, slot, getattr(SpendingFold(), slot))
            return
        name, data = entry.name, entry.data
        if name == LIMIT_EVENT:
            self._limit(data)
        elif name == WARNED_EVENT:
            told = tuple(str(data.get(part) or "") for part in ("limit", "period", "who"))
            self.warned.add(cast(tuple[str, str, str], told))
        elif charges := self.charges(name, data):
            self._charge(charges)
            self._note(str(name), data, charges[-1])
            if name == RESERVED_EVENT and (at := parse_time(entry.meta.get("ts"))) is not None:
                self._request(at, charges[-1].key.who, str(data.get("request") or ""))

    def _note(self, name: str, data: Mapping[str, Any], charge: Charge) -> None:
        call = str(data["id"])
        if name == RESERVED_EVENT:
            self.open[call] = charge
            # Only kills leave reservations open, so the oldest are those.
            _keep_newest(self.open, _MAX_OPEN)
            return
        self.open.pop(call, None)
        self._recent[call] = None
        _keep_newest(self._recent, _MAX_RECENT)

    def _request(self, at: datetime, who: str, request: str) -> None:
        self.requests = [one for one in self.requests if abs(at - one[0]) < _MINUTE]
        if request and all((w, r) != (who, request) for _, w, r in self.requests):
            self.requests.append((at, who, request))

    def _limit(self, data: Mapping[str, Any]) -> None:
        limit = read_limit({**data, "amount": data.get("amount") or 0})
        if limit is None:
            return
        self.warned = {one for one in self.warned if one[0] != limit.key}
        if limit.amount > 0:
            self.limits[limit.key] = limit
        else:
            self.limits.pop(limit.key, None)

    def _charge(self, charges: Iterable[Charge]) -> None:
        newest, outdated = max(self.days, default=""), False
        for charge in charges:
            outdated |= charge.day != newest
            for sums, period in ((self.days, charge.day), (self.months, charge.day[:7])):
                _add(sums.setdefault(period, {}), charge.key, charge.amount)
                if not sums[period]:
                    del sums[period]
                for scope in charge.key.scopes():
                    _add(self._totals, (period, scope), charge.amount)
        if outdated and self.days:
            self._forget(max(self.days))

    def _forget(self, newest: str) -> None:
        """Drop what is too old."""
        day = date.fromisoformat(newest)
        oldest = (day - timedelta(days=MAX_DAYS)).isoformat()
        month = day.year * 12 + day.month - 1 - MAX_MONTHS
        oldest_month = f"{month // 12:04}-{month % 12 + 1:02}"
        self.days = {day: sums for day, sums in self.days.items() if day > oldest}
        self.months = {one: sums for one, sums in self.months.items() if one > oldest_month}
        self.warned = {one for one in self.warned if newest.startswith(one[1])}
        self._rebuild_totals()

    def _rebuild_totals(self) -> None:
        self._totals = {}
        for sums in (self.days, self.months):
            for period, spent in sums.items():
                for key, amount in spent.items():
                    for scope in key.scopes():
                        _add(self._totals, (period, scope), amount)


def _key(data: Mapping[str, Any]) -> SpendingKey:
    who, session, role, model = (
        str(data.get(part) or "") for part in ("who", "session", "role", "model")
    )
    return SpendingKey(who, session, role, model)


def _add(sums: dict[Any, Amount], key: Any, amount: Amount) -> None:
    total = sums.get(key, Amount()) + amount
    if total == Amount():
        sums.pop(key, None)
    else:
        sums[key] = total


def _keep_newest(items: dict[str, Any], most: int) -> None:
    while len(items) > most:
        del items[next(iter(items))]


def _is_date(value: object) -> TypeGuard[str]:
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False
