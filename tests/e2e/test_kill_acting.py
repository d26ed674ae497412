"""Kills while reminders, budgets and calls that wait for a yes are mixed: each acts, counts and comes once."""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from acting_checks import acted_once
from acting_kill_host import ACTS, COST
from kill_checks import read_tape
from kill_harness import Kill, Platform, kill_often
from kill_talk import CHATS
from sampling import is_sample, many
from test_kill_schedules import check as check_reminders
from test_kill_schedules import waits
from waiting import until

from bot.memory.records.spending import RESERVED_EVENT, SETTLED_EVENT, SPENDING_TAPE, SpendingFold
from bot.memory.records.spending_amounts import EVERYONE, NANO

pytestmark = pytest.mark.slow

HOST = Path(__file__).with_name("acting_kill_host.py")
SEEDS = 4
KILLS = 200 // SEEDS
_AT_ONCE = 4
"""The most calls of the model that are in flight when the program is killed."""


def plan(chance: random.Random) -> Kill:
    calls, part = chance.randrange(1, 80), chance.random()
    return chance.choice(
        [
            Kill(calls=calls, part=part, after=1.2),
            Kill(calls=calls, part=part, after=1.2),
            Kill(calls=calls // 2 + 1, part=part, at_start=True, after=1.2),
            Kill(event="billed", times=chance.randrange(1, 3), after=1.2),
            Kill(event="answer", times=chance.randrange(1, 4), after=1.2),
        ]
    )


class Script:
    """What people say: orders that wait for a yes, answers to them, reminders, budgets."""

    def __init__(self, delivered: Mapping[str, list[str]]) -> None:
        self.orders: list[str] = []
        self._delivered = delivered

    def __call__(self, chance: random.Random) -> list[tuple[str, str]]:
        makers: list[Callable[[random.Random], str]] = [
            self._order,
            self._order,
            self._decide,
            self._decide,
            self._decide,
            self._remind,
            self._remind,
            self._talk,
        ]
        size = chance.randrange(1, 5)
        return [(chance.choice(CHATS), chance.choice(makers)(chance)) for _ in range(size)]

    def _order(self, chance: random.Random) -> str:
        self.orders.append(f"k{chance.randrange(16**6):06x}")
        return f"write {self.orders[-1]}"

    def _decide(self, chance: random.Random) -> str:
        told = "\n".join(text for texts in self._delivered.values() for text in texts)
        numbers = sorted(set(map(int, re.findall(r"\(call (\d+)\)", told))))
        # The newest ones mostly: those that are decided already are told so.
        number = chance.choice(numbers[-3:] or [1])
        return f"/{chance.choice(['approve', 'approve', 'approve', 'deny'])} {number}"

    def _remind(self, chance: random.Random) -> str:
        word = f"W{chance.randrange(16**6):06X}"
        texts = [
            f"/remind in 1 second {word}",
            f"remind me in 2 seconds to say {word}",
            f"/schedules task in 1 second tell me {word}",
            f"/schedules snooze {chance.randrange(1, 5)} 1",
        ]
        return chance.choice(texts)

    def _talk(self, chance: random.Random) -> str:
        texts = ["hello", "/budget", "/budget set here 5000$ day", "/budget off here", "/approvals"]
        return chance.choice(texts)


async def check_acts(platform: Platform, orders: list[str]) -> Counter[str]:
    """No order was carried out twice, none without a yes, and each yes has one result."""
    path = platform.home / ACTS
    written = path.read_text() if path.exists() else ""
    tapes = [await read_tape(platform.home, f"pipe:{chat}") for chat in platform.sent]
    return acted_once(tapes, written, orders)


async def check_spending(platform: Platform) -> None:
    """Each call of the model counts once; what was in flight at a kill counts as estimated."""
    entries = await read_tape(platform.home, SPENDING_TAPE)
    reserved = [entry.data["id"] for entry in entries if entry.name == RESERVED_EVENT]
    settled = [entry.data["id"] for entry in entries if entry.name == SETTLED_EVENT]
    assert len(reserved) == len(set(reserved))
    assert len(settled) == len(set(settled))
    assert set(settled) <= set(reserved)
    began, billed = platform.heard["model"], platform.heard["billed"]
    in_flight = _AT_ONCE * (platform.kills + 1)
    assert began <= len(reserved) <= began + in_flight
    assert billed - in_flight <= len(settled) <= billed
    fold = SpendingFold()
    for entry in entries:
        fold.apply(entry)
    total = sum(fold.total(month, EVERYONE).cost for month in fold.months)
    estimated = sum(charge.amount.cost for charge in fold.open.values())
    assert len(fold.open) == len(reserved) - len(settled)
    assert total - estimated == round(len(settled) * COST * NANO)


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
async def test_what_acts_on_time_and_within_a_budget_is_done_once_whatever_is_killed_when(
    tmp_path: Path, seed: int
):
    platform = Platform(tmp_path, seed=seed, stall=0.02, host=HOST)
    script = Script(platform.delivered)
    await kill_often(platform, many(KILLS), plan, script)

    async def over() -> bool:
        tapes = [await read_tape(platform.home, f"pipe:{chat}") for chat in platform.sent]
        return not any(map(waits, tapes))

    async with platform.running() as host:
        await until(over, every=0.1, within=120)
        await host.settle()
    fired = [await check_reminders(platform, chat) for chat in platform.sent]
    acts = await check_acts(platform, script.orders)
    await check_spending(platform)
    sys.stdout.write(f"seed {seed}: fired {sum(fired)}, calls {dict(acts)}\n")
    # A few kills may leave nothing that was approved, or that was due.
    assert is_sample() or (sum(fired) > 0 and acts["ok"] > 0)
