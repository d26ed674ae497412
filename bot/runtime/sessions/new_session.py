"""``/new``: consolidate what is left, seal the tape's live part, hand off.

The seal, the carried-over zone, the boundary, the reply and the end of the command are one atomic
append. Before it nothing has changed, and a repeated command starts over; after it the command is
done.
"""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from bot.agent.commands.parser import ParsedCommand
from bot.bus import Inbound
from bot.core.clock import format_time
from bot.memory.records.event_names import (
    HISTORY_EVENT,
)
from bot.memory.records.transcript import render_transcript
from bot.memory.session.view.session_fold import SessionFold
from bot.memory.session.view.zone import MemoryZone
from bot.memory.session.view.zone_snapshot import (
    zone_entries,
)
from bot.runtime.sessions.entries import command_end_entries, command_entry
from bot.tape.entries import SESSION_NEW, TapeEntry, anchor
from bot.tape.search import problem_of
from bot.tape.service import TapeService

STARTED = "New session started."
FAILED = "Memory archival failed, session not cleared. Please try again."

_QUOTED_LINES = 6
_QUOTED_LENGTH = 200
_MAX_SUMMARY = 3_000


async def hand_off(
    tape: TapeService,
    fold: SessionFold,
    zone: MemoryZone,
    *,
    inbound: Inbound,
    parsed: ParsedCommand,
    turn: str,
    timezone: tzinfo,
    timezone_name: str,
    consolidated: bool,
) -> None:
    """Seal the live part of the tape and start the next phase.

    Args:
        tape: The session's tape.
        fold: The session's state.
        zone: The memory zone, which is carried over.
        inbound: The command's message.
        parsed: The command.
        turn: Id of the command's turn.
        timezone: The user's.
        timezone_name: The user's, by name.
        consolidated: Whether everything is consolidated; the rest is consolidated later.
    """
    summary = await _summary(tape, fold, timezone, consolidated=consolidated)

    def carry(version: int) -> list[TapeEntry]:
        state: dict[str, Any] = {
            "summary": summary,
            "next_steps": [],
            "source": [_phase_start(fold), version],
            "owner": "human",
            "reason": "/new" if consolidated else "/new now",
        }
        return [
            *zone_entries(zone.read(), format_time(zone.now())),
            anchor(SESSION_NEW, state),
            command_entry(inbound, parsed, timezone_name),
            *command_end_entries(turn, inbound, STARTED, fold),
        ]

    await tape.archive_composed(carry)


def _phase_start(fold: SessionFold) -> int:
    return fold.boundary.id if fold.boundary else 1


async def _summary(
    tape: TapeService, fold: SessionFold, timezone: tzinfo, *, consolidated: bool
) -> str:
    """Return this phase's history entries, or the last messages if it is not consolidated.

    It covers only the current problem.
    """
    if consolidated:
        return await _history(tape, _phase_start(fold), fold.problem) or "Nothing was said before."
    spoken = [entry for entry in fold.window.conversation() if entry.kind == "message"]
    lines = [line[:_QUOTED_LENGTH] for line in render_transcript(spoken[-_QUOTED_LINES:], timezone)]
    return "Not consolidated yet. The last words were:\n" + "\n".join(lines) if lines else ""


async def _history(tape: TapeService, since: int, problem: str) -> str:
    """Return a problem's newest history entries after an id that fit, oldest first."""
    found: list[str] = []
    room = _MAX_SUMMARY
    async for entry in tape.read_back():
        if entry.id <= since:
            break
        told = entry.kind == "event" and entry.name == HISTORY_EVENT
        if told and problem_of(entry) == problem:
            text = str(entry.data.get("entry", ""))
            if found and len(text) > room:
                break
            found.append(text[:_MAX_SUMMARY])
            room -= len(text)
    return "\n".join(reversed(found))
