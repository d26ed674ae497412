"""Load the fold of a tape at its end or at any entry."""

from __future__ import annotations

from bot.core.errors import TapeNotFound
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import TapeEntry
from bot.tape.folding import FoldedTape, fold_tape
from bot.tape.service import TapeService

_NEAR = 64
"""Largest gap between two wanted entries that is read along."""


async def open_fold(tape: TapeService, last: int | None = None) -> FoldedTape[SessionFold]:
    """Fold a session's tape up to an entry, by default the newest, with the limits that each turn recorded.

    Raises:
        TapeNotFound: There is no such tape.
    """
    folded = await fold_tape(tape.store, tape.name, SessionFold, last, past=True)
    await load_resumed_entries(tape, folded.fold.window)
    return folded


async def load_fold(tape: TapeService, last: int | None = None) -> SessionFold:
    """Return the fold of a session's tape; see ``open_fold``."""
    return (await open_fold(tape, last)).fold


async def is_private_now(tape: TapeService) -> bool:
    """Return whether only private models may see the active problem; False for a tape that does not exist."""
    try:
        return (await load_fold(tape)).is_private
    except TapeNotFound:
        return False


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
