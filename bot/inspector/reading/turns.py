"""Turns of a conversation: pages of them, and what stands before and behind one."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass

from bot.agent.turn_history import PastTurn, ScanPosition, past_turns, turn_id_of
from bot.memory.conversation_entries import TURN_START
from bot.tape.batches import read_batches
from bot.tape.service import TapeService

MAX_ENTRIES_PER_PAGE = 20_000
"""Entries that are read at most for a page of turns."""

FOUND_WITHIN = 100_000
"""Entries among which a turn is looked for by its id; links say near which entry it is."""

_AHEAD = 2_000
"""Entries behind a turn among which the next one is looked for."""


@dataclass(frozen=True, slots=True)
class TurnPage:
    """Some turns, the newest first.

    Attributes:
        turns: Them.
        older: What to give as ``before`` for those that follow; None where there are none.
    """

    turns: tuple[PastTurn, ...]
    older: int | None


async def turn_page(tape: TapeService, before: int | None, limit: int) -> TurnPage:
    """Return the newest turns, of those that began before an entry where one is given.

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
    # Where there is much between two turns, what was not read yet may hold more of them; the next page
    # begins with a turn of which only the end was read here.
    whole = reach.unfinished_turn_entry + 1
    return TurnPage(tuple(found), (whole if 1 < whole < end else reach.at) or None)


TurnLink = tuple[str, int]
"""A turn's id, and an entry of it."""


async def neighbours(tape: TapeService, turn: PastTurn) -> tuple[TurnLink | None, TurnLink | None]:
    """Return where the turns before and behind a turn are, if they are near."""
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
