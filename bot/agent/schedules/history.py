"""Read what was due in a conversation, from its tape."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime

from bot.core.clock import parse_time
from bot.memory.records.schedules import SCHEDULE_FIRED
from bot.memory.session.state.turn_fold import DELIVERY
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService

_MOST_READ = 20_000
_MOST = 50


@dataclass(frozen=True, slots=True)
class PastFiring:
    """An occurrence on the tape.

    Attributes:
        entry: Id of its event.
        schedule: The schedule's id.
        number: The schedule's number.
        instant: The instant that it was for.
        status: How it went; ``undelivered`` if the platform refused it for good.
        missed: How many earlier ones it stands for.
        recorded: When it was recorded; None if unknown.
        error: Why it was not delivered, as recorded; None if it was.
    """

    entry: int
    schedule: str
    number: int
    instant: datetime
    status: str
    missed: int
    recorded: datetime | None
    error: object = None


async def read_firings(tape: TapeService, limit: int = _MOST) -> AsyncIterator[PastFiring]:
    """Yield what was due, newest first; only so much of a long tape is read."""
    read = found = 0
    refused: dict[str, object] = {}
    async with aclosing(tape.read_back()) as entries:
        async for entry in entries:
            read += 1
            if entry.name == DELIVERY and entry.data.get("delivered") is False:
                refused[str(entry.data.get("turn"))] = entry.data.get("error")
            if (firing := parse_firing(entry)) is not None:
                found += 1
                turn = str(entry.data.get("turn"))
                if turn in refused:
                    firing = replace(firing, status="undelivered", error=refused[turn])
                yield firing
            if found >= limit or read >= _MOST_READ:
                return


def parse_firing(entry: TapeEntry) -> PastFiring | None:
    """Return the occurrence that an entry records; None if it records none."""
    if entry.name != SCHEDULE_FIRED:
        return None
    data = entry.data
    instant, number, missed = (
        parse_time(data.get("instant")),
        data.get("number"),
        data.get("missed"),
    )
    if instant is None:
        return None
    return PastFiring(
        entry.id,
        str(data.get("schedule")),
        number if type(number) is int else 0,
        instant,
        str(data.get("status")),
        missed if type(missed) is int else 0,
        parse_time(entry.meta.get("ts")),
    )
