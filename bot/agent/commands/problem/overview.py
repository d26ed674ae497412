"""Forms of ``/problem`` that list problems and show a problem's notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.agent.commands.memory.fact_text import age_text, is_today
from bot.agent.commands.pagination import (
    paginate,
    paginate_items,
    parse_page_number,
    split_page_number,
)
from bot.agent.commands.problem.transitions import find_problem, formatted_name
from bot.agent.commands.registry import CommandContext, CommandReply
from bot.agent.texts import bold, joined
from bot.bus import Button
from bot.core.clock import format_time
from bot.core.i18n import N_, _, ngettext
from bot.core.text import escape_markdown
from bot.memory.records.compartment_records import Problem
from bot.memory.records.problem_notes import NOTE_KINDS, note_lines
from bot.memory.session.bus.working_set import translate_summary
from bot.tape.search import GENERAL_PROBLEM

_A_PAGE = 8
_MOST_BUTTONS = 5
_USUAL = 5
_STATES = {
    "active": N_("active"),
    "paused": N_("paused"),
    "background": N_("in the background"),
    "completed": N_("done"),
}
_HINT = N_("`/problem new NAME` starts another, `/problem switch N` switches.")


async def list_problems(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/problem``, ``/problem list`` and ``/problem list done``."""
    form, _sep, page = arguments.lower().rpartition(" ")
    ended = "done" in (form, page)
    problems = context.memory.bus.problems
    found = [
        problem
        for problem in await problems.list_by_state()
        if (problem.state == "completed") == ended
    ]
    if not found:
        return CommandReply(_("No problem is done yet."))
    found.sort(key=lambda problem: problem.state != "active")
    command = f"/problem list{' done' * ended}"
    shown, at = paginate_items(found, parse_page_number(page), _A_PAGE, command)
    lines = [_line(problem, context) for problem in shown]
    head = bold(_("Done") if ended else _("Problems"))
    text = "\n\n".join(part for part in (head, "\n".join(lines), at.note, _(_HINT)) if part)
    buttons = [] if ended else _buttons(shown)[: _MOST_BUTTONS - len(at.buttons)]
    return CommandReply(text, buttons=(*buttons, *at.buttons))


def _line(problem: Problem, context: CommandContext) -> str:
    working = problem.working_set
    questions = len(working.open_questions) if working is not None else 0
    parts = [_state(problem)]
    if problem.private:
        parts.append(_("private"))
    if problem.priority != _USUAL:
        parts.append(_("priority {number}", number=problem.priority))
    if problem.problem_id != GENERAL_PROBLEM:
        parts += _started(problem, context)
    if questions:
        parts.append(ngettext("{n} open question", "{n} open questions", questions))
    name = "**general**" if problem.problem_id == GENERAL_PROBLEM else _labelled(problem)
    return f"{name}: {joined(parts)}"


def _state(problem: Problem) -> str:
    return _(_STATES[problem.state]) if problem.state in _STATES else problem.state


def _started(problem: Problem, context: CommandContext) -> list[str]:
    """Return when a problem was started; nothing if it is unknown."""
    stamp, zone = format_time(problem.created_at), context.zone
    if is_today(stamp, zone.today(), zone.timezone):
        return [_("started today")]
    age = age_text(stamp, zone.today(), zone.timezone)
    return [_("started {age} ago", age=age)] if age else []


def _labelled(problem: Problem) -> str:
    # Bold, since Markdown renderers renumber lists.
    return f"**{problem.problem_id.removeprefix('p')}.** {escape_markdown(problem.name)}"


def _buttons(problems: Sequence[Problem]) -> list[Button]:
    """Return buttons to complete the active problem, and to switch to the others."""
    buttons = [
        Button(_("Done: {problem}", problem=problem.name), f"/problem done {problem.problem_id}")
        for problem in problems
        if problem.state == "active" and problem.problem_id != GENERAL_PROBLEM
    ]
    return buttons + [_switch_button(problem) for problem in problems if problem.state != "active"]


def _switch_button(problem: Problem) -> Button:
    label = _("Switch to {problem}", problem=problem.name)
    return Button(label, f"/problem switch {problem.problem_id}")


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
    told = _("It has no notes.")
    if summary:
        told = "\n".join([_("Summary:"), escape_markdown(translate_summary(summary))])
    text = f"{formatted_name(problem)} ({_state(problem)}). {told}"
    if problem.state == "completed":
        return CommandReply(text)
    hint = _("Switch to it to see all its notes.")
    return CommandReply(f"{text}\n\n{hint}", buttons=(_switch_button(problem),))


def _notes(problem: Problem) -> Iterator[str]:
    working = problem.working_set
    if working is None or working.empty:
        summary = problem.summary
        if summary:
            yield "\n".join([_("Earlier summary:"), escape_markdown(translate_summary(summary))])
        else:
            yield _("There are no notes yet.")
        yield _(
            "`/problem note KIND TEXT` adds a note; kinds: {kinds}.",
            kinds=joined(f"`{kind}`" for kind in NOTE_KINDS),
        )
        return
    for kind in NOTE_KINDS:
        if held := note_lines(working, kind):
            lines = [f"**{at}.** {escape_markdown(one)}" for at, one in enumerate(held, 1)]
            yield "\n".join([f"**{kind}**", *lines])
    yield _("`/problem note drop KIND N` removes one.")
