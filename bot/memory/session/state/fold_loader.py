"""Load the fold of a session's tape at its end or at any entry, reading little of the tape."""

from __future__ import annotations

from contextlib import aclosing

from bot.core.errors import TapeNotFound
from bot.memory.records.conversation_entries import TURN_END
from bot.memory.records.schedules import pointed_entries
from bot.memory.records.turn_marks import turn_start
from bot.memory.session.scope.scope_memory import load_fact_entries
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.session_fold import (
    POINTERS,
    SESSION_MARK_EVENT,
    Pointers,
    SessionFold,
)
from bot.tape.batches import read_batches
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService

_UNBOUNDED = 1 << 62
_NEAR = 64
"""Largest gap between two wanted entries that is read along."""


async def load_fold(tape: TapeService, *, max_messages: int, max_tokens: int) -> SessionFold:
    """Load the fold of a tape, from its last usable pointers or else from the start, with limits of its view."""
    fold, first = await _restored(tape, None, max_messages, max_tokens)
    async with aclosing(read_batches(tape.store, tape.name, first)) as parts:
        async for entries in parts:
            for entry in entries:
                fold.apply(entry)
    await load_resumed_entries(tape, fold.window)
    return fold


async def load_state(tape: TapeService) -> SessionFold:
    """Load the fold of a tape for all but its view, which is cut to the newest message."""
    return await load_fold(tape, max_messages=1, max_tokens=1)


async def fold_at(tape: TapeService, at: int) -> SessionFold:
    """Load the fold of a tape as it was after an entry, with the limits recorded by each turn.

    The cost is what lies between the previous turn and the entry, plus what was in view.

    Raises:
        TapeNotFound: There is no such tape.
    """
    fold, first = await _restored(tape, at + 1, _UNBOUNDED, _UNBOUNDED)
    async with aclosing(read_batches(tape.store, tape.name, first, at)) as parts:
        async for entries in parts:
            for entry in entries:
                if (start := turn_start(entry)) is not None:
                    _bound(fold.window, start.data.get("bounds"))
                fold.apply(entry)
    await load_resumed_entries(tape, fold.window)
    return fold


async def is_private_now(tape: TapeService) -> bool:
    """Return whether only private models may see the active problem; False for a tape that does not exist."""
    try:
        return (await load_state(tape)).is_private
    except TapeNotFound:
        return False


def _bound(window: WindowFold, bounds: object) -> None:
    if isinstance(bounds, list) and [type(bound) for bound in bounds] == [int, int]:
        window.max_messages, window.max_tokens = bounds


async def _restored(
    tape: TapeService, before: int | None, max_messages: int, max_tokens: int
) -> tuple[SessionFold, int]:
    """Return a fold restored from the last usable pointers, and the next id to apply."""
    pointers = await _last_pointers(tape, before)
    if pointers is not None:
        fold = SessionFold(WindowFold(max_messages, max_tokens))
        try:
            fold.restore(pointers, await _named(tape, pointers))
        except (KeyError, ValueError, TypeError, IndexError):
            # Pointers are only a shortcut: if they do not fit, the whole tape is folded.
            pass
        else:
            return fold, pointers.at + 1
    return SessionFold(WindowFold(max_messages, max_tokens)), 1


async def load_resumed_entries(tape: TapeService, window: WindowFold) -> None:
    """Read the entries that return to view with the active problem."""
    runs: list[list[int]] = []
    for other in sorted(window.resume_plan.ids):
        if runs and other - runs[-1][1] <= _NEAR:
            runs[-1][1] = other
        else:
            runs.append([other, other])
    entries: list[TapeEntry] = []
    for first, last in runs:
        entries += await tape.read_entries(first, last)
    window.add_resumed(entries)


async def _last_pointers(tape: TapeService, before: int | None) -> Pointers | None:
    async for entry in tape.read_back(before):
        if entry.name in (TURN_END, SESSION_MARK_EVENT) and "pointers" in entry.data:
            pointers = POINTERS.read(entry.data["pointers"])
            return pointers if pointers is not None and pointers.at < entry.id else None
    return None


async def _named(tape: TapeService, pointers: Pointers) -> dict[int, TapeEntry]:
    spans = [(first, last) for first, last in pointers.spans]
    if not spans:
        spans = [(pointers.window.reads_from, pointers.at)]
    spans += [(span[0], span[1]) for span in (pointers.zone, pointers.prompt_zone) if span]
    single = [
        *(pointers.boundary, pointers.last_consolidation, pointers.consolidation_failure),
        *(pointers.instructions, *pointers.calls, *pointed_entries(pointers.schedules)),
        *(entry for _, entry, _, _ in pointers.undelivered),
    ]
    spans += [(one, one) for one in single if one]
    # Only these may lie far back; the others are named one by one, or are close together.
    found = {entry.id: entry for entry in await load_fact_entries(tape, pointers.facts)}
    for first, last in spans:
        if not all(i in found for i in range(first, last + 1)):
            found |= {entry.id: entry for entry in await tape.read_entries(first, last)}
    return found
