"""Find the message that an edit replaces, and decide how to record the edit."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace

from bot.bus import Bus, Inbound
from bot.core.errors import BusError
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


async def find_edited(tape: TapeService, fold: SessionFold, inbound: Inbound) -> FoundEdit:
    """Look for the message that an edit names, in one pass over the newest entries."""
    scanned, edit = 0, inbound
    async with aclosing(tape.read_back()) as entries:
        async for entry in entries:
            if edit is inbound:
                edit = _whole_edit(entry, inbound)
            if _is(entry, edit.edited_message_id):
                return FoundEdit(edit, entry)
            scanned += 1
            # The edit of a private problem's message belongs there, however old it is.
            if scanned >= _SCANNED and not fold.compartments.has_private_problem:
                return FoundEdit(edit, is_lost=True)
    return FoundEdit(edit)


def _whole_edit(entry: TapeEntry, inbound: Inbound) -> Inbound:
    """Return the edit of one of several messages that make an entry as an edit of that one."""
    parts: Sequence[tuple[str, int, int]] = entry.meta.get("parts") or ()
    place = next((n for n, part in enumerate(parts) if part[0] == inbound.edited_message_id), -1)
    if place < 0:
        return inbound
    edit = replace(inbound, edited_message_id=parts[0][0])
    text = str(entry.payload.get("content") or "")
    # Erasure may have changed the text.
    return _spliced(edit, text, parts, place) if parts[-1][2] == len(text) else edit


def _spliced(
    edit: Inbound, text: str, parts: Sequence[tuple[str, int, int]], place: int
) -> Inbound:
    """Return an edit with the whole text, in which the edit's own replaces that of a part."""
    part, start, end = parts[place]
    before, after = text[:start], text[end:]
    if start == end:
        # Nothing parts a text that was empty from the others yet.
        before += "\n" if before else ""
        after = f"\n{after}" if after and not after.startswith("\n") else after
    whole = before + edit.text + after
    longer = len(whole) - len(text)
    own = (part, len(before), len(before) + len(edit.text))
    moved = [(one, begin + longer, stop + longer) for one, begin, stop in parts[place + 1 :]]
    kept = [(one, begin, stop) for one, begin, stop in parts[:place]]
    return replace(edit, text=whole, parts=(*kept, own, *moved))


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
        # Too old to be answered.
        return EditTarget(None) if found.is_lost and inbound.expects_answer else None
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


async def purge_dropped(bus: Bus) -> None:
    """Remove from the disk the words of edits that change nothing, once they are acknowledged.

    It rewrites the inbox of all chats: so not after each, but when there is nothing else to do.
    """
    with suppress(BusError):  # the next message tries again
        await bus.purge()


def _is(entry: TapeEntry, platform_id: str | None) -> bool:
    """Return whether an entry is the message with this platform id, or its first edit."""
    said = entry.kind == "message" and replaced_entry_id(entry) is None
    if entry.meta.get("inbound") == platform_id:
        return said or entry.name == COMMAND
    return said and not is_overheard(entry) and entry.meta.get("edits") == platform_id
