"""Kills while reminders are set, changed and fired: each comes once, none is lost."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from kill_checks import read_tape
from kill_harness import CHATS, Kill, Platform, kill_often
from sampling import many
from waiting import until

from bot.core.clock import parse_time
from bot.memory.records.schedules import SCHEDULE_FIRED, SCHEDULE_SET, ScheduleFold
from bot.tape.entries import TapeEntry

pytestmark = pytest.mark.slow


def plan(chance: random.Random) -> Kill:
    return chance.choice(
        [
            Kill(calls=chance.randrange(1, 60), part=chance.random(), after=1.5),
            Kill(event="answer", times=chance.randrange(1, 4), after=1.5),
            Kill(calls=chance.randrange(1, 30), part=chance.random(), at_start=True, after=1.5),
        ]
    )


def word(chance: random.Random) -> str:
    return f"W{chance.randrange(16**6):06X}"


def script(chance: random.Random) -> list[tuple[str, str]]:
    made = [
        lambda: f"/remind in 1 second {word(chance)}",
        lambda: f"/remind {word(chance)} in 2 seconds",
        lambda: f"/schedules change {chance.randrange(1, 4)} in 1 second",
        lambda: f"/schedules task in 1 second tell me {word(chance)}",
    ]
    return [(chance.choice(CHATS), chance.choice(made)()) for _ in range(chance.randrange(1, 4))]


def fold(entries: list[TapeEntry]) -> ScheduleFold:
    folded = ScheduleFold()
    for entry in entries:
        folded.apply(entry)
    return folded


def waits(entries: list[TapeEntry]) -> bool:
    return bool(fold(entries).live)


async def check(platform: Platform, chat: str) -> int:
    """Each schedule that was set has fired, no instant twice, and each firing was shown."""
    entries = await read_tape(platform.home, f"pipe:{chat}")
    ids = [entry.data["schedule"] for entry in entries if entry.name == SCHEDULE_SET]
    assert len(ids) == len(set(ids))
    fired = [entry.data for entry in entries if entry.name == SCHEDULE_FIRED]
    assert {one["schedule"] for one in fired} == set(ids)
    twice = Counter((one["schedule"], parse_time(one["instant"])) for one in fired)
    assert set(twice.values()) <= {1}
    assert {one["turn"] for one in fired} <= set(platform.delivered)
    return len(fired)


@pytest.mark.parametrize("seed", [1, 2])
async def test_reminders_and_tasks_come_once_whatever_is_killed_when(tmp_path: Path, seed: int):
    platform = Platform(tmp_path, seed=seed, stall=0.05)
    await kill_often(platform, many(60), plan, script)

    async def over() -> bool:
        tapes = [await read_tape(platform.home, f"pipe:{chat}") for chat in platform.sent]
        return not any(map(waits, tapes))

    async with platform.running() as host:
        await until(over, every=0.1)
        await host.settle()
    fired = [await check(platform, chat) for chat in platform.sent]
    assert sum(fired) > 0
