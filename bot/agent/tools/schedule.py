"""``schedule.manage`` and ``schedule.list``: reminders, tasks and quiet hours by the model.

``schedule.manage`` does what the user asks for; a scheduled task can only list.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field

from bot.agent.commands.remind import confirmation
from bot.agent.flow.judgement import context_grants
from bot.agent.foreign_text import code
from bot.agent.schedules.rule_text import describe_rule
from bot.agent.schedules.session_schedules import LONGEST_TEXT, SessionSchedules, read_rule
from bot.agent.schedules.times.reading import times_in
from bot.agent.schedules.wording import listed
from bot.agent.texts import readers_language
from bot.agent.tools.registry import NoArguments, Tool, ToolContext, ToolOutcome, trim_schema
from bot.core.errors import InvalidRecurrence, ScheduleRefused
from bot.core.i18n import _
from bot.core.recurrence import same_occurrences
from bot.memory.records.evidence import grant_of
from bot.memory.records.outside_text import typed_words
from bot.memory.records.schedules import Author, Schedule, find_zone
from bot.memory.records.transcript import (
    is_automation,
    is_owner,
    sender_id,
    sender_name,
    sent_time,
)
from bot.tape.entries import TapeEntry

_MOST_LISTED = 50


class ScheduleArguments(BaseModel):
    """Arguments of ``schedule.manage``."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=trim_schema)

    op: Literal["set", "change", "cancel", "list", "quiet"]
    text: str = Field("", max_length=LONGEST_TEXT)
    when: str = Field(
        "",
        max_length=300,
        description='2026-03-31T17:00, cron, or "every 2 weeks on Monday at 8", in this chat\'s time or with '
        "an IANA zone behind it; quiet: 22:00-07:00 or off",
    )
    kind: Literal["reminder", "task"] = Field("reminder", description="task: you do it then")
    number: int = 0


def schedule_tool(now: Callable[[], datetime], program_zone: str) -> Tool[Any]:
    """Return the tool."""

    def schedules_of(context: ToolContext) -> SessionSchedules:
        return SessionSchedules(context.tape, context.memory.fold, now, program_zone)

    async def manage(arguments: ScheduleArguments, context: ToolContext) -> ToolOutcome:
        schedules = schedules_of(context)
        if arguments.op == "list":
            return _list(schedules, context.problem)
        asking = [one for one in context.answered_messages if not is_automation(one)]
        if not asking:
            raise ScheduleRefused("no person asked for it")
        if arguments.op == "quiet":
            context.check_rights("set quiet hours")
            told, entry = schedules.set_quiet_hours(arguments.when)
            return ToolOutcome(told, extra_entries=[entry])
        if arguments.op == "set":
            return await _set(arguments, schedules, context, asking[-1])
        found = _own(arguments.number, schedules, asking, context.problem)
        if arguments.op == "change":
            return await _change(found, arguments, schedules, context, asking[-1])
        ended = await schedules.end(found, "cancelled")
        return ToolOutcome(f"Cancelled: {found.kind} {found.number}.", extra_entries=[ended])

    return Tool(
        "schedule.manage",
        "Reminders and tasks at a time, only if the user asks.",
        ScheduleArguments,
        manage,
        effect="writes_own",
        sensitive={"text": "title", "when": "time", "number": "number"},
        question=_question,
        said=lambda arguments, context: _said(arguments.when, context, schedules_of(context)),
    )


def _said(when: str, context: ToolContext, schedules: SessionSchedules) -> dict[str, str]:
    """Return the time as a person says it, if their words mean the same moments."""
    for asked in context.answered_messages:
        words, asked_at = typed_words(asked), sent_time(asked) or schedules.now()
        with suppress(ScheduleRefused, InvalidRecurrence):
            one = read_rule(when, asked_at, schedules.zone)
            meant = (one.rule, find_zone(one.zone) or schedules.zone)
            for said in times_in(words, asked_at, schedules.zone):
                other = (said.rule, find_zone(said.zone) or schedules.zone)
                if same_occurrences(meant, other, asked_at):
                    return {"when": words}
    return {}


def _question(arguments: ScheduleArguments, asked_at: datetime, zone: ZoneInfo) -> str | None:
    """Return how a person is asked for a call; None for one that does not say what it should."""
    text, when, number = code(arguments.text, LONGEST_TEXT), arguments.when, arguments.number
    if arguments.op == "quiet":
        return _("I would like to set your quiet hours to {hours}. Shall I?", hours=code(when))
    if arguments.op == "cancel":
        return _("I would like to cancel schedule {number}. Shall I?", number=number)
    told = code(when)
    with suppress(ScheduleRefused, InvalidRecurrence):
        spoken = read_rule(when, asked_at, zone)
        at = find_zone(spoken.zone) or zone
        told = _("{state} ({zone})", state=describe_rule(spoken.rule, at), zone=at.key)
    if arguments.op == "set" and arguments.kind == "task":
        return _("I would like to do this {when}: {text}. Shall I?", when=told, text=text)
    if arguments.op == "set":
        return _("I would like to set a reminder {when}: {text}. Shall I?", when=told, text=text)
    asked = []
    if when.strip():
        asked = [
            _("I would like schedule {number} to come {when}. Shall I?", number=number, when=told)
        ]
    if arguments.text.strip():
        asked.append(
            _("I would like schedule {number} to say {text}. Shall I?", number=number, text=text)
        )
    return "\n".join(asked) or None


def schedule_list_tool(now: Callable[[], datetime], program_zone: str) -> Tool[Any]:
    """Return the tool with which a scheduled task sees what is due."""

    async def list_schedules(arguments: NoArguments, context: ToolContext) -> ToolOutcome:  # noqa: ARG001
        schedules = SessionSchedules(context.tape, context.memory.fold, now, program_zone)
        return _list(schedules, context.problem)

    return Tool(
        "schedule.list",
        "List the reminders and tasks that are set, with their next time.",
        NoArguments,
        list_schedules,
        applies=lambda available: available.scheduled,
        effect="reads_own",
    )


async def _set(
    arguments: ScheduleArguments,
    schedules: SessionSchedules,
    context: ToolContext,
    asked: TapeEntry,
) -> ToolOutcome:
    if arguments.kind == "task":
        _check_person(asked)
        # What a page or a file says must not run again and again.
        context.check_prompt_text(arguments.text)
    asked_at = sent_time(asked) or schedules.now()
    when = read_rule(arguments.when, asked_at, schedules.zone)
    made = await schedules.create(
        arguments.text,
        when.rule,
        key=context.cause,
        kind=arguments.kind,
        author=Author(sender_id(asked), sender_name(asked)),
        private=asked.meta.get("private", True) is True,
        asked_at=asked_at,
        zone=when.zone,
        own=_own_words(arguments.text, context),
    )
    return _told("Set", made, schedules, made.definition())


def _check_person(asked: TapeEntry) -> None:
    """Refuse a token a task, which would go on when the token has ended."""
    if grant_of(asked) is not None:
        raise ScheduleRefused("a token may not set a task; the user can, in a chat or on the site")


async def _change(
    found: Schedule,
    arguments: ScheduleArguments,
    schedules: SessionSchedules,
    context: ToolContext,
    asked: TapeEntry,
) -> ToolOutcome:
    if found.kind == "task":
        _check_person(asked)
        context.check_prompt_text(arguments.text)
    asked_at = sent_time(asked) or schedules.now()
    text, own = arguments.text.strip() or None, _own_words(arguments.text, context)
    if arguments.when.strip():
        when = read_rule(arguments.when, asked_at, schedules.zone)
        changed = await schedules.change(found, rule=when.rule, text=text, zone=when.zone, own=own)
    else:
        changed = await schedules.change(found, text=text, own=own)
    return _told("Changed", changed, schedules, changed.change())


def _own_words(text: str, context: ToolContext) -> list[str]:
    """Return what of a text is a person's own: all of it, or the addresses that they named."""
    grants = context_grants(context)
    if context.approved or grants.says(text.strip()):
        return [text.strip()]
    words = (word.strip(".,;:!?()[]<>\"'") for word in text.split())
    return [word for word in words if "/" in word and grants.permits(word)]


def _told(
    done: str, schedule: Schedule, schedules: SessionSchedules, entry: TapeEntry
) -> ToolOutcome:
    """Return an outcome whose resolved time is shown to the user, too."""
    with readers_language():
        question = confirmation(schedule, schedules)
        label = _("Cancel {number}", number=schedule.number)
    return ToolOutcome(
        f"{done}; the user sees this below your answer:\n{confirmation(schedule, schedules)}",
        question=question,
        extra_entries=[entry],
        buttons=((label, f"/schedules delete {schedule.number}"),),
    )


def _list(schedules: SessionSchedules, problem: str) -> ToolOutcome:
    """Return what was set in the active problem: the model sees nothing of the others."""
    live = [one for one in schedules.fold.schedules.live.values() if one.problem == problem]
    now, quiet = schedules.now(), schedules.fold.schedules.quiet
    lines = [listed(one, now, quiet) for one in live[:_MOST_LISTED]]
    if len(live) > _MOST_LISTED:
        lines.append(f"and {len(live) - _MOST_LISTED} more")
    return ToolOutcome("\n".join(lines) or "Nothing is scheduled.")


def _own(
    number: int, schedules: SessionSchedules, asking: list[TapeEntry], problem: str
) -> Schedule:
    """Return the schedule with a number, if those who ask may change it.

    Raises:
        ScheduleRefused: There is none, it is over, or it is somebody else's.
    """
    found = schedules.fold.schedules.find(number)
    if found is None or found.ended is not None or found.problem != problem:
        raise ScheduleRefused("there is no such schedule; list them")
    if not all(_may_change(found, one) for one in asking):
        raise ScheduleRefused("only who set it, or an owner, may change it")
    return found


def _may_change(schedule: Schedule, asked: TapeEntry) -> bool:
    private = asked.meta.get("private", True) is True
    return schedule.may_be_changed_by(sender_id(asked), private=private, owner=is_owner(asked))
