"""Times and schedules in words, for people. Pure."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from bot.agent.commands.memory.fact_text import escape_markdown, shorten
from bot.core.recurrence import Once, describe_rule
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

__all__ = ["clock_time", "day_and_time", "escape_markdown", "event_text", "listed", "when_text"]

_LISTED = 120


def clock_time(moment: datetime, zone: ZoneInfo) -> str:
    """Return a moment's wall time, as ``17:00``."""
    local = moment.astimezone(zone)
    return f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"


def day_and_time(moment: datetime, zone: ZoneInfo, now: datetime) -> str:
    """Return a moment's day and time, as ``09:00 today`` or ``09:00 on Monday, 9 February 2026``."""
    local, today = moment.astimezone(zone), now.astimezone(zone).date()
    near = {0: "today", 1: "tomorrow", -1: "yesterday"}.get((local.date() - today).days)
    date = f"{local:%A}, {local.day} {local:%B %Y}"
    return f"{clock_time(moment, zone)} {near or f'on {date}'}"


def when_text(schedule: Schedule, now: datetime, quiet: QuietHours | None) -> str:
    """Return when a schedule comes next, with its zone, its rule, and what quiet hours do to it."""
    zone = schedule.zone
    recurs = not isinstance(schedule.rule, Once)
    if schedule.next is None:
        upcoming = "paused" if schedule.paused else "over"
    else:
        local = schedule.next.astimezone(zone)
        near = {0: "today, ", 1: "tomorrow, "}.get(
            (local.date() - now.astimezone(zone).date()).days
        )
        day = f"{near or ''}{local:%A}, {local.day} {local:%B %Y}"
        upcoming = f"{'next ' if recurs else ''}{day}, at {clock_time(schedule.next, zone)}"
    kept = _kept_text(schedule, quiet)
    if not recurs:
        return f"{upcoming} ({schedule.zone_name}){kept}"
    return f"{describe_rule(schedule.rule, zone)} ({schedule.zone_name}); {upcoming}{kept}"


def _kept_text(schedule: Schedule, quiet: QuietHours | None) -> str:
    upcoming = schedule.next
    if quiet is None or upcoming is None or schedule.ignores_quiet_hours:
        return ""
    if not quiet.contains(upcoming, schedule.zone):
        return ""
    end = clock_time(quiet.end_after(upcoming, schedule.zone), schedule.zone)
    return f", which is in quiet hours: it comes when they end, at {end}"


def listed(schedule: Schedule, now: datetime, quiet: QuietHours | None) -> str:
    """Return a schedule as one line of a list."""
    mark = "⏰" if schedule.kind == "reminder" else "⚙"
    text = escape_markdown(shorten(" ".join(schedule.text.split()), _LISTED))
    return f"**{schedule.number}.** {mark} {text}: {when_text(schedule, now, quiet)}"


def event_text(entry: TapeEntry) -> str:
    """Describe an event of schedules, the time zone or quiet hours in one sentence without markup."""
    data, name = entry.data, entry.name
    if name == TIMEZONE_SET:
        return f"Times are now in {data.get('zone')}"
    if name == QUIET_HOURS_SET:
        return (
            f"Quiet hours are {data['from']}-{data.get('to')}"
            if "from" in data
            else "No quiet hours"
        )
    what = f"{str(data.get('kind') or 'schedule').capitalize()} {data.get('number')}"
    if name == SCHEDULE_ENDED:
        return f"{what} is over: {data.get('why')}"
    if name == SCHEDULE_FIRED:
        missed = f", for {data['missed']} missed before it, too" if data.get("missed") else ""
        # The event names no zone.
        due = str(data.get("instant"))[:19].replace("T", " ")
        return f"{what} was due at {due} UTC: {data.get('status')}{missed}"
    done = "is set" if name == SCHEDULE_SET else "is changed"
    made = read_schedule(entry)
    if made is None:
        return f"{what} {done}: [erased]"
    state = "paused" if made.paused else describe_rule(made.rule, made.zone)
    return f"{what} {done}: {' '.join(made.text.split())}, {state} ({made.zone_name})"
