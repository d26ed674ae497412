"""The spending fold: sums depend on no order, a reservation counts once, a snapshot is the whole state."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

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
from bot.tape.entries import TapeEntry, event
from tests.sampling import examples

START = datetime(2026, 1, 1, tzinfo=UTC)
Events = list[tuple[str, dict[str, Any]]]
History = list[Events]
WHO = st.sampled_from(["", "telegram:1", "discord:2"])
USAGES = st.builds(
    Usage,
    prompt_tokens=st.integers(0, 10**6),
    completion_tokens=st.integers(0, 10**5),
    cost=st.none() | st.floats(0, 10, allow_nan=False),
    calls=st.integers(0, 3),
)


def entry_of(name: str, data: dict[str, Any], number: int = 1) -> TapeEntry:
    """Return an event as it comes back from a tape: through JSON, with id and time."""
    made = event(name, json.loads(json.dumps(data)))
    return replace(made, id=number, meta={"ts": (START + timedelta(seconds=number)).isoformat()})


@st.composite
def calls(draw: st.DrawFn) -> Events:
    """Return the events of one call: spent, or reserved and perhaps settled."""
    number = draw(st.integers(0, 10**9))
    day = (START + timedelta(days=draw(st.integers(0, MAX_DAYS - 1)))).date().isoformat()
    data = {
        "id": f"call-{number}",
        "at": day,
        "who": draw(WHO),
        "session": draw(st.sampled_from(["", "telegram:1", "telegram:-5"])),
        "role": draw(st.sampled_from(["turn", "consolidation", "embedding"])),
        "model": draw(st.sampled_from(["a/b", "c/d"])),
        "usage": draw(USAGES).as_json(),
    }
    how = draw(st.sampled_from(["spent", "reserved", "settled"]))
    if how == "spent":
        return [(SPENT_EVENT, data)]
    events = [(RESERVED_EVENT, {**data, "request": draw(st.sampled_from(["", "t1", "t2"]))})]
    if how == "settled":
        events.append((SETTLED_EVENT, {"id": data["id"], "usage": draw(USAGES).as_json()}))
    return events


HISTORIES = st.lists(calls(), max_size=25, unique_by=lambda events: events[0][1]["id"])
OTHERS = st.lists(
    st.sampled_from(
        [
            (LIMIT_EVENT, {"scope": "each", "period": "day", "unit": "usd", "amount": 2.5}),
            (LIMIT_EVENT, {"scope": "nobody", "period": "day", "unit": "usd", "amount": 1}),
            (WARNED_EVENT, {"limit": "each day usd", "period": "2026-01", "who": "telegram:1"}),
            (SPENT_EVENT, {"id": 7, "at": "2026-01-01", "usage": {"calls": -1}}),
            (SPENT_EVENT, {"id": "x", "at": "yesterday", "usage": {}}),
        ]
    ),
    max_size=6,
)


def folded(entries: list[TapeEntry]) -> SpendingFold:
    fold = SpendingFold()
    for entry in entries:
        fold.apply(entry)
    return fold


def by_hand(
    history: History,
) -> dict[tuple[str, SpendingKey], Amount]:
    sums: dict[tuple[str, SpendingKey], Amount] = {}
    for events in history:
        first, last = events[0][1], events[-1][1]
        key = SpendingKey(first["who"], first["session"], first["role"], first["model"])
        at = (first["at"], key)
        amount = Amount.of(Usage(**{**last["usage"], "cached_tokens": 0}))
        sums[at] = sums.get(at, Amount()) + amount
    return {at: amount for at, amount in sums.items() if amount != Amount()}


@settings(max_examples=examples(80))
@given(history=HISTORIES, seed=st.randoms(use_true_random=False))
def test_sums_are_what_calls_used_whatever_the_order_and_however_often_written(
    history: History, seed: random.Random
) -> None:
    queues = [[*events] for events in history]
    written = []
    while any(queues):
        queue = seed.choice([one for one in queues if one])
        written.append(queue.pop(0))
        if seed.random() < 0.3:
            written.append(seed.choice(written))
    fold = folded([entry_of(*one, number) for number, one in enumerate(written, 1)])
    found = {(day, key): one for day, sums in fold.days.items() for key, one in sums.items()}
    assert found == by_hand(history)
    for day in fold.days:
        total = sum((one for at, one in found.items() if at[0] == day), Amount())
        assert fold.total(day, EVERYONE) == total
    months = {month: sum(sums.values(), Amount()) for month, sums in fold.months.items()}
    for month, total in months.items():
        assert total == sum((o for at, o in found.items() if at[0][:7] == month), Amount())
        assert fold.total(month, EVERYONE) == total


@settings(max_examples=examples(80))
@given(history=HISTORIES, others=OTHERS, cut=st.integers(0, 60))
def test_a_snapshot_at_any_point_gives_the_same_state(
    history: History,
    others: Events,
    cut: int,
) -> None:
    flat = [one for events in history for one in events]
    for at, other in enumerate(others):
        flat.insert(at * 3 % (len(flat) + 1), other)
    entries = [entry_of(*one, number) for number, one in enumerate(flat, 1)]
    whole, again = folded(entries), SpendingFold()
    again.restore(json.loads(json.dumps(folded(entries[:cut]).snapshot())))
    for entry in entries[cut:]:
        again.apply(entry)
    assert again == whole
    assert json.loads(json.dumps(again.snapshot())) == again.snapshot()
