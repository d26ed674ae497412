"""``/remind`` and ``/timezone``: set a reminder in one line, and the zone of its times."""

from __future__ import annotations

from functools import partial

import anyio.to_thread

from bot.agent.commands.registry import Command, CommandContext, CommandReply, idempotency_key
from bot.agent.schedules.session_schedules import SessionSchedules
from bot.agent.schedules.times.words import EXAMPLES
from bot.agent.schedules.wording import when_text
from bot.agent.texts import capitalized
from bot.bus import Button
from bot.core.i18n import N_, _, current_language, format_list, format_time
from bot.core.locale_names import find_zones
from bot.core.text import escape_markdown
from bot.memory.records.schedules import TIMEZONE_SET, Author, Kind, Schedule, find_zone
from bot.memory.records.transcript import sender_name, sent_time
from bot.tape.entries import event

_EXAMPLE = N_(
    "When, and what? For example: `/remind {once} call mom`, or `/remind {every} water the plants`."
    "\n`/schedules` lists what is set."
)
_MOST_ZONES = 5
_WHICH_ZONE = N_("There is no one time zone `{name}`. Did you mean {names}?")
_NO_ZONE = N_(
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
    when = schedules.read_when(arguments, asked_at)
    made = await schedules.create(
        when.rest,
        when.rule,
        key=idempotency_key(context),
        kind=kind,
        author=Author(context.author.id, sender_name(entry)),
        private=context.author.private,
        asked_at=asked_at,
        zone=when.zone,
        own=(when.rest.strip(),),
    )
    return CommandReply(
        confirmation(made, schedules),
        extra_entries=[made.definition()],
        buttons=(cancel_button(made),),
    )


def confirmation(schedule: Schedule, schedules: SessionSchedules) -> str:
    """Return the sentence that repeats what was set, with its time and zone, as Markdown."""
    text = escape_markdown(" ".join(schedule.text.split()), schedule.own)
    when = when_text(schedule, schedules.now(), schedules.fold.schedules.quiet)
    values = {"number": schedule.number, "text": f"**{text}**", "when": capitalized(when)}
    if schedule.kind == "task":
        return _("⚙ Task {number}: {text}\n{when}.", **values)
    return _("⏰ Reminder {number}: {text}\n{when}.", **values)


def cancel_button(schedule: Schedule) -> Button:
    """Return the button that deletes a schedule."""
    return Button(_("Cancel"), f"/schedules delete {schedule.number}")


async def _remind(arguments: str, context: CommandContext) -> CommandReply:
    if not arguments:
        _soon, once, every, _dated = EXAMPLES[current_language()]
        return CommandReply(_(_EXAMPLE, once=once, every=every))
    return await set_schedule(arguments, context, "reminder")


async def _timezone(arguments: str, context: CommandContext) -> CommandReply:
    schedules = context.schedules
    name = arguments.strip()
    if not name:
        return CommandReply(
            _(
                "Times here are in {zone}, where it is now {time}. `/timezone NAME` changes that.",
                zone=f"`{schedules.zone_name}`",
                time=format_time(schedules.now().astimezone(schedules.zone)),
            )
        )
    found = await anyio.to_thread.run_sync(find_zones, name)
    zone = find_zone(found[0]) if len(found) == 1 else None
    if zone is None:
        shown = name[:60].replace("`", "")
        near = found or await anyio.to_thread.run_sync(partial(find_zones, name, close=True))
        if not near:
            return CommandReply(_(_NO_ZONE, name=shown))
        commands = [f"/timezone {one}" for one in near[:_MOST_ZONES]]
        names = format_list([f"`{command}`" for command in commands], "or")
        buttons = tuple(Button(one.partition(" ")[2], one) for one in commands)
        return CommandReply(_(_WHICH_ZONE, name=shown, names=names), buttons=buttons)
    [name] = found
    told = [
        _(
            "Times here are now in {zone}, where it is {time}.",
            zone=f"`{name}`",
            time=format_time(schedules.now().astimezone(zone)),
        )
    ]
    if context.fold.schedules.live:
        told.append(_("Schedules that are set already keep the zone that they were set in."))
    return CommandReply(" ".join(told), extra_entries=[event(TIMEZONE_SET, {"zone": name})])


REMIND_COMMAND = Command(
    "remind",
    N_("remind you of something"),
    (
        ("WHEN TEXT", N_("WHEN in words, such as `in 20 minutes` or `every Monday at 8`")),
        ('"0 8 * * 1-5" TEXT', N_("at the times of a cron expression")),
    ),
    _remind,
    right="site",
)
TIMEZONE_COMMAND = Command(
    "timezone",
    N_("show the time zone of this conversation"),
    (("NAME", N_("set it by its city or IANA name, such as `Europe/Berlin`")),),
    _timezone,
    destructive=lambda arguments: bool(arguments.strip()),
    reads=("",),
)
