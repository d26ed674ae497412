"""Find the message that an edit replaces, and decide how to record the edit."""

from __future__ import annotations

from dataclasses import dataclass

from bot.bus import Inbound
from bot.memory.records.conversation_entries import is_overheard, replaced_entry_id
from bot.memory.records.event_names import (
    COMMAND,
)
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import TapeEntry
from bot.tape.search import problem_of
from bot.tape.service import TapeService

_SCANNED = 5_000


@dataclass(frozen=True, slots=True)
class EditTarget:
    """A message on the tape that an edit names.

    Attributes:
        original: The message's entry while it is unanswered; None once it is answered.
        running: Whether the turn that answers it runs.
        elsewhere: The message's entry, if it belongs to another problem than the current one.
    """

    original: TapeEntry | None
    running: bool = False
    elsewhere: TapeEntry | None = None


async def find_edit_target(
    tape: TapeService, fold: SessionFold, inbound: Inbound
) -> EditTarget | None:
    """Return the message that an edit names; None if the edit is to be handled as a new message.

    That is so if the tape does not hold the message, because it was not for the bot, and if an
    overheard message now asks for an answer.

    Args:
        tape: The session's tape.
        fold: The session's state.
        inbound: The edit.
    """
    window, turns = fold.window, fold.turns
    near = [*window.entries, *window.queued.values()]
    original = next((entry for entry in near if _is(entry, inbound.edited_message_id)), None)
    if original is None:
        return await _long_ago(tape, fold, inbound.edited_message_id)
    if is_overheard(original):
        return None if inbound.expects_answer else EditTarget(None)
    if not is_unanswered(fold, original):
        return EditTarget(None)
    running = (
        turns.open_turn is not None and original.meta.get("inbound") in turns.open_turn.inbound
    )
    return EditTarget(original, running)


def is_unanswered(fold: SessionFold, message: TapeEntry) -> bool:
    """Return whether a message's turn has not ended or not begun."""
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
        if scanned >= _SCANNED and not fold.compartments.has_private_problem:
            # Too old to be answered; but the edit of a private problem's message belongs there.
            return EditTarget(None)
    return None


def _is(entry: TapeEntry, platform_id: str | None) -> bool:
    """Return whether an entry is the message with this platform id, or its first edit."""
    said = entry.kind == "message" and replaced_entry_id(entry) is None
    if entry.meta.get("inbound") == platform_id:
        return said or entry.name == COMMAND
    return said and not is_overheard(entry) and entry.meta.get("edits") == platform_id
