"""Which message an edit is of, and what is to become of it."""

from __future__ import annotations

from dataclasses import dataclass

from bot.bus import Inbound
from bot.memory.conversation_entries import is_overheard, replaced_entry_id
from bot.memory.session_fold import SessionFold
from bot.memory.turn_fold import COMMAND
from bot.tape.entries import TapeEntry
from bot.tape.search import problem_of
from bot.tape.service import TapeService

_SCANNED = 5_000


@dataclass(frozen=True, slots=True)
class EditTarget:
    """A message that an edit names and the tape holds.

    Attributes:
        original: Its entry where it is not answered yet; None where it is.
        running: The turn that answers it runs.
        elsewhere: Its entry where that belongs to another problem than the one that is worked on.
    """

    original: TapeEntry | None
    running: bool = False
    elsewhere: TapeEntry | None = None


async def find_edit_target(
    tape: TapeService, fold: SessionFold, inbound: Inbound
) -> EditTarget | None:
    """Return what an edit is of; None where the message is to be taken as a new one.

    That is one which the tape does not hold, since it was not for the bot before, and one that was
    only overheard and now asks for an answer.

    Args:
        tape: The session's.
        fold: Its state.
        inbound: The edit.
    """
    window, turns = fold.window, fold.turns
    near = [*window.entries, *window.queued.values()]
    original = next((entry for entry in near if _is(entry, inbound.edits)), None)
    if original is None:
        return await _long_ago(tape, fold, inbound.edits)
    if is_overheard(original):
        return None if inbound.expects_answer else EditTarget(None)
    if not is_unanswered(fold, original):
        return EditTarget(None)
    running = (
        turns.open_turn is not None and original.meta.get("inbound") in turns.open_turn.inbound
    )
    return EditTarget(original, running)


def is_unanswered(fold: SessionFold, message: TapeEntry) -> bool:
    """Return whether a message's turn has not ended, or not begun."""
    turns, inbound = fold.turns, message.meta.get("inbound")
    running = turns.open_turn is not None and inbound in turns.open_turn.inbound
    return running or inbound in turns.unanswered


async def _long_ago(
    tape: TapeService, fold: SessionFold, platform_id: str | None
) -> EditTarget | None:
    scanned = 0
    async for entry in tape.read_back():
        scanned += 1
        if _is(entry, platform_id):
            other = problem_of(entry) != fold.problem
            return EditTarget(None, elsewhere=entry if other else None)
        if scanned == _SCANNED:
            # So old that nobody waits for an answer to it.
            return EditTarget(None)
    return None


def _is(entry: TapeEntry, platform_id: str | None) -> bool:
    """Return whether an entry is what the platform knows by this id, or the first edit of it."""
    said = entry.kind == "message" and replaced_entry_id(entry) is None
    if entry.meta.get("inbound") == platform_id:
        return said or entry.name == COMMAND
    return said and not is_overheard(entry) and entry.meta.get("edits") == platform_id
