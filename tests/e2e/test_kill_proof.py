"""More than two hundred kills, and nothing that was acknowledged is lost."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from kill_harness import Kill, Platform, always, ask, keep, kill_often, lines, state, then
from sampling import is_sample, many

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

KILLS = many(20)
WINDOW = {"TAPEBOT_MEMORY_WINDOW": "10"}

undo = always("/memory undo")
look = always("/memory", "/status", "/help", "/memory history")


def in_a_write(chance: random.Random) -> Kill:
    return Kill(calls=chance.randrange(1, 40), part=chance.random())


def in_a_turn(chance: random.Random) -> Kill:
    event = chance.choice(["model", "turn", "activity", "answer", "ack"])
    return Kill(event=event, times=chance.randrange(1, 5), after=0.6)


def in_consolidation(chance: random.Random) -> Kill:
    if chance.random() < 0.6:
        return Kill(event="consolidation", after=0.6)
    return Kill(calls=chance.randrange(5, 60), part=chance.random(), after=0.6)


def in_new(chance: random.Random) -> Kill:
    """As it consolidates, at any write, or between the steps of putting the new file in place."""
    moment = chance.choice(["consolidation", "write", "write", "place"])
    if moment == "consolidation":
        return Kill(event="consolidation", after=0.6)
    if moment == "place":
        return Kill(calls=1, more={"only": chance.choice(["link", "replace"])}, after=0.6)
    return Kill(calls=chance.randrange(1, 30), part=chance.random(), after=0.6)


@pytest.mark.parametrize("seed", [11, 12, 13])
async def test_a_kill_within_a_write_tears_nothing_that_was_acknowledged(tmp_path: Path, seed: int):
    """Journal, tape and memory zone, each cut off in the middle of a line."""
    platform = Platform(tmp_path, seed)
    found = await kill_often(platform, KILLS, in_a_write, lines(state, keep, ask, keep, undo, look))
    assert is_sample() or found["resumed turns"]


@pytest.mark.parametrize("seed", [31, 32])
async def test_a_kill_between_the_steps_of_a_turn_answers_each_message_once(
    tmp_path: Path, seed: int
):
    """Bursts join the running turn; it is taken up again, its finished calls are not repeated."""
    platform = Platform(tmp_path, seed, stall=0.03)
    found = await kill_often(platform, KILLS, in_a_turn, lines(state, keep, ask, look))
    assert is_sample() or found["resumed turns"]


@pytest.mark.parametrize("seed", [51, 52])
async def test_a_kill_during_consolidation_loses_no_memory(tmp_path: Path, seed: int):
    """It runs beside the turns, and its outcome is on the tape whole or not at all."""
    platform = Platform(tmp_path, seed, WINDOW, stall=0.03)
    found = await kill_often(platform, KILLS, in_consolidation, lines(state, keep, state, ask))
    assert is_sample() or found["consolidations"]


@pytest.mark.parametrize("seed", [61, 62])
async def test_a_kill_during_new_leaves_the_old_session_or_the_new_one(tmp_path: Path, seed: int):
    """Memory is carried over whole, and what was not consolidated is consolidated later."""
    platform = Platform(tmp_path, seed, WINDOW, stall=0.02)
    script = then(lines(state, keep, ask), ["/new", "/new", "/new now"])
    found = await kill_often(platform, KILLS, in_new, script)
    assert is_sample() or found["new sessions"]
