"""Folds that several may write the tape of: reading what is new, and writing by compare-and-set."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Protocol, TypeVar

import anyio

from bot.core.errors import VersionConflict
from bot.tape.batches import read_batches
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService

MAX_ATTEMPTS = 12

_PAUSE = 0.01
"""Seconds that the first repeated try waits at most; each waits longer."""

T = TypeVar("T")


class TapeFold(Protocol):
    """The state of a tape."""

    version: int
    """Id of the last entry applied."""

    def apply(self, entry: TapeEntry) -> None:
        """Take one entry in."""
        ...


async def catch_up(tape: TapeService, fold: TapeFold) -> None:
    """Take in what is on a tape and a fold does not know.

    Raises:
        TapeNotFound: There is no such tape.
    """
    async with aclosing(read_batches(tape.store, tape.name, fold.version + 1)) as parts:
        async for entries in parts:
            for entry in entries:
                if entry.id > fold.version:
                    fold.apply(entry)


async def append_with_retry(
    tape: TapeService,
    fold: TapeFold,
    compose: Callable[[int], tuple[list[TapeEntry], T]],
    reopen: Callable[[], Awaitable[None]],
    *,
    attempts: int = MAX_ATTEMPTS,
) -> T:
    """Append entries that depend on a fold's state, decided on again where somebody else wrote.

    Args:
        tape: Shows the fold what it appends.
        fold: Its state.
        compose: Given the tape's version, which is the fold's, returns the entries and the result.
        reopen: Takes in what somebody else wrote.
        attempts: How often it is tried.

    Raises:
        VersionConflict: Somebody else wrote each time.
        TapeWriteError: The storage refused; nothing was written.
    """
    for attempt in range(attempts):
        result: list[T] = []

        def entries(version: int, result: list[T] = result) -> list[TapeEntry]:
            if version != fold.version:
                raise VersionConflict(tape.name, expected=fold.version, actual=version)
            made, outcome = compose(version)
            result.append(outcome)
            return made

        try:
            await tape.append_composed(entries)
        except VersionConflict:
            if attempt == attempts - 1:
                raise
            # Of many that try at once each must come through some time.
            await anyio.sleep(random.uniform(0, _PAUSE * attempt))  # noqa: S311 (no secret)
            await reopen()
        else:
            return result[-1]
    raise AssertionError
