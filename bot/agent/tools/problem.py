"""``problem.note``: edit the active problem's working set, and switch between problems.

A switch takes effect when the turn has ended.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from bot.agent.tools.registry import Tool, ToolContext, ToolOutcome, trim_schema
from bot.core.errors import MemoryRefused
from bot.memory.records.compartment_records import Problem, WorkingSet
from bot.memory.records.compartment_text import render_problems
from bot.memory.records.problem_lookup import match_problem
from bot.memory.records.problem_notes import NoteKind, with_note, without_text
from bot.memory.session.bus.working_set import problem_summary
from bot.tape.search import GENERAL_PROBLEM

_SUMMARY = 300
_PRIVATE = "that problem is private: the user goes there with `/problem switch`"
_ONLY_OWNERS = "do this, with `/problem`"
_STATES: dict[str, Literal["paused", "background", "completed"]] = {
    "pause": "paused",
    "background": "background",
    "complete": "completed",
}


class ProblemArguments(BaseModel):
    """Arguments of ``problem.note``."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=trim_schema)

    op: Literal[
        "list",
        "must",
        "must-not",
        "assume",
        "ask",
        "decide",
        "draft",
        "drop",
        "open",
        "pause",
        "background",
        "complete",
    ] = Field(
        description="must to draft: notes (assume: also what the user says of it); drop: removes one; "
        "open to complete: problems"
    )
    text: str = Field("", description="the note, or a problem's name")
    why: str = Field("", description="or a draft's name")


async def _work(arguments: ProblemArguments, context: ToolContext) -> ToolOutcome:
    if arguments.op == "list":
        return await _list(context)
    if arguments.op == "open":
        return await _open(arguments.text, context)
    if (state := _STATES.get(arguments.op)) is not None:
        return await _put_aside(arguments.text, state, context)
    if not arguments.text.strip():
        raise MemoryRefused("a note has a text")
    kind = None if arguments.op == "drop" else cast("NoteKind", arguments.op)
    return await _note(kind, arguments.text, arguments.why, context)


async def _list(context: ToolContext) -> ToolOutcome:
    bus, pending = context.memory.bus, context.memory.home.fold.pending()
    problems = await bus.problems.list_by_state()
    active = context.memory.fold.problem
    noted = await bus.working_sets.compile(active, pending={fact.id for fact in pending})
    shown = [
        # The active problem's notes are listed in full below.
        _shown(problem, summarised=not noted or problem.problem_id != active)
        for problem in problems
        if problem.state != "completed" and not _is_hidden(problem, context)
    ]
    listed = render_problems(shown, active, context.zone.timezone)
    return ToolOutcome("\n\n".join(filter(None, [listed, noted])))


def _shown(problem: Problem, *, summarised: bool) -> Problem:
    """Return a problem as shown while another is active: only its summary, shortened."""
    summary = "; ".join(problem_summary(problem).splitlines())[:_SUMMARY] if summarised else ""
    return replace(
        problem, working_set=None, resumable_entry_ids=(), resumable_size=(0, 0), summary=summary
    )


def _is_hidden(problem: Problem, context: ToolContext) -> bool:
    """Return whether a problem is private and another one is worked on.

    Nothing of it may get into the other one, whose words any model may see later.
    """
    return problem.private and problem.problem_id != context.memory.fold.problem


async def _open(name: str, context: ToolContext) -> ToolOutcome:
    context.check_rights(_ONLY_OWNERS)
    bus, cause = context.memory.bus, context.cause
    if not name.strip():
        raise MemoryRefused("name the problem")
    problem = match_problem(await bus.problems.list_by_state(), name)
    if problem is not None and _is_hidden(problem, context):
        raise MemoryRefused(_PRIVATE)
    if problem is None or (problem.state == "completed" and problem.problem_id != name):
        context.check_prompt_text(name)
        problem = await bus.problems.create(name, cause=f"{cause}:new")
    await bus.problems.request_switch(problem.problem_id, cause=cause)
    if problem.state == "active":
        return ToolOutcome(f"{problem.name!r} is the current problem.")
    summary = await bus.working_sets.export_summary(problem.problem_id)
    return ToolOutcome(
        f"{problem.name!r} ({problem.problem_id}) is opened once you have answered; answer now. "
        f"What it came to so far:\n{summary or '(nothing)'}"
    )


async def _note(kind: NoteKind | None, text: str, why: str, context: ToolContext) -> ToolOutcome:
    """Add a note of a kind; without a kind, drop the note with this text."""
    context.check_not_paused("noted")
    if kind is not None:
        # A draft's name may be part of its meaning.
        told = f"{why}: {text}" if kind == "draft" else f"{text}\n{why}"
        context.check_prompt_text(told, drafted=kind == "draft")

    def edit(working: WorkingSet) -> dict[str, Any]:
        if kind is None:
            return without_text(working, text)
        return with_note(working, kind, text, why)

    problem = context.memory.fold.problem
    await context.memory.bus.working_sets.change(problem, edit, cause=context.cause)
    return ToolOutcome("Noted." if kind is not None else "Dropped.")


async def _put_aside(
    name: str, state: Literal["paused", "background", "completed"], context: ToolContext
) -> ToolOutcome:
    context.check_rights(_ONLY_OWNERS)
    problems, cause = context.memory.bus.problems, context.cause
    active = await problems.get_active()
    problem = match_problem(await problems.list_by_state(), name) if name else active
    if problem is None:
        raise MemoryRefused(
            f"there is no problem {name[:60]!r}; a note is must, must-not, assume, ask, decide or draft"
        )
    if _is_hidden(problem, context):
        raise MemoryRefused(_PRIVATE)
    if problem.problem_id == GENERAL_PROBLEM:
        raise MemoryRefused("general is always there: open another problem instead")
    if problem.problem_id == active.problem_id:
        await problems.request_switch(GENERAL_PROBLEM, leave=state, cause=cause)
        return ToolOutcome(f"{problem.name!r} will be {state} once you have answered; answer now.")
    put = {
        "paused": problems.pause,
        "background": problems.background,
        "completed": problems.complete,
    }[state]
    done = await put(problem.problem_id, cause=cause)
    return ToolOutcome(f"{problem.name!r} is {state if done else problem.state}.")


PROBLEM_TOOL = Tool(
    "problem.note",
    "Note what the problem at hand needs. Open problems or put them aside only if the user asks.",
    ProblemArguments,
    _work,
    lambda now: now.problems,
    effect="writes_own",
)
