"""Forms of ``/problem`` that change what is worked on.

What is answered is told from the entry that records the change, so that a command which is run again
after a kill answers the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from bot.agent.commands.problem.wording import back_to, called, put_aside, switched
from bot.agent.commands.registry import CommandContext, CommandReply
from bot.core.errors import MemoryRefused
from bot.memory.bus.naming import meant
from bot.memory.bus.problems import ProblemRegistry
from bot.memory.bus.records import Problem, problem_from, working_set_from
from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL

_Put = Callable[[ProblemRegistry, str, str], Awaitable[bool]]
"""Puts a problem into a state, given its id and the cause."""

_WHICH = "Which one? Give its number or its name; `/problem` lists all."
_DONE = "Done."
"""Answers again what was answered before, where the record of it was erased."""


def cause_of(context: CommandContext) -> str:
    """Return the key under which a command changes something once."""
    return f"command:{context.tape.name}:{context.heard.id}"


async def recorded(context: CommandContext, cause: str) -> TapeEntry | None:
    """Return the entry that records what a cause did; None where it did nothing yet."""
    known = context.fold.facts.keys.get(cause)
    found = await context.tape.read_entries(known, known) if known is not None else []
    return found[0] if found else None


async def named(wanted: str, context: CommandContext) -> Problem:
    """Return the problem that somebody names.

    Raises:
        MemoryRefused: There is none, or it may be several.
    """
    found = meant(await context.memory.bus.problems.list_by_state(), wanted)
    if found is None:
        raise MemoryRefused(f"there is no problem {wanted[:60]!r}; `/problem` lists all")
    return found


async def new(name: str, context: CommandContext) -> CommandReply:
    """Answer ``/problem new NAME``."""
    if not name:
        return CommandReply("What shall it be called? For example: `/problem new Taxes`.")
    problems, cause = context.memory.bus.problems, cause_of(context)
    made = await problems.create(name, cause=cause)
    switching = f"{cause}:switch"
    await problems.switch_to(made.problem_id, cause=switching)
    return await _told(context, switching)


async def switch(wanted: str, context: CommandContext) -> CommandReply:
    """Answer ``/problem switch X`` and ``/problem resume X``."""
    cause = cause_of(context)
    if not wanted:
        return CommandReply(_WHICH)
    if cause not in context.fold.facts.keys:
        found = await named(wanted, context)
        if found.state == "active":
            return CommandReply(f"You are on {called(found)} already.")
        if found.state == "completed":
            raise MemoryRefused(
                f"{called(found)} is done; `/problem new` begins another of that name"
            )
        await context.memory.bus.problems.switch_to(found.problem_id, cause=cause)
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
    """Put a problem aside, by default the one that is worked on."""
    cause = cause_of(context)
    if cause not in context.fold.facts.keys:
        problems = context.memory.bus.problems
        found = await named(wanted, context) if wanted else await problems.get_active()
        if found.problem_id == GENERAL:
            return CommandReply(
                "“general” is always there: `/problem switch X` goes to another one."
            )
        if not await put(problems, found.problem_id, cause):
            return CommandReply(put_aside(found), buttons=back_to(found))
    return await _told(context, cause)


async def priority(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/problem priority X N``."""
    wanted, _, number = arguments.rpartition(" ")
    if not wanted or not number.isdecimal() or len(number) > 1:
        return CommandReply("For example: `/problem priority 2 9`: 1 to 9, the highest first.")
    found = await named(wanted, context)
    await context.memory.bus.problems.prioritise(
        found.problem_id, int(number), cause=cause_of(context)
    )
    return CommandReply(f"{called(found)} has priority {number} now.")


async def _told(context: CommandContext, cause: str) -> CommandReply:
    """Answer what a change did."""
    entry = await recorded(context, cause)
    problems = _problems_in(entry.data) if entry is not None else []
    if len(problems) > 1:
        left, taken = problems[:2]
        return CommandReply(switched(left, taken), buttons=back_to(left))
    if problems:
        return CommandReply(put_aside(problems[0]), buttons=back_to(problems[0]))
    return CommandReply(_DONE)


def _problems_in(data: dict[str, Any]) -> list[Problem]:
    """Return the problems that a change records, with their working sets as far as they live."""
    sets = [working_set_from(one) for one in data.get("working", ())]
    by_problem = {one.problem_id: one for one in sets if one is not None}
    found = [problem_from(one) for one in data.get("problems", ())]
    return [
        replace(one, working_set=by_problem.get(one.problem_id)) for one in found if one is not None
    ]
