"""Find the message that an edit replaces, and decide how to record the edit."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from bot.bus import Inbound, join_parts
from bot.memory.records.conversation_entries import is_overheard, replaced_entry_id
from bot.memory.records.event_names import COMMAND
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
        command: The entry, if it is a command.
    """

    original: TapeEntry | None
    running: bool = False
    elsewhere: TapeEntry | None = None
    command: TapeEntry | None = None


@dataclass(frozen=True, slots=True)
class FoundEdit:
    """An edit, and what the tape holds of its message.

    Attributes:
        inbound: The edit; of one of several messages that make one, as an edit of that one.
        entry: The message's entry; None if none was found.
        is_lost: Whether the tape may hold the message before what was looked at.
    """

    inbound: Inbound
    entry: TapeEntry | None = None
    is_lost: bool = False


async def find_edited(tape: TapeService, inbound: Inbound) -> FoundEdit:
    """Look for the message that an edit names, in one pass over the newest entries."""
    scanned, edit = 0, inbound
    async with aclosing(tape.read_back()) as entries:
        async for entry in entries:
            if edit is inbound:
                edit = _whole_edit(entry, inbound)
            if _is(entry, edit.edited_message_id):
                return FoundEdit(edit, entry)
            scanned += 1
            if scanned >= _SCANNED:
                return FoundEdit(edit, is_lost=True)
    return FoundEdit(edit)


def _whole_edit(entry: TapeEntry, inbound: Inbound) -> Inbound:
    """Return the edit of one of several messages that make an entry as an edit of that one."""
    parts: Sequence[tuple[str, int, int]] = entry.meta.get("parts") or ()
    if inbound.edited_message_id not in [part for part, _, _ in parts]:
        return inbound
    quote = inbound.quote or entry.meta.get("quote")
    edit = replace(inbound, edited_message_id=parts[0][0], quote=quote)
    text = str(entry.payload.get("content") or "")
    if parts[-1][2] != len(text):
        return edit  # erasure has changed the text
    said = {part: text[start:end] for part, start, end in parts}
    whole, places = join_parts((said | {inbound.edited_message_id: inbound.text}).items())
    return replace(edit, text=whole, parts=places)


def edit_target(fold: SessionFold, found: FoundEdit) -> EditTarget | None:
    """Return the message that an edit names; None if the edit is to be handled as a new message.

    That is so if the tape does not hold the message, because it was not for the bot, and if an
    overheard message now asks for an answer. A silent edit is then to be dropped.
    """
    window, turns, inbound = fold.window, fold.turns, found.inbound
    near = [*window.entries, *window.queued.values()]
    original = next((entry for entry in near if _is(entry, inbound.edited_message_id)), None)
    if original is None and (old := found.entry) is not None:
        other = problem_of(old) != fold.problem
        command = old if old.name == COMMAND else None
        return EditTarget(None, elsewhere=old if other else None, command=command)
    if original is None:
        return None
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


def is_silent_edit(inbound: Inbound) -> bool:
    """Say whether a message is an edit that matters only if the tape holds what it changes."""
    return inbound.edited_message_id is not None and not inbound.expects_answer


def _is(entry: TapeEntry, platform_id: str | None) -> bool:
    """Return whether an entry is the message with this platform id, or its first edit."""
    said = entry.kind == "message" and replaced_entry_id(entry) is None
    if entry.meta.get("inbound") == platform_id:
        return said or entry.name == COMMAND
    return said and not is_overheard(entry) and entry.meta.get("edits") == platform_id
