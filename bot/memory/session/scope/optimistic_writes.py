"""Optimistic writes to a shared tape: read new entries, and append with compare-and-set."""

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
"""Longest random wait before the first retry, in seconds; it grows with each retry."""

T = TypeVar("T")


class TapeFold(Protocol):
    """State folded from a tape."""

    version: int
    """Id of the last entry applied."""

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry."""
        ...


async def catch_up(tape: TapeService, fold: TapeFold, last: int | None = None) -> None:
    """Apply a tape's entries that a fold has not seen.

    Args:
        tape: The tape.
        fold: State of the tape.
        last: The tape's version, if it is known.

    Raises:
        TapeNotFound: There is no such tape.
    """
    async with aclosing(read_batches(tape.store, tape.name, fold.version + 1, last)) as parts:
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
    """Append entries that depend on a fold's state; recompute them if somebody else wrote first.

    Args:
        tape: The tape; the fold observes its appends.
        fold: State of the tape.
        compose: Returns the entries and the result, given the tape's version, which is the fold's.
        reopen: Reads what others wrote.
        attempts: Most attempts.

    Raises:
        VersionConflict: Somebody else wrote first each time.
        TapeWriteError: The storage failed; nothing was written.
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
            await tape.append_composed(entries, seen=lambda: fold.version)
        except VersionConflict:
            if attempt == attempts - 1:
                raise
            # Random waits, so that each of many concurrent writers succeeds at some point.
            await anyio.sleep(random.uniform(0, _PAUSE * attempt))  # noqa: S311 (no secret)
            await reopen()
        else:
            return result[-1]
    raise AssertionError
