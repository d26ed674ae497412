"""``/remind`` and ``/timezone``: set a reminder in one line, and the zone of its times."""

from __future__ import annotations

from bot.agent.commands.registry import Command, CommandContext, CommandReply, idempotency_key
from bot.agent.schedules.session_schedules import SessionSchedules
from bot.agent.schedules.wording import clock_time, escape_markdown, when_text
from bot.bus import Button
from bot.memory.records.schedules import TIMEZONE_SET, Author, Kind, Schedule, find_zone
from bot.memory.records.transcript import sender_name, sent_time
from bot.tape.entries import event

_EXAMPLE = "For example: `/remind tomorrow at 17:00 call mom`, or `/remind every Monday at 8 water the plants`."
_NO_ZONE = (
    "There is no time zone `{name}`. Give its IANA name, such as `Europe/Berlin`, "
    "`America/New_York` or `Asia/Kolkata`."
)


async def set_schedule(arguments: str, context: CommandContext, kind: Kind) -> CommandReply:
    """Set the reminder or task that a command's arguments describe.

    Raises:
        ScheduleRefused: There is no time in them, or the schedule cannot be set.
        InvalidRecurrence: The cron expression is wrong.
        TapeWriteError: The storage failed.
    """
    schedules, entry = context.schedules, context.command_entry
    asked_at = sent_time(entry) or schedules.now()
    rule, text = schedules.read_when(arguments, asked_at)
    made = await schedules.create(
        text,
        rule,
        key=idempotency_key(context),
        kind=kind,
        author=Author(context.author.id, sender_name(entry)),
        private=context.author.private,
        asked_at=asked_at,
    )
    return CommandReply(
        confirmation(made, schedules),
        extra_entries=[made.definition()],
        buttons=(cancel_button(made),),
    )


def confirmation(schedule: Schedule, schedules: SessionSchedules) -> str:
    """Return the sentence that repeats what was set, with its time and zone, as Markdown."""
    text = escape_markdown(" ".join(schedule.text.split()))
    when = when_text(schedule, schedules.now(), schedules.fold.schedules.quiet)
    if schedule.kind == "task":
        return f"⚙ Task {schedule.number}: **{text}**\n{_capitalized(when)}."
    return f"⏰ Reminder {schedule.number}: **{text}**\n{_capitalized(when)}."


def cancel_button(schedule: Schedule) -> Button:
    """Return the button that deletes a schedule."""
    return Button("Cancel", f"/schedules delete {schedule.number}")


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


async def _remind(arguments: str, context: CommandContext) -> CommandReply:
    if not arguments:
        return CommandReply(f"When, and what? {_EXAMPLE}\n`/schedules` lists what is set.")
    return await set_schedule(arguments, context, "reminder")


async def _timezone(arguments: str, context: CommandContext) -> CommandReply:
    schedules = context.schedules
    name = arguments.strip()
    if not name:
        return CommandReply(
            f"Times here are in `{schedules.zone_name}`, where it is now "
            f"{clock_time(schedules.now(), schedules.zone)[:5]}. `/timezone NAME` changes that."
        )
    zone = find_zone(name)
    if zone is None:
        return CommandReply(_NO_ZONE.format(name=name[:60].replace("`", "")))
    kept = ""
    if context.fold.schedules.live:
        kept = " Schedules that are set already keep the zone that they were set in."
    return CommandReply(
        f"Times here are now in `{name}`, where it is {clock_time(schedules.now(), zone)[:5]}.{kept}",
        extra_entries=[event(TIMEZONE_SET, {"zone": name})],
    )


REMIND_COMMAND = Command(
    "remind",
    "remind you of something",
    (
        ("WHEN TEXT", "WHEN in words, such as `in 20 minutes` or `every Monday at 8`"),
        ('"0 8 * * 1-5" TEXT', "at the times of a cron expression"),
    ),
    _remind,
)
TIMEZONE_COMMAND = Command(
    "timezone",
    "show the time zone of this conversation",
    (("NAME", "set it by its IANA name, such as `Europe/Berlin`"),),
    _timezone,
    destructive=lambda arguments: bool(arguments.strip()),
)
