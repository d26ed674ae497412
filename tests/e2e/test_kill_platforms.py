"""Many kills between Telegram and Discord at once: everything is answered, nothing twice."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from platform_books import Books, close_books
from platform_kills import Kills, Plan
from platform_stage import open_stage
from sampling import is_sample, many

KILLS = 100
SEED = 20_261_122
FEW = 10
OFTEN = 3
"""Taken up again more often than this, a turn has been interrupted very often."""
UNAIMED = ("start", "turn", "stream", "any time")
"""Kills at moments of which a send is none; the others are set at a step of tapebot's or a call."""


def at_start(chance: random.Random) -> Plan:
    """While it reads what the kill before left behind, or logs in, or catches up."""
    if chance.random() < 0.5:
        return Plan("start", calls=chance.randrange(1, 20), part=chance.random(), after=0.5)
    return Plan("start", after=chance.uniform(0.0, 0.6))


def in_a_write(chance: random.Random) -> Plan:
    """At a system call: journal, tape, receipt, spool, marks, each perhaps half written."""
    return Plan("write", calls=chance.randrange(1, 40), part=chance.random())


def before_publish(chance: random.Random) -> Plan:
    delay = chance.choice([0.0, 0.002, 0.005, 0.01])
    return Plan("handed", "handed", delay=delay, platform="telegram")


def in_a_turn(chance: random.Random) -> Plan:
    return Plan("turn", "asked", times=chance.choice([1, 1, 2]), delay=chance.uniform(0.0, 0.2))


def in_a_stream(chance: random.Random) -> Plan:
    fact = chance.choice(["drafted", "half", "half"])
    delay = chance.uniform(0.02, 0.4)
    platform = "telegram" if fact == "drafted" else None
    return Plan("stream", fact, delay=delay, platform=platform, slow=True, after=2.5)


def in_a_call(chance: random.Random) -> Plan:
    """Before a platform answers one of its calls, whichever it is."""
    return Plan("call", "called", times=chance.randrange(1, 8))


def as_telegram_took_it(_: random.Random) -> Plan:
    return Plan("taken by Telegram", "shown", platform="telegram", after=2.5)


def as_discord_took_it(chance: random.Random) -> Plan:
    slow = chance.random() < 0.4
    return Plan("taken by Discord", "posted", platform="discord", slow=slow, after=2.5)


def in_an_interaction(chance: random.Random) -> Plan:
    """Around the acknowledgement of a command, and the answer in its place."""
    delay = chance.choice([0.0, 0.005, 0.02])
    return Plan("interaction", "acknowledged", delay=delay, platform="discord")


def in_a_long_call(chance: random.Random) -> Plan:
    """Asked to stop while the model thinks."""
    return Plan("stop", "asked", delay=chance.uniform(0.1, 0.6), slow=True, after=4.0, stop=True)


def with_what_joins(chance: random.Random) -> Plan:
    """While messages that came later are answered with those before."""
    delay = chance.uniform(0.2, 2.0)
    return Plan("turn", "asked", delay=delay, slow=True, joined=True, after=4.0)


def at_any_time(chance: random.Random) -> Plan:
    return Plan("any time", after=chance.uniform(0.0, 1.5))


SHARES = {
    at_start: 14,
    in_a_write: 22,
    before_publish: 8,
    in_a_turn: 12,
    in_a_stream: 12,
    in_a_call: 10,
    as_telegram_took_it: 2,
    as_discord_took_it: 8,
    in_an_interaction: 5,
    at_any_time: 7,
}
CRUEL = {
    at_start: 30,
    with_what_joins: 10,
    in_a_stream: 5,
    in_a_write: 5,
    in_a_long_call: 6,
    at_any_time: 4,
}
"""Kills after which nothing can recover before the next one comes."""


async def kill_often(
    folder: Path, kills: int, shares: Mapping[Callable[[random.Random], Plan], int] = SHARES
) -> Books:
    chance, cruel = random.Random(SEED), shares is CRUEL
    makers = [maker for maker, share in shares.items() for _ in range(share)]
    chance.shuffle(makers)
    async with open_stage(random.Random(SEED + 1)) as stage:
        killing = Kills(stage, folder, chance, recovers=0.0 if cruel else 0.5)
        stage.model.pauses = (0.2, 2.0) if cruel else None
        async with killing.lives.running():
            await killing.greet()
            for maker in makers[:kills]:
                await killing.round(maker(chance))
            await killing.finish()
        books = await close_books(killing)
    met = Counter(death.moment for death in books.deaths if death.met)
    said = Counter(one.kind for one in books.said)
    sys.stdout.write(
        f"met {dict(met)}, said {dict(said)}, {len(books.strays)} shown twice or half, "
        f"{len(books.lost)} died with their process\n"
    )
    return books


def check(books: Books, kills: int) -> None:
    assert len(books.deaths) == kills
    assert not [one for one in books.strays if one.place.platform == "discord"]
    unaimed = [one for one in books.strays if books.death_of(one).moment in UNAIMED]
    assert len(unaimed) < FEW, unaimed
    assert len(books.strays) < FEW + kills / 4, books.strays


@pytest.mark.slow
async def test_two_kills_between_two_platforms_cost_no_message(tmp_path: Path):
    """A few kills, for every run of the suite."""
    check(await kill_often(tmp_path, 2), 2)


@pytest.mark.slow
@pytest.mark.night
@pytest.mark.timeout(900)
async def test_a_hundred_kills_between_two_platforms_cost_no_message(tmp_path: Path):
    """Both platforms at once, killed at every kind of moment."""
    check(await kill_often(tmp_path, KILLS), KILLS)


@pytest.mark.slow
@pytest.mark.night
@pytest.mark.timeout(600)
async def test_kills_without_time_to_recover_cost_no_message_and_close_none(tmp_path: Path):
    """Sixty kills, half of them right after a start: each message gets its own answer at last."""
    kills = many(sum(CRUEL.values()))
    books = await kill_often(tmp_path, kills, CRUEL)
    check(books, kills)
    assert not [one for one in books.strays if books.death_of(one).stop]
    assert is_sample() or books.resumed > OFTEN, "no turn was interrupted often"
