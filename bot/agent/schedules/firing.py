"""Decide what an occurrence does: whether it is told, for which instant, and what comes next. Pure.

Rule 1: what happens once is told however late it is.
Rule 2: of several occurrences that were missed, only the newest is told, and how many were missed.
Rule 3: an occurrence of a recurring schedule that is older than a day is stale: it is not told.
Rule 4: in quiet hours only a reminder that is set for exactly that time is told; everything else is
    kept for their end.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bot.agent.schedules.wording import clock_time, day_and_time
from bot.bus import Button
from bot.core import clock
from bot.core.i18n import _, format_time, ngettext
from bot.core.recurrence import next_occurrence
from bot.core.text import escape_markdown
from bot.memory.records.schedules import (
    SCHEDULE_FIRED,
    FiringStatus,
    QuietHours,
    Schedule,
)
from bot.tape.entries import TapeEntry, event

LATE = timedelta(seconds=90)
"""How late an occurrence may be without a word about it."""
STALE = timedelta(days=1)
"""Age from which an occurrence of a recurring schedule is not told."""
_MOST_COUNTED = 1_000


@dataclass(frozen=True, slots=True)
class Firing:
    """What an occurrence does.

    Attributes:
        schedule: The schedule.
        status: Whether it is told.
        instant: The newest instant that it stands for.
        next: The next instant; None if there is none.
        missed: How many earlier occurrences it stands for.
        was_off: Whether the program was off at the time.
    """

    schedule: Schedule
    status: FiringStatus
    instant: datetime
    next: datetime | None
    missed: int = 0
    was_off: bool = False

    @property
    def is_told(self) -> bool:
        """Whether people get to know it."""
        return self.status in ("sent", "late")

    def entry(self, turn: str = "") -> TapeEntry:
        """Return the event that records it."""
        data: dict[str, Any] = {
            "schedule": self.schedule.id,
            "number": self.schedule.number,
            "instant": clock.format_time(self.instant),
            "status": self.status,
            "next": None if self.next is None else clock.format_time(self.next),
        }
        if self.missed:
            data["missed"] = self.missed
        if turn:
            data["turn"] = turn
        return event(SCHEDULE_FIRED, data)

    def entries(self, turn: str = "") -> list[TapeEntry]:
        """Return the events that record it, and the schedule's end if nothing comes after it."""
        ended = [self.schedule.end("finished")] if self.next is None else []
        return [self.entry(turn), *ended]


def decide_firing(
    schedule: Schedule,
    now: datetime,
    quiet: QuietHours | None,
    *,
    noticed: datetime | None = None,
) -> Firing | None:
    """Return what the due occurrence of a schedule does; None if none is due."""
    due = schedule.next
    if due is None or due > now:
        return None
    instant, missed = _newest(schedule, due, now)
    upcoming = next_occurrence(schedule.rule, now, schedule.zone)
    if (
        quiet is not None
        and quiet.contains(now, schedule.zone)
        and not schedule.ignores_quiet_hours
    ):
        return Firing(schedule, "held", instant, quiet.end_after(now, schedule.zone), missed)
    meant = schedule.held or instant
    if schedule.recurs and now - instant > STALE:
        return Firing(schedule, "missed", instant, upcoming, missed)
    late = now - instant > LATE
    was_off = late and (noticed is None or noticed - due > LATE)
    return Firing(schedule, "late" if late else "sent", meant, upcoming, missed, was_off)


def _newest(schedule: Schedule, due: datetime, now: datetime) -> tuple[datetime, int]:
    """Return the newest occurrence that is due, and how many came before it."""
    instant, after, missed = due, due, 0
    while (later := next_occurrence(schedule.rule, after, schedule.zone)) and later <= now:
        instant, after, missed = later, later, missed + 1
        if missed == _MOST_COUNTED:
            # Only the last day matters, and nobody needs to know the number.
            after = max(after, now - STALE)
        if missed == 4 * _MOST_COUNTED:
            break
    return instant, missed


def firing_text(firing: Firing, now: datetime) -> str:
    """Return the text of a reminder that is told, as Markdown."""
    schedule = firing.schedule
    text = schedule.text.strip()
    shown = escape_markdown(text, schedule.own)
    shown = shown if "\n" in text else f"**{shown}**"
    lines = [_with_meant(f"⏰ {shown}", firing, now)]
    if firing.missed > _MOST_COUNTED:
        lines.append(_("It was also due more than 1000 times before that; I do not repeat those."))
    elif firing.missed:
        missed = ngettext(
            "It was also due {n} time before that; I do not repeat those.",
            "It was also due {n} times before that; I do not repeat those.",
            firing.missed,
        )
        lines.append(missed)
    return "\n".join(lines)


def _with_meant(text: str, firing: Firing, now: datetime) -> str:
    """Return a reminder's text with the time that it was for."""
    schedule = firing.schedule
    if schedule.held is not None:
        at = clock_time(firing.instant, schedule.zone)
        kept = _("(for {time}; I kept it until your quiet hours were over)", time=at)
        return f"{text} {kept}"
    if firing.status == "sent":
        at = format_time(firing.instant.astimezone(schedule.zone))
        meant = _("(for {time})", time=at)
        return f"{text} {meant}"
    when = day_and_time(firing.instant, schedule.zone, now)
    if firing.was_off:
        late = _("I was off at the time: this was for {when}.", when=when)
    else:
        late = _("I am late: this was for {when}.", when=when)
    return f"{text}\n{late}"


def firing_buttons(schedule: Schedule) -> list[Button]:
    """Return the buttons below a reminder."""
    number = schedule.number
    buttons = [
        Button(_("Done"), f"/schedules done {number}"),
        Button(_("Snooze 10 min"), f"/schedules snooze {number} 10"),
        Button(_("Snooze 1 h"), f"/schedules snooze {number} 60"),
    ]
    if schedule.recurs:
        buttons.append(Button(_("Cancel"), f"/schedules delete {number}"))
    return buttons
