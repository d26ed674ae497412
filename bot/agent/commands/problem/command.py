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
    private,
    switch,
)
from bot.agent.commands.registry import Command, CommandContext, CommandReply
from bot.core.i18n import N_

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
    "private": private,
}

_SWITCHING = frozenset({"new", "switch", "pause", "resume", "background", "done", "private"})
_READING = frozenset({"", "list", "show"})

_LISTED_FORMS = (
    ("new NAME", N_("start a problem and switch to it")),
    ("switch X", N_("switch to a problem by number or name; `general` always exists")),
    ("pause", N_("put the problem aside and return to `general`; or `pause X`, `background X`")),
    ("done", N_("end the problem, or `done X`; `list done` shows ended ones")),
    ("show", N_("show its notes")),
    (
        "note KIND TEXT",
        N_("add a note: `must`, `must-not`, `assume`, `ask`, `decide`, `draft NAME`"),
    ),
    ("note drop KIND N", N_("remove a note")),
    # for the parser
    ("private on", N_("from now on only private models see what is said in the problem")),
    ("priority X N", N_("set its priority, 1 to 9; 9 comes first")),
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
    N_("work on several problems separately"),
    _LISTED_FORMS,
    _run,
    waits_for_turn=_switches,
    destructive=_changes,
    right="site",
    reads=_READING,
)
