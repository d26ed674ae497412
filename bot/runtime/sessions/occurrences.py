"""Do what a session's schedules say when they are due.

Rule 1: the session's tape decides whether an occurrence is due; what the bus delivers is only a
    hint. An occurrence that finds nothing due is acknowledged without a word.
Rule 2: the due tape gets the next instant first. Then the occurrence, what is told, and the
    acknowledgement are one append: after a kill it is either done or still to do.
Rule 3: no occurrence starts a consolidation, and nothing is learned from it.
Rule 4: a reminder is told beside a running turn, which may change it meanwhile: then it is decided again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from bot.agent.schedules.due_tape import parse_occurrence_id, write_due
from bot.agent.schedules.firing import LATE, Firing, decide_firing, firing_buttons, firing_text
from bot.agent.schedules.task_turn import schedule_cause
from bot.agent.turn import Turn
from bot.bus import Address, Button, Inbound, ReceivedMessage
from bot.core.i18n import N_, _
from bot.core.ids import new_id
from bot.memory.records.conversation_entries import REMINDED
from bot.memory.records.schedules import Schedule
from bot.runtime.sessions.entries import answer_end_entries
from bot.runtime.sessions.session import Session
from bot.runtime.sessions.turn_runner import TurnRunner
from bot.runtime.sessions.writer import SessionWriter
from bot.tape.entries import TapeEntry

logger = logging.getLogger(__name__)

_PAUSED = {
    "reminder": N_(
        "Reminder {number} failed more than once, so I paused it. My log says why. "
        "`/schedules resume {number}` starts it again."
    ),
    "task": N_(
        "Task {number} failed more than once, so I paused it. My log says why. "
        "`/schedules resume {number}` starts it again."
    ),
}


def is_occurrence(inbound: Inbound) -> bool:
    """Say whether a message is the occurrence of a schedule."""
    return inbound.cause.kind == "schedule"


class _Changed(Exception):
    """A running turn changed the schedule after it was decided what is due."""


class Occurrences:
    """Fires the schedules of one session.

    Args:
        session: The session.
        writer: Writes its tape.
        turns: Runs its turns.
    """

    def __init__(self, session: Session, writer: SessionWriter, turns: TurnRunner) -> None:
        self._session = session
        self._fold = session.fold
        self._writer = writer
        self._turns = turns

    def is_reminder(self, inbound: Inbound) -> bool:
        """Return whether an occurrence needs no model."""
        parsed = parse_occurrence_id(inbound.id)
        known = None if parsed is None else self._fold.schedules.live.get(parsed[0])
        return known is None or known.kind == "reminder"

    async def fire(self, delivery: ReceivedMessage) -> Turn | None:
        """Do what is due.

        Returns:
            The turn of a task, which the caller runs; None if there is nothing left to do.
        """
        parsed = parse_occurrence_id(delivery.inbound.id)
        if parsed is None:
            await self._writer.acknowledge(delivery)
            return None
        schedule_id, instant = parsed
        # The clock of the process that noticed it may be ahead of this one's.
        now = max(self._session.services.agent.clock.now(), instant)
        firing = self._decide(schedule_id, now, delivery)
        if firing is None:
            await self._correct(schedule_id)
            await self._writer.acknowledge(delivery)
            return None
        if not await self._may_still_come(firing.schedule):
            paused = await self._paused(firing.schedule, "no access")  # for the log
            await self._session.tape.append_many([paused])
            await self._writer.acknowledge(delivery)
            return None
        await self._write_due(schedule_id, firing.next)
        if firing.is_told and firing.schedule.kind == "task":
            return await self._turns.start_task(delivery, firing)
        try:
            if firing.is_told:
                await self._remind(delivery, firing, now)
            else:
                await self._append(firing.schedule, firing.entries)
                await self._writer.acknowledge(delivery)
        except _Changed:
            return await self.fire(delivery)
        return None

    async def write_overdue(self) -> None:
        """Write the schedules that should have fired to the due tape again, which may lack them.

        For example, a tape that was imported or restored alone has them, and the due tape does not.
        """
        now = self._session.services.agent.clock.now()
        for schedule in list(self._fold.schedules.live.values()):
            if schedule.next is not None and now - schedule.next > LATE:
                await self._write_due(schedule.id, schedule.next)

    async def give_up(self, delivery: ReceivedMessage) -> None:
        """Pause a schedule whose occurrence broke the worker before, and say so."""
        parsed = parse_occurrence_id(delivery.inbound.id)
        schedule = self._fold.schedules.live.get(parsed[0]) if parsed is not None else None
        if schedule is None or schedule.paused:
            await self._writer.acknowledge(delivery)
            return
        paused = await self._paused(schedule, "failure")
        text = _(_PAUSED[schedule.kind], number=schedule.number)
        await self._answer(delivery, schedule, [paused], text, status="error")

    async def _paused(self, schedule: Schedule, why: str) -> TapeEntry:
        """Take a schedule off the due tape, tell the owner in the log, and return what pauses it."""
        logger.warning("paused schedule %s of %s: %s", schedule.id, self._session.key, why)
        await self._write_due(schedule.id, None)
        return replace(schedule, paused=True, next=None, held=None).change()

    async def _may_still_come(self, schedule: Schedule) -> bool:
        author = schedule.author.id
        if schedule.private and ":" in author:
            return True  # set on another surface: by an owner
        allowed = self._session.services.still_has_access
        return await allowed(Address.parse(self._session.key), author, schedule.private)

    def _decide(self, schedule: str, now: datetime, delivery: ReceivedMessage) -> Firing | None:
        schedules = self._fold.schedules
        known = schedules.live.get(schedule)
        noticed = None if delivery.redelivered else delivery.accepted_at
        if known is None:
            return None
        return decide_firing(known, now, schedules.quiet, noticed=noticed)

    async def _correct(self, schedule: str) -> None:
        """Make the due tape agree with the session's tape, after a kill between the two."""
        known = self._fold.schedules.live.get(schedule)
        await self._write_due(schedule, None if known is None else known.next)

    async def _write_due(self, schedule: str, instant: datetime | None) -> None:
        tape = self._session.tape
        await write_due(tape.store, tape.name, schedule, instant, at=self._fold.version)

    async def _remind(self, delivery: ReceivedMessage, firing: Firing, now: datetime) -> None:
        turn = new_id("turn")
        await self._answer(
            delivery,
            firing.schedule,
            firing.entries(turn),
            firing_text(firing, now),
            turn=turn,
            buttons=firing_buttons(firing.schedule),
        )

    async def _answer(
        self,
        delivery: ReceivedMessage,
        schedule: Schedule,
        before: list[TapeEntry],
        text: str,
        *,
        turn: str = "",
        status: str = REMINDED,
        buttons: list[Button] | None = None,
    ) -> None:
        """Append entries, a message and the end of its turn in one step, and send the message."""
        await self._append(
            schedule,
            lambda: [
                *before,
                *answer_end_entries(
                    turn or new_id("turn"),
                    delivery.inbound,
                    text,
                    self._fold,
                    cause=schedule_cause(schedule),
                    problem=schedule.problem,
                    status=status,
                    buttons=buttons or [],
                ),
            ],
        )
        await self._writer.send_answers()

    async def _append(self, schedule: Schedule, entries: Callable[[], list[TapeEntry]]) -> None:
        def compose(_: int) -> list[TapeEntry]:
            if self._fold.schedules.live.get(schedule.id) is not schedule:
                raise _Changed
            return entries()

        await self._session.tape.append_composed(compose)
