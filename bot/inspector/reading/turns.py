"""Page through a conversation's turns, and find the neighbours of one."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass

from bot.agent.turn_history import PastTurn, ScanPosition, past_turns, turn_id_of
from bot.memory.records.conversation_entries import TURN_START
from bot.tape.batches import read_batches
from bot.tape.service import TapeService

MAX_ENTRIES_PER_PAGE = 20_000
"""The most entries that are read for a page of turns."""

FOUND_WITHIN = 100_000
"""Entries that are searched for a turn by its id; links name an entry near it."""

_AHEAD = 2_000
"""Entries that are searched for the turns before and after one."""


@dataclass(frozen=True, slots=True)
class TurnPage:
    """A page of turns, newest first.

    Attributes:
        turns: The page's turns.
        older: Value of ``before`` for the next page; None at the end.
    """

    turns: tuple[PastTurn, ...]
    older: int | None


async def turn_page(tape: TapeService, before: int | None, limit: int) -> TurnPage:
    """Return the newest turns, or the newest that began before an entry.

    Raises:
        TapeNotFound: There is no such tape.
    """
    end = await tape.version() + 1
    end = end if before is None else min(before, end)
    found: list[PastTurn] = []
    reach = ScanPosition()
    async with aclosing(past_turns(tape, end, scanned=MAX_ENTRIES_PER_PAGE, reach=reach)) as turns:
        async for turn in turns:
            found.append(turn)
            if len(found) > limit:
                break
    if len(found) > limit:
        return TurnPage(tuple(found[:limit]), found[limit - 1].first)
    # The scan limit was reached, so older turns may exist. The next page begins with the turn of
    # which only the end was read here.
    whole = reach.unfinished_turn_entry + 1
    return TurnPage(tuple(found), (whole if 1 < whole < end else reach.at) or None)


TurnLink = tuple[str, int]
"""A turn's id, and the id of one of its entries."""


async def neighbours(tape: TapeService, turn: PastTurn) -> tuple[TurnLink | None, TurnLink | None]:
    """Return links to the turns before and after a turn, if they are near."""
    before = None
    async with aclosing(past_turns(tape, turn.first, scanned=_AHEAD)) as turns:
        async for one in turns:
            before = one.id, one.last
            break
    last = min(await tape.version(), turn.last + _AHEAD)
    async with aclosing(read_batches(tape.store, tape.name, turn.last + 1, last)) as parts:
        async for entries in parts:
            for entry in entries:
                behind = turn_id_of(entry) if entry.name == TURN_START else None
                if behind not in (None, turn.id):
                    return before, (str(behind), entry.id)
    return before, None
