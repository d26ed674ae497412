"""How much of the long proofs is run: all of it in the night, a sample in each other run."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")

SAMPLE = "TESTS_SAMPLE"
"""Holds the seed of the sample; unset where everything is run."""


def is_sample() -> bool:
    """Say whether only a sample is run."""
    return SAMPLE in os.environ


def many(whole: int) -> int:
    """Return how often a long proof repeats itself: all the times, or about the square root in a sample."""
    return math.isqrt(whole - 1) + 1 if is_sample() else whole


def examples(whole: int) -> int:
    """Return how many examples of a property are tried: all in the night, a quarter by day."""
    return whole if settings.get_current_profile_name() == "night" else -(-whole // 4)


def left_out(families: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the ids that the sample leaves out: about the square root of each family's stay."""
    left: set[str] = set()
    for family, ids in families.items() if is_sample() else ():
        chance = random.Random(f"{os.environ[SAMPLE]} {family}")
        left |= set(ids) - set(chance.sample(sorted(ids), many(len(ids))))
    return left


def some(whole: Sequence[T], apart: str = "") -> list[T]:
    """Return all of them, or in a sample about the square root of their number, in their order.

    Args:
        whole: What is chosen from.
        apart: Says for what it is chosen: for each, others of the same are.
    """
    chance = random.Random(os.environ.get(SAMPLE, "") + apart)
    return [whole[at] for at in sorted(chance.sample(range(len(whole)), many(len(whole))))]
