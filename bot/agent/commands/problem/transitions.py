"""Forms of ``/problem`` that create, switch, pause, complete or prioritise problems.

Each reply is made from the recorded change, so a command that is run again after a crash answers
the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from bot.agent.commands.memory.fact_text import shorten
from bot.agent.commands.registry import CommandContext, CommandReply, idempotency_key
from bot.bus import Button
from bot.core.errors import MemoryRefused
from bot.core.i18n import N_, _, ngettext
from bot.core.text import escape_markdown
from bot.memory.records.compartment_records import (
    Problem,
    problem_from_json,
    working_set_from_json,
)
from bot.memory.records.problem_lookup import match_problem
from bot.memory.session.bus.problem_registry import ProblemRegistry
from bot.memory.session.bus.working_set import problem_summary, translate_summary
from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL_PROBLEM

_Put = Callable[[ProblemRegistry, str, str], Awaitable[bool]]
"""Change a problem's state, given the registry, its id and the cause."""

_WHICH = N_("Which one? Give its number or its name; `/problem` lists all.")
_PRIVATE = N_(
    "{name} is private. From now on only models on your own machine see what is said in it, also "
    "later. Nothing of it becomes a part of memory, because every model sees that; "
    "`/problem note` keeps what matters here. What was said in it before may have been seen by "
    "other models."
)
_DONE = N_("Done.")
"""Reply to a repeated command if the record of its change was erased."""


async def find_recorded_change(context: CommandContext, cause: str) -> TapeEntry | None:
    """Return the entry that records a cause's change; None if there is none yet."""
    known = context.fold.facts.decided_keys.get(cause)
    entries = await context.tape.read_entries(known, known) if known is not None else []
    return entries[0] if entries else None


async def find_problem(wanted: str, context: CommandContext) -> Problem:
    """Return the problem with this number or name.

    Raises:
        MemoryRefused: There is none, or the name is ambiguous.
    """
    problem = match_problem(await context.memory.bus.problems.list_by_state(), wanted)
    if problem is None:
        name = repr(wanted[:60])
        raise MemoryRefused(
            _("there is no problem {name}; `/problem` lists the problems", name=name)
        )
    return problem


async def new(name: str, context: CommandContext) -> CommandReply:
    """Answer ``/problem new NAME``."""
    if not name:
        return CommandReply(_("What should it be called? For example: `/problem new Taxes`."))
    problems, cause = context.memory.bus.problems, idempotency_key(context)
    problem = await problems.create(name, cause=cause)
    switching = f"{cause}:switch"
    await problems.switch_to(problem.problem_id, cause=switching)
    return await _told(context, switching)


async def switch(wanted: str, context: CommandContext) -> CommandReply:
    """Answer ``/problem switch X`` and ``/problem resume X``."""
    cause = idempotency_key(context)
    if not wanted:
        return CommandReply(_(_WHICH))
    if cause not in context.fold.facts.decided_keys:
        problem = await find_problem(wanted, context)
        if problem.state == "active":
            name = formatted_name(problem)
            return CommandReply(_("You are already on {problem}.", problem=name))
        if problem.state == "completed":
            raise MemoryRefused(
                _(
                    "{problem} is done; `/problem new` starts a new one of that name",
                    problem=formatted_name(problem),
                )
            )
        await context.memory.bus.problems.switch_to(problem.problem_id, cause=cause)
    return await _told(context, cause)


async def pause(wanted: str, context: CommandContext) -> CommandReply:
    """Answer ``/problem pause [X]``."""
    return await _put(
        wanted, context, lambda problems, one, cause: problems.pause(one, cause=cause)
    )


async def background(wanted: str, context: CommandContext) -> CommandReply:
    """Answer ``/problem background [X]``."""
    return await _put(
        wanted, context, lambda problems, one, cause: problems.background(one, cause=cause)
    )


async def done(wanted: str, context: CommandContext) -> CommandReply:
    """Answer ``/problem done [X]``."""
    return await _put(
        wanted, context, lambda problems, one, cause: problems.complete(one, cause=cause)
    )


async def _put(wanted: str, context: CommandContext, put: _Put) -> CommandReply:
    """Change the state of a problem, by default the active one."""
    cause = idempotency_key(context)
    if cause not in context.fold.facts.decided_keys:
        problems = context.memory.bus.problems
        problem = await find_problem(wanted, context) if wanted else await problems.get_active()
        if problem.problem_id == GENERAL_PROBLEM:
            return CommandReply(
                _("“general” always exists. `/problem switch X` switches to another.")
            )
        if not await put(problems, problem.problem_id, cause):
            return CommandReply(put_aside_text(problem), buttons=resume_button(problem))
    return await _told(context, cause)


async def private(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/problem private on``, and say why there is no ``off``."""
    problems, wanted = context.memory.bus.problems, arguments.strip().lower()
    problem = await problems.get_active()
    name = formatted_name(problem)
    if wanted == "off" and problem.private:
        return CommandReply(
            _(
                "{problem} stays private: what was said in it would otherwise reach other models. "
                "`/problem new NAME` starts a problem that is not.",
                problem=name,
            )
        )
    if wanted == "on":
        await problems.make_private(problem.problem_id, cause=idempotency_key(context))
    elif wanted or not problem.private:
        return CommandReply(
            _("{problem} is not private. `/problem private on` makes it so.", problem=name)
        )
    model = _("Model: {model}.", model=context.model_line())
    return CommandReply("\n\n".join([_(_PRIVATE, name=name), model]))


async def priority(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/problem priority X N``."""
    wanted, _sep, number = arguments.rpartition(" ")
    if not wanted or not number.isdecimal() or len(number) > 1:
        return CommandReply(
            _("For example: `/problem priority 2 9`. Priorities are 1 to 9; 9 comes first.")
        )
    problem = await find_problem(wanted, context)
    await context.memory.bus.problems.prioritise(
        problem.problem_id, int(number), cause=idempotency_key(context)
    )
    told = _("{problem} now has priority {number}.", problem=formatted_name(problem), number=number)
    return CommandReply(told)


async def _told(context: CommandContext, cause: str) -> CommandReply:
    """Reply with the recorded change."""
    entry = await find_recorded_change(context, cause)
    problems = _problems_in(entry.data) if entry is not None else []
    if len(problems) > 1:
        left, taken = problems[:2]
        return CommandReply(switch_text(left, taken), buttons=resume_button(left))
    if problems:
        return CommandReply(put_aside_text(problems[0]), buttons=resume_button(problems[0]))
    return CommandReply(_(_DONE))


def _problems_in(data: dict[str, Any]) -> list[Problem]:
    """Return the problems that a change records, with those working sets that can be decoded."""
    sets = [working_set_from_json(one) for one in data.get("working", ())]
    by_problem = {
        working_set.problem_id: working_set for working_set in sets if working_set is not None
    }
    found = [problem_from_json(one) for one in data.get("problems", ())]
    return [
        replace(problem, working_set=by_problem.get(problem.problem_id))
        for problem in found
        if problem is not None
    ]


_SHOWN = 300
_STATES: dict[str, tuple[str, str]] = {
    "active": (N_("{problem} is active."), N_("{problem} is active: {summary}")),
    "paused": (N_("{problem} is paused."), N_("{problem} is paused: {summary}")),
    "background": (
        N_("{problem} is in the background."),
        N_("{problem} is in the background: {summary}"),
    ),
    "completed": (N_("{problem} is done."), N_("{problem} is done: {summary}")),
}
"""What is said of a problem in a state, without and with its summary."""


def formatted_name(problem: Problem) -> str:
    """Return a problem's name as Markdown."""
    return f"“{escape_markdown(problem.name)}”"


def _summary(problem: Problem) -> str:
    """Return a problem's summary on one line, shortened."""
    lines = (line.strip() for line in translate_summary(problem_summary(problem)).splitlines())
    return escape_markdown(shorten("; ".join(filter(None, lines)), _SHOWN))


def put_aside_text(problem: Problem) -> str:
    """Return the new state of a problem that is no longer active, and its summary."""
    name, summary = formatted_name(problem), _summary(problem)
    plain, summed_up = _STATES[problem.state]
    return _(summed_up if summary else plain, problem=name, summary=summary)


def switch_text(left: Problem, taken: Problem) -> str:
    """Return the text that reports a switch."""
    name = formatted_name(taken)
    parts = [_("You are now on {problem}.", problem=name), put_aside_text(left)]
    messages, _tokens = taken.resumable_size
    if summary := _summary(taken):
        parts.append(_("Its summary: {summary}", summary=summary))
    if messages:
        parts.append(
            ngettext(
                "The last message of {problem} is back in view.",
                "The last {n} messages of {problem} are back in view.",
                messages,
                problem=name,
            )
        )
    return "\n\n".join(parts)


def resume_button(problem: Problem) -> tuple[Button, ...]:
    """Return the button to resume a problem; empty if it is completed."""
    if problem.state == "completed":
        return ()
    label = _("Back to {problem}", problem=problem.name)
    return (Button(label, f"/problem switch {problem.problem_id}"),)
