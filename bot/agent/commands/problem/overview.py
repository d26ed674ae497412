"""Forms of ``/problem`` that list problems and show a problem's notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.agent.commands.memory.fact_text import age_text, escape_markdown
from bot.agent.commands.pagination import (
    paginate,
    paginate_items,
    parse_page_number,
    split_page_number,
)
from bot.agent.commands.problem.transitions import find_problem, formatted_name
from bot.agent.commands.registry import CommandContext, CommandReply
from bot.bus import Button
from bot.core.clock import format_time
from bot.memory.records.compartment_records import Problem
from bot.memory.records.problem_notes import NOTE_KINDS, note_lines
from bot.tape.search import GENERAL_PROBLEM

_A_PAGE = 8
_MOST_BUTTONS = 5
_USUAL = 5
_STATES = {"active": "active", "background": "in the background", "completed": "done"}
_HINT = "`/problem new NAME` starts another, `/problem switch N` switches."


async def list_problems(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/problem``, ``/problem list`` and ``/problem list done``."""
    form, _, page = arguments.lower().rpartition(" ")
    ended = "done" in (form, page)
    problems = context.memory.bus.problems
    found = [
        problem
        for problem in await problems.list_by_state()
        if (problem.state == "completed") == ended
    ]
    if not found:
        return CommandReply("No problem is done yet.")
    found.sort(key=lambda problem: problem.state != "active")
    command = f"/problem list{' done' * ended}"
    shown, at = paginate_items(found, parse_page_number(page), _A_PAGE, command)
    lines = [_line(problem, context) for problem in shown]
    head = "**Done**" if ended else "**Problems**"
    text = "\n\n".join(part for part in (head, "\n".join(lines), at.note, _HINT) if part)
    buttons = [] if ended else _buttons(shown)[: _MOST_BUTTONS - len(at.buttons)]
    return CommandReply(text, buttons=(*buttons, *at.buttons))


def _line(problem: Problem, context: CommandContext) -> str:
    working = problem.working_set
    questions = len(working.open_questions) if working is not None else 0
    parts = [_STATES.get(problem.state, problem.state)]
    if problem.private:
        parts.append("private")
    if problem.priority != _USUAL:
        parts.append(f"priority {problem.priority}")
    if problem.problem_id != GENERAL_PROBLEM:
        began = age_text(
            format_time(problem.created_at), context.zone.today(), context.zone.timezone
        )
        parts += [f"started {began}{' ago' * (began != 'today')}"] if began else []
    if questions:
        parts.append(f"{questions} open question{'s' * (questions != 1)}")
    name = "**general**" if problem.problem_id == GENERAL_PROBLEM else _labelled(problem)
    return f"{name}: {', '.join(parts)}"


def _labelled(problem: Problem) -> str:
    # Bold, since Markdown renderers renumber lists.
    return f"**{problem.problem_id.removeprefix('p')}.** {escape_markdown(problem.name)}"


def _buttons(problems: Sequence[Problem]) -> list[Button]:
    """Return buttons to complete the active problem, and to switch to the others."""
    buttons = [
        Button(f"Done: {problem.name}", f"/problem done {problem.problem_id}")
        for problem in problems
        if problem.state == "active" and problem.problem_id != GENERAL_PROBLEM
    ]
    return buttons + [
        Button(f"Switch to {problem.name}", f"/problem switch {problem.problem_id}")
        for problem in problems
        if problem.state != "active"
    ]


async def show(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/problem show [X]``; for an inactive problem only its summary is shown."""
    wanted, page = split_page_number(arguments)
    bus = context.memory.bus
    active = await bus.problems.get_active()
    problem = await find_problem(wanted, context) if wanted else active
    if problem.problem_id == active.problem_id:
        text = "\n\n".join([f"**{escape_markdown(problem.name)}**", *_notes(problem)])
        shown, buttons = paginate(text, page, f"/problem show {problem.problem_id} page")
        return CommandReply(shown, buttons=buttons)
    summary = await bus.working_sets.export_summary(problem.problem_id)
    told = f"Summary:\n{escape_markdown(summary)}" if summary else "It has no notes."
    state = _STATES.get(problem.state, problem.state)
    text = f"{formatted_name(problem)} ({state}). {told}"
    if problem.state == "completed":
        return CommandReply(text)
    return CommandReply(
        f"{text}\n\nSwitch to it to see all its notes.",
        buttons=(Button(f"Switch to {problem.name}", f"/problem switch {problem.problem_id}"),),
    )


def _notes(problem: Problem) -> Iterator[str]:
    working = problem.working_set
    if working is None or working.empty:
        summary = problem.summary
        yield (
            f"Earlier summary:\n{escape_markdown(summary)}"
            if summary
            else "There are no notes yet."
        )
        yield "`/problem note KIND TEXT` adds a note; kinds: " + ", ".join(NOTE_KINDS) + "."
        return
    for kind in NOTE_KINDS:
        if held := note_lines(working, kind):
            lines = [f"**{at}.** {escape_markdown(one)}" for at, one in enumerate(held, 1)]
            yield "\n".join([f"**{kind}**", *lines])
    yield "`/problem note drop KIND N` removes one."
