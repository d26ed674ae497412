"""Folds a tape from its tail: costs what is new since the last turn, not what is old."""

from __future__ import annotations

from contextlib import aclosing

from pydantic import ValidationError

from bot.memory.fold import SESSION_MARK, Pointers, SessionFold
from bot.memory.scope import last_facts
from bot.memory.spoken import TURN_END
from bot.memory.window import WindowFold
from bot.tape.entries import TapeEntry
from bot.tape.portions import portions
from bot.tape.service import TapeService

_NEAR = 64
"""Entries between two that are wanted which are rather read along than skipped."""


async def load_fold(tape: TapeService, *, max_messages: int, max_tokens: int) -> SessionFold:
    """Return the fold of a tape; from its last usable pointers on, else from its first entry.

    Args:
        tape: The tape.
        max_messages: Bound on messages in view.
        max_tokens: Bound on their tokens.
    """
    pointers = await _last_pointers(tape)
    if pointers is not None:
        fold = SessionFold(WindowFold(max_messages, max_tokens))
        try:
            fold.restore(pointers, await _named(tape, pointers))
        except (KeyError, ValueError, TypeError, IndexError):
            # Pointers are a shortcut; a tape on which they do not hold is folded whole.
            pass
        else:
            await _apply_from(tape, fold, pointers.at + 1)
            await supply(tape, fold.window)
            return fold
    fold = SessionFold(WindowFold(max_messages, max_tokens))
    await _apply_from(tape, fold, 1)
    await supply(tape, fold.window)
    return fold


async def supply(tape: TapeService, window: WindowFold) -> None:
    """Read what came back into view with the problem that is worked on."""
    runs: list[list[int]] = []
    for one in sorted(window.returning.ids):
        if runs and one - runs[-1][1] <= _NEAR:
            runs[-1][1] = one
        else:
            runs.append([one, one])
    found: list[TapeEntry] = []
    for first, last in runs:
        found += await tape.read_entries(first, last)
    window.supply(found)


async def _last_pointers(tape: TapeService) -> Pointers | None:
    async for entry in tape.read_back():
        if entry.name in (TURN_END, SESSION_MARK) and "pointers" in entry.data:
            try:
                pointers = Pointers.model_validate(entry.data["pointers"])
            except ValidationError:
                return None
            return pointers if pointers.at < entry.id else None
    return None


async def _named(tape: TapeService, pointers: Pointers) -> dict[int, TapeEntry]:
    spans = [(first, last) for first, last in pointers.spans]
    if not spans:
        spans = [(pointers.window[1], pointers.at)]
    spans += [(span[0], span[1]) for span in (pointers.zone, pointers.frozen) if span]
    single = (pointers.boundary, pointers.consolidated, pointers.failure)
    spans += [(one, one) for one in single if one]
    spans += [(entry, entry) for _, entry, _, _ in pointers.undelivered]
    # These alone may lie long before; the others are named one by one, or are close together.
    found = {entry.id: entry for entry in await last_facts(tape, pointers.facts)}
    for first, last in spans:
        if not all(i in found for i in range(first, last + 1)):
            found |= {entry.id: entry for entry in await tape.read_entries(first, last)}
    return found


async def _apply_from(tape: TapeService, fold: SessionFold, first: int) -> None:
    async with aclosing(portions(tape.store, tape.name, first)) as parts:
        async for entries in parts:
            for entry in entries:
                fold.apply(entry)
