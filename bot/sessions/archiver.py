"""``/new``: consolidate what is left, seal the tape's live part, hand off.

The seal, the carried-over zone, the boundary, the reply and the end of the command are one atomic
step of the store. Before it everything is as it was, and repeating the command goes on from there;
after it the command is done.
"""

from __future__ import annotations

from typing import Any

from bot.bus import Inbound
from bot.clock import iso
from bot.commands.parser import ParsedCommand
from bot.memory.fold import SessionFold
from bot.memory.snapshot import zone_entries
from bot.memory.transcript import transcript
from bot.memory.zone import MemoryZone
from bot.sessions.records import command_end, command_entry
from bot.tape.entries import SESSION_NEW, anchor
from bot.tape.service import TapeService

STARTED = "New session started."
FAILED = "Memory archival failed, session not cleared. Please try again."

_QUOTED_LINES = 6
_QUOTED_LENGTH = 200


async def hand_off(
    tape: TapeService,
    fold: SessionFold,
    zone: MemoryZone,
    *,
    inbound: Inbound,
    parsed: ParsedCommand,
    turn: str,
    timezone: str,
    consolidated: bool,
) -> None:
    """Archive the tape and begin the next phase.

    Args:
        tape: The session's.
        fold: Its state.
        zone: Its memory, carried over.
        inbound: The command's message.
        parsed: The command.
        turn: Id of the command's turn.
        timezone: The user's.
        consolidated: All has been consolidated; else the rest is done later.
    """
    state: dict[str, Any] = {
        "summary": await _summary(tape, fold, consolidated=consolidated),
        "next_steps": [],
        "source": [fold.boundary.id if fold.boundary else 1, fold.version],
        "owner": "human",
        "reason": "/new" if consolidated else "/new now",
    }
    await tape.archive(
        [
            *zone_entries(zone.read(), iso(zone.now())),
            anchor(SESSION_NEW, state),
            command_entry(inbound, parsed, timezone),
            *command_end(turn, inbound, STARTED, fold),
        ]
    )


async def _summary(tape: TapeService, fold: SessionFold, *, consolidated: bool) -> str:
    """Return the newest history entry, or, where nothing was consolidated, the last words."""
    if consolidated:
        history = fold.consolidated.data.get("history") if fold.consolidated else None
        if type(history) is not int:
            return "Nothing was said before."
        found = await tape.read_entries(history, history)
        return str(found[0].data.get("entry", "")) if found else ""
    spoken = [entry for entry in fold.window.entries if entry.kind == "message"]
    lines = [line[:_QUOTED_LENGTH] for line in transcript(spoken[-_QUOTED_LINES:])]
    return "Not consolidated yet. The last words were:\n" + "\n".join(lines) if lines else ""
