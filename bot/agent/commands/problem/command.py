"""Dispatch of the forms of ``/problem``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bot.agent.commands.parser import split_form
from bot.agent.commands.problem.notes import note
from bot.agent.commands.problem.overview import list_problems, show
from bot.agent.commands.problem.transitions import (
    background,
    done,
    new,
    pause,
    priority,
    switch,
)
from bot.agent.commands.registry import Command, CommandContext, CommandReply

_FORMS: dict[str, Callable[[str, CommandContext], Awaitable[CommandReply]]] = {
    "": list_problems,
    "list": list_problems,
    "new": new,
    "switch": switch,
    "pause": pause,
    "resume": switch,
    "background": background,
    "done": done,
    "priority": priority,
    "show": show,
    "note": note,
}

_SWITCHING = frozenset({"new", "switch", "pause", "resume", "background", "done"})
_READING = frozenset({"", "list", "show"})

_LISTED_FORMS = (
    ("new NAME", "begin something that is kept apart, and work on it"),
    ("switch X", "work on another one: by number or name; `general` is always there"),
    ("pause", "put it aside, and go back to `general`; or `pause X`, `background X`"),
    ("done", "end it, or `done X`; `list done` shows what has ended"),
    ("show", "what is noted for it"),
    ("note KIND TEXT", "note for it: `must`, `must-not`, `assume`, `ask`, `decide`, `draft NAME`"),
    ("note drop KIND N", "take a note away"),
    ("priority X N", "1 to 9, the highest first"),
)


async def _run(arguments: str, context: CommandContext) -> CommandReply:
    form, rest = split_form(arguments)
    chosen = list_problems if form.isdecimal() else _FORMS.get(form)
    if chosen is None:
        return CommandReply(PROBLEM_COMMAND.unknown_form_text(form, _FORMS))
    return await chosen(form if form.isdecimal() else rest, context)


def _switches(arguments: str) -> bool:
    return split_form(arguments)[0] in _SWITCHING


def _changes(arguments: str) -> bool:
    form = split_form(arguments)[0]
    return form not in _READING and not form.isdecimal()


PROBLEM_COMMAND = Command(
    "problem",
    "keep several things apart that we work on",
    _LISTED_FORMS,
    _run,
    waits_for_turn=_switches,
    destructive=_changes,
)
