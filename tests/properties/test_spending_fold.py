"""The ledger's fold: sums depend on no order, each call counts once, a kept state is the whole one."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from folded import kept
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.llm.base import Usage
from bot.memory.records.spending import (
    LIMIT_EVENT,
    MAX_DAYS,
    RESERVED_EVENT,
    SETTLED_EVENT,
    SPENT_EVENT,
    WARNED_EVENT,
    SpendingFold,
)
from bot.memory.records.spending_amounts import EVERYONE, Amount, SpendingKey
from bot.tape.entries import event

START = datetime(2026, 1, 1, tzinfo=UTC)
USAGES = st.builds(
    Usage,
    prompt_tokens=st.integers(0, 10**6),
    completion_tokens=st.integers(0, 10**5),
    cost=st.none() | st.floats(0, 10, allow_nan=False),
    calls=st.integers(0, 3),
)
OTHERS = [
    (LIMIT_EVENT, {"scope": "each", "period": "day", "unit": "usd", "amount": 2.5}),
    (LIMIT_EVENT, {"scope": "nobody", "period": "day", "unit": "usd", "amount": 1}),
    (WARNED_EVENT, {"limit": "each day usd", "period": "2026-01", "who": "telegram:1"}),
    (SPENT_EVENT, {"id": 7, "at": "2026-01-01", "usage": {"calls": -1}}),
    (SPENT_EVENT, {"id": "x", "at": "yesterday", "usage": {}}),
]


@st.composite
def calls(draw):
    """The events of one call: spent, or reserved and perhaps settled."""
    data = {
        "id": f"call-{draw(st.integers(0, 10**9))}",
        "at": (START + timedelta(days=draw(st.integers(0, MAX_DAYS - 1)))).date().isoformat(),
        "who": draw(st.sampled_from(["", "telegram:1", "discord:2"])),
        "session": draw(st.sampled_from(["", "telegram:1", "telegram:-5"])),
        "role": draw(st.sampled_from(["turn", "consolidation", "embedding"])),
        "model": draw(st.sampled_from(["a/b", "c/d"])),
        "usage": draw(USAGES).as_json(),
    }
    how = draw(st.sampled_from(["spent", "reserved", "settled"]))
    if how == "spent":
        return [(SPENT_EVENT, data)]
    reserved = (RESERVED_EVENT, {**data, "request": draw(st.sampled_from(["", "t1", "t2"]))})
    settled = (SETTLED_EVENT, {"id": data["id"], "usage": draw(USAGES).as_json()})
    return [reserved, settled] if how == "settled" else [reserved]


HISTORIES = st.lists(calls(), max_size=25, unique_by=lambda events: events[0][1]["id"])


def entries_of(events):
    """The events as they come back from a tape: through JSON, with ids and times."""
    return [
        replace(
            event(name, json.loads(json.dumps(data))),
            id=number,
            meta={"ts": (START + timedelta(seconds=number)).isoformat()},
        )
        for number, (name, data) in enumerate(events, 1)
    ]


def folded(entries, fold=None):
    fold = SpendingFold() if fold is None else fold
    for entry in entries:
        fold.apply(entry)
    return fold


@settings(max_examples=examples(80))
@given(history=HISTORIES, chance=st.randoms(use_true_random=False))
def test_sums_are_what_calls_used_whatever_the_order_and_however_often_written(history, chance):
    """Each call counts once: by what it used, or by its estimate if nobody knows."""
    queues, written = [[*events] for events in history], []
    while waiting := [queue for queue in queues if queue]:
        written.append(chance.choice(waiting).pop(0))
        if chance.random() < 0.3:
            written.append(chance.choice(written))
    fold = folded(entries_of(written))
    sums, totals = defaultdict(Amount), defaultdict(Amount)
    for (_, first), *_, (_, last) in (events * 2 for events in history):
        key = SpendingKey(*(first[part] for part in ("who", "session", "role", "model")))
        amount = Amount.of(Usage(**{**last["usage"], "cached_tokens": 0}))
        for period in (first["at"], first["at"][:7]):
            sums[period, key] += amount
            totals[period] += amount
    kept = {**fold.days, **fold.months}
    found = {(period, key): one for period, held in kept.items() for key, one in held.items()}
    assert found == {at: amount for at, amount in sums.items() if amount != Amount()}
    assert all(fold.total(period, EVERYONE) == total for period, total in totals.items())


@settings(max_examples=examples(80))
@given(
    history=HISTORIES,
    others=st.lists(st.sampled_from(OTHERS), max_size=6),
    cut=st.integers(0, 60),
)
def test_a_state_kept_at_any_point_goes_on_as_one_that_was_not(history, others, cut):
    flat = [one for events in history for one in events]
    for at, other in enumerate(others):
        flat.insert(at * 3 % (len(flat) + 1), other)
    entries = entries_of(flat)
    assert folded(entries[cut:], kept(folded(entries[:cut]))) == folded(entries)
