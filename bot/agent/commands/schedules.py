"""``/schedules``: list, change and end reminders and tasks; quiet hours.

Permissions: in a group a member may change the schedules that they set, and an owner all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

from bot.agent.commands.pagination import paginate, parse_page_number
from bot.agent.commands.parser import split_form, split_word
from bot.agent.commands.registry import Command, CommandContext, CommandReply
from bot.agent.commands.remind import cancel_button, confirmation, set_schedule
from bot.agent.schedules.history import read_firings
from bot.agent.schedules.session_schedules import NoTimeFound
from bot.agent.schedules.wording import day_and_time, listed, numbered, when_text
from bot.agent.texts import bold, capitalized, joined
from bot.bus import Address, Button
from bot.core.errors import ScheduleRefused
from bot.core.i18n import N_, _, ngettext
from bot.core.reasons import reason_text
from bot.core.text import escape_markdown
from bot.memory.records.schedules import Schedule

_NOTHING = N_(
    "Nothing is scheduled here. `/remind tomorrow at 17:00 call mom` sets a reminder, and "
    "`/schedules task every day at 8 sum up yesterday` a task that I do by myself."
)
_HINT = N_("`/schedules pause N`, `resume N`, `change N ...` and `delete N` change one.")
_SET_ANONYMOUSLY = N_(
    "it was set in the name of this group, and a press shows your own name: send "
    "`/schedules done {number}` in the group's name, or let an owner press it"
)
_QUIET_HINT = N_("Write them as `/schedules quiet 22:00-07:00`, or `/schedules quiet off`.")
_MOST_BUTTONS = 3
_LONGEST_SNOOZE = 60 * 24 * 7
_STATUSES = {
    "sent": N_("{time}: {text}: told"),
    "late": N_("{time}: {text}: told late"),
    "missed": N_("{time}: {text}: missed, too old to be told"),
    "held": N_("{time}: {text}: kept for the end of quiet hours"),
    "undelivered": N_("{time}: {text}: could not be delivered: {error}"),
}


async def _list(page: int, context: CommandContext) -> CommandReply:
    schedules, now = context.fold.schedules, context.schedules.now()
    if not schedules.live:
        return CommandReply("\n\n".join([_(_NOTHING), *_quiet_note(context)]))
    waiting = sorted(schedules.live.values(), key=lambda one: (one.next is None, one.next or now))
    lines = "\n".join(listed(one, now, schedules.quiet) for one in waiting)
    head = bold(_("Schedules"))
    text = "\n\n".join([f"{head}\n{lines}", *_quiet_note(context), _(_HINT)])
    shown, turning = paginate(text, page, "/schedules page")
    mine = [one for one in waiting if _may_change(one, context)]
    buttons = [
        Button(_("Delete {number}", number=one.number), f"/schedules delete {one.number}")
        for one in mine
    ]
    return CommandReply(shown, buttons=(*buttons[:_MOST_BUTTONS], *turning))


def _quiet_note(context: CommandContext) -> list[str]:
    quiet = context.fold.schedules.quiet
    zone = context.schedules.zone_name
    if quiet is None:
        return []
    return [_("Quiet hours: {hours} ({zone}).", hours=quiet.text, zone=zone)]


async def _pause(rest: str, context: CommandContext) -> CommandReply:
    schedule = _live(rest, context)
    if schedule.paused:
        text = _("{schedule} is paused already.", schedule=_name(schedule))
        return CommandReply(text, replaces_message=False)
    paused = await context.schedules.pause(schedule)
    button = Button(_("Resume"), f"/schedules resume {schedule.number}")
    return CommandReply(
        _("Paused: {schedule}.", schedule=_name(schedule)),
        extra_entries=[paused.change()],
        buttons=(button,),
    )


async def _resume(rest: str, context: CommandContext) -> CommandReply:
    schedule = _live(rest, context)
    if not schedule.paused:
        text = _("{schedule} is not paused.", schedule=_name(schedule))
        return CommandReply(text, replaces_message=False)
    resumed = await context.schedules.resume(schedule)
    return _changed(resumed, context)


async def _change(rest: str, context: CommandContext) -> CommandReply:
    number, what = split_word(rest)
    schedule = _own(number, context)
    if not what:
        return CommandReply(_("Change it to what? Give a time, a text, or both."))
    schedules = context.schedules
    try:
        when = schedules.read_when(what, schedules.now())
    except NoTimeFound:
        changed = await schedules.change(schedule, text=what or None, own=[what.strip()])
    else:
        text = when.rest or None
        changed = await schedules.change(
            schedule, rule=when.rule, text=text, zone=when.zone, own=[when.rest.strip()]
        )
    return _changed(changed, context)


async def _delete(rest: str, context: CommandContext) -> CommandReply:
    schedule = _live(rest, context)
    ended = await context.schedules.end(schedule, "cancelled")
    return CommandReply(_("Deleted: {schedule}.", schedule=_name(schedule)), extra_entries=[ended])


async def _done(rest: str, context: CommandContext) -> CommandReply:
    schedule = _own(split_word(rest)[0], context)
    if schedule.recurs and schedule.ended is None:
        when = when_text(schedule, context.schedules.now(), context.fold.schedules.quiet)
        told = _("{when}.", when=capitalized(when))
        return CommandReply(f"✔ {_text(schedule)}\n{told}")
    ended = await context.schedules.end(schedule, "done")
    return CommandReply(f"✔ {_text(schedule)}", extra_entries=[ended])


async def _snooze(rest: str, context: CommandContext) -> CommandReply:
    number, minutes = split_word(rest)
    schedule = _own(number, context)
    minutes = minutes or "10"
    if not minutes.isdecimal() or not 1 <= int(minutes[:9]) <= _LONGEST_SNOOZE:
        return CommandReply(_("For how many minutes? For example: `/schedules snooze 3 10`."))
    if schedule.ended == "cancelled":
        text = _("{schedule} was deleted.", schedule=_name(schedule))
        return CommandReply(text, replaces_message=False)
    later = await context.schedules.snooze(schedule, timedelta(minutes=int(minutes)))
    assert later.next is not None
    when = day_and_time(later.next, later.zone, context.schedules.now())
    again = _("Again at {when} ({zone}).", when=when, zone=later.zone_name)
    return CommandReply(
        f"💤 {_text(schedule)}\n{again}",
        extra_entries=[later.change()],
        buttons=(cancel_button(later),),
    )


async def _task(rest: str, context: CommandContext) -> CommandReply:
    if not rest:
        return CommandReply(
            _("When, and what? For example: `/schedules task every day at 8 sum up yesterday`.")
        )
    return await set_schedule(rest, context, "task")


async def _quiet(rest: str, context: CommandContext) -> CommandReply:
    if not rest:
        return CommandReply(" ".join([*_quiet_note(context), _(_QUIET_HINT)]))
    text, entry = context.schedules.set_quiet_hours(rest)
    return CommandReply(text, extra_entries=[entry])


async def _history(rest: str, context: CommandContext) -> CommandReply:
    lines = []
    now = context.schedules.now()
    async for firing in read_firings(context.tape):
        known = context.fold.schedules.find(firing.number)
        text = _text(known) if known is not None else numbered("", firing.number)
        when = day_and_time(firing.instant, context.schedules.zone, now)
        told = _STATUSES.get(firing.status, "{time}: {text}")
        line = _(told, time=when, text=text, error=reason_text(firing.error))
        if firing.missed:
            missed = ngettext("after {n} missed", "after {n} missed", firing.missed)
            line = joined([line, missed])
        lines.append(f"- {line}")
    if not lines:
        return CommandReply(_("Nothing has been due here yet."))
    shown, buttons = paginate(
        "\n".join([bold(_("What was due, newest first")), *lines]),
        parse_page_number(rest.removeprefix("page ").strip()),
        "/schedules history page",
    )
    return CommandReply(shown, buttons=buttons)


def _changed(schedule: Schedule, context: CommandContext) -> CommandReply:
    return CommandReply(
        confirmation(schedule, context.schedules),
        extra_entries=[schedule.change()],
        buttons=(cancel_button(schedule),),
    )


def _live(rest: str, context: CommandContext) -> Schedule:
    schedule = _own(split_word(rest)[0], context)
    if schedule.ended is not None:
        raise ScheduleRefused(_("schedule {number} is over", number=schedule.number))
    return schedule


def _own(number: str, context: CommandContext) -> Schedule:
    """Return the schedule with a number, if the author may change it.

    Raises:
        ScheduleRefused: There is none, or it is somebody else's.
    """
    known = number.removeprefix("#")
    found = (
        context.fold.schedules.find(int(known)) if known.isdecimal() and len(known) < 9 else None
    )
    if found is None:
        raise ScheduleRefused(_("there is no schedule with this number; `/schedules` lists them"))
    if not _may_change(found, context):
        if found.author.id == Address.parse(context.tape.name).chat_id:
            raise ScheduleRefused(_(_SET_ANONYMOUSLY, number=found.number))
        raise ScheduleRefused(_("only who set it, or an owner, may change it"))
    return found


def _may_change(schedule: Schedule, context: CommandContext) -> bool:
    author = context.author
    owner = author.role == "owner"
    return schedule.may_be_changed_by(author.id, private=author.private, owner=owner)


def _name(schedule: Schedule) -> str:
    name = numbered(schedule.kind, schedule.number)
    return _("{schedule} ({text})", schedule=name, text=_text(schedule))


def _text(schedule: Schedule) -> str:
    return escape_markdown(" ".join(schedule.text.split()), schedule.own)


_FORMS: dict[str, Callable[[str, CommandContext], Awaitable[CommandReply]]] = {
    "pause": _pause,
    "resume": _resume,
    "change": _change,
    "delete": _delete,
    "done": _done,
    "snooze": _snooze,
    "task": _task,
    "quiet": _quiet,
    "history": _history,
}


async def _run(arguments: str, context: CommandContext) -> CommandReply:
    form, rest = split_form(arguments)
    if not form or form == "page":
        return await _list(parse_page_number(rest), context)
    if form not in _FORMS:
        return CommandReply(SCHEDULES_COMMAND.unknown_form_text(form, _FORMS))
    return await _FORMS[form](rest, context)


SCHEDULES_COMMAND = Command(
    "schedules",
    N_("list reminders and tasks, with their next run"),
    (
        ("pause N", N_("pause one; `resume N` starts it again")),
        ("change N WHEN TEXT", N_("give one another time, another text, or both")),
        ("delete N", N_("delete one")),
        ("snooze N MINUTES", N_("let one come again later")),
        ("task WHEN TEXT", N_("let me do something by myself, again and again or once")),
        ("quiet 22:00-07:00", N_("send nothing in these hours; `quiet off` ends that")),
        ("history", N_("show what was due")),
    ),
    _run,
    destructive=lambda arguments: split_form(arguments)[0] == "quiet",
    reads=("", "page", "history"),
)
