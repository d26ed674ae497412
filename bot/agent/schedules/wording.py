"""Times and schedules in words, for people. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from bot.agent.commands.memory.fact_text import shorten
from bot.agent.schedules.rule_text import describe_rule
from bot.agent.texts import capitalized, joined, long_day
from bot.core.i18n import N_, _, format_time, ngettext
from bot.core.recurrence import Once
from bot.core.text import escape_markdown
from bot.memory.records.schedules import (
    QUIET_HOURS_SET,
    SCHEDULE_ENDED,
    SCHEDULE_FIRED,
    SCHEDULE_SET,
    TIMEZONE_SET,
    QuietHours,
    Schedule,
    read_schedule,
)
from bot.tape.entries import TapeEntry

__all__ = [
    "clock_time",
    "day_and_time",
    "event_text",
    "listed",
    "numbered",
    "when_text",
]

_LISTED = 120
_ENDINGS = {
    "cancelled": N_("{what} is over: cancelled"),
    "done": N_("{what} is over: done"),
    "finished": N_("{what} is over: finished"),
}
_STATUSES = {
    "sent": N_("{what} was due at {time} UTC: sent"),
    "late": N_("{what} was due at {time} UTC: late"),
    "missed": N_("{what} was due at {time} UTC: missed"),
    "held": N_("{what} was due at {time} UTC: held"),
}


def clock_time(moment: datetime, zone: ZoneInfo) -> str:
    """Return a moment's wall time, as ``17:00``."""
    local = moment.astimezone(zone)
    return format_time(local, seconds=bool(local.second))


def day_and_time(moment: datetime, zone: ZoneInfo, now: datetime) -> str:
    """Return a moment's day and time, as ``09:00 today`` or ``09:00 on Monday, 9 February 2026``."""
    local, today = moment.astimezone(zone), now.astimezone(zone).date()
    at = clock_time(moment, zone)
    days = (local.date() - today).days
    if days == 0:
        return _("{time} today", time=at)
    if days == 1:
        return _("{time} tomorrow", time=at)
    if days == -1:
        return _("{time} yesterday", time=at)
    return _("{time} on {day}", time=at, day=long_day(local))


def when_text(schedule: Schedule, now: datetime, quiet: QuietHours | None) -> str:
    """Return when a schedule comes next, with its zone, its rule, and what quiet hours do to it."""
    zone, zone_name = schedule.zone, schedule.zone_name
    recurs = not isinstance(schedule.rule, Once)
    if schedule.next is None:
        text = _("paused") if schedule.paused else _("over")
        text = text if recurs else _("{state} ({zone})", state=text, zone=zone_name)
    else:
        day, at = _day(schedule.next, zone, now), clock_time(schedule.next, zone)
        if recurs:
            text = _("next {day}, at {time}", day=day, time=at)
        else:
            text = _("{day}, at {time} ({zone})", day=day, time=at, zone=zone_name)
    if recurs:
        rule = describe_rule(schedule.rule, zone)
        text = _("{rule} ({zone}); {next}", rule=rule, zone=zone_name, next=text)
    return _with_quiet_hours(text, schedule, quiet)


def _day(moment: datetime, zone: ZoneInfo, now: datetime) -> str:
    local = moment.astimezone(zone)
    days, day = (local.date() - now.astimezone(zone).date()).days, long_day(local)
    if days == 0:
        return _("today, {day}", day=day)
    return _("tomorrow, {day}", day=day) if days == 1 else day


def _with_quiet_hours(text: str, schedule: Schedule, quiet: QuietHours | None) -> str:
    upcoming = schedule.next
    if quiet is None or upcoming is None or schedule.ignores_quiet_hours:
        return text
    if not quiet.contains(upcoming, schedule.zone):
        return text
    end = clock_time(quiet.end_after(upcoming, schedule.zone), schedule.zone)
    return _(
        "{when}, which is in quiet hours: it comes when they end, at {time}", when=text, time=end
    )


def listed(schedule: Schedule, now: datetime, quiet: QuietHours | None) -> str:
    """Return a schedule as one line of a list."""
    mark = "⏰" if schedule.kind == "reminder" else "⚙"
    text = shorten(" ".join(schedule.text.split()).rstrip("."), _LISTED)
    text = escape_markdown(text, schedule.own)
    return f"**{schedule.number}.** {mark} {text}: {when_text(schedule, now, quiet)}"


def event_text(entry: TapeEntry) -> str:
    """Describe an event of schedules, the time zone or quiet hours in one sentence without markup."""
    data, name = entry.data, entry.name
    if name == TIMEZONE_SET:
        return _("Times are now in {zone}", zone=data.get("zone"))
    if name == QUIET_HOURS_SET:
        if "from" not in data:
            return _("No quiet hours")
        return _("Quiet hours are {hours}", hours=f"{data['from']}-{data.get('to')}")
    what = capitalized(numbered(str(data.get("kind") or ""), data.get("number")))
    if name == SCHEDULE_ENDED:
        known = _ENDINGS.get(str(data.get("why")))
        return _(known or N_("{what} is over"), what=what)
    if name == SCHEDULE_FIRED:
        return _fired_text(data, what)
    made = read_schedule(entry)
    if made is None:
        told = _("[erased]")
    else:
        state = _("paused") if made.paused else describe_rule(made.rule, made.zone)
        text = " ".join(made.text.split())
        told = _("{text}, {when} ({zone})", text=text, when=state, zone=made.zone_name)
    if name == SCHEDULE_SET:
        return _("{what} is set: {schedule}", what=what, schedule=told)
    return _("{what} is changed: {schedule}", what=what, schedule=told)


def _fired_text(data: dict[str, Any], what: str) -> str:
    # The event names no zone.
    due = str(data.get("instant"))[:19].replace("T", " ")
    known = _STATUSES.get(str(data.get("status")), N_("{what} was due at {time} UTC"))
    text = _(known, what=what, time=due)
    missed = data.get("missed")
    if not isinstance(missed, int) or not missed:
        return text
    more = ngettext("for {n} missed before it, too", "for {n} missed before it, too", missed)
    return joined([text, more])


def numbered(kind: str, number: object) -> str:
    """Return a schedule by its kind and number, such as "reminder 3"."""
    if kind == "reminder":
        return _("reminder {number}", number=number)
    if kind == "task":
        return _("task {number}", number=number)
    return _("schedule {number}", number=number)
