"""The problem tools: list, open, note, close. What they switch is switched when the turn has ended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from bot.errors import MemoryRefused
from bot.memory.bus.carrying import refuse_orders
from bot.memory.bus.compression import problems_text
from bot.memory.bus.naming import meant
from bot.memory.bus.notes import with_note, without_text
from bot.memory.bus.records import Problem, WorkingSet
from bot.memory.bus.working import summary_now
from bot.memory.gate.secrets import looks_secret
from bot.tape.search import GENERAL
from bot.tools.registry import Tool, ToolContext, ToolOutcome

_SUMMARY = 300
_IN_GROUPS = "in a group only an owner may do this, with `/problem`"


def _short(schema: dict[str, Any]) -> None:
    """Leave out what validation does anyway: each prompt pays for it."""
    schema.pop("additionalProperties", None)
    for field in schema.get("properties", {}).values():
        field.pop("default", None)


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra=_short)


class NoArguments(_Arguments):
    """For a tool that takes none."""


class OpenArguments(_Arguments):
    """Arguments of ``problem.open``."""

    problem: str


class NoteArguments(_Arguments):
    """Arguments of ``problem.note``."""

    kind: Literal["must", "must-not", "assume", "ask", "decide", "draft", "drop"]
    text: str
    why: str = ""


class CloseArguments(_Arguments):
    """Arguments of ``problem.close``."""

    state: Literal["paused", "background", "completed"]
    problem: str = ""


async def _list(_: NoArguments, context: ToolContext) -> ToolOutcome:
    bus, pending = context.memory.bus, context.memory.home.fold.pending()
    found = await bus.problems.list_by_state()
    active = context.memory.fold.problem
    noted = await bus.working_sets.compile(active, pending={fact.id for fact in pending})
    shown = [
        # Of the one at hand all notes stand below.
        _shown(one, summarised=not noted or one.problem_id != active)
        for one in found
        if one.state != "completed"
    ]
    listed = problems_text(shown, active, context.zone.timezone)
    return ToolOutcome("\n\n".join(filter(None, [listed, noted])))


def _shown(problem: Problem, *, summarised: bool) -> Problem:
    """Return what is told of a problem to one who works on another: its exported summary, in short."""
    summary = "; ".join(summary_now(problem).splitlines())[:_SUMMARY] if summarised else ""
    return replace(problem, working_set=None, messages=(), weight=(0, 0), summary=summary)


async def _open(arguments: OpenArguments, context: ToolContext) -> ToolOutcome:
    _check_rights(context)
    bus, cause = context.memory.bus, f"call:{context.call}"
    found = meant(await bus.problems.list_by_state(), arguments.problem)
    if found is None or (found.state == "completed" and found.problem_id != arguments.problem):
        _check_text(arguments.problem, context)
        found = await bus.problems.create(arguments.problem, cause=f"{cause}:new")
    await bus.problems.want(found.problem_id, cause=cause)
    if found.state == "active":
        return ToolOutcome(f"{found.name!r} is the current problem.")
    summary = await bus.working_sets.export_summary(found.problem_id)
    return ToolOutcome(
        f"{found.name!r} ({found.problem_id}) is opened once you have answered; answer now. "
        f"What it came to so far:\n{summary or '(nothing)'}"
    )


async def _note(arguments: NoteArguments, context: ToolContext) -> ToolOutcome:
    if context.memory.paused:
        raise MemoryRefused("the user paused memory: nothing is noted until `/memory resume`")
    kind, text, why = arguments.kind, arguments.text, arguments.why
    if kind != "drop":
        # A draft's name may tell what its text is.
        _check_text(f"{why}: {text}" if kind == "draft" else f"{text}\n{why}", context, kind)

    def edit(working: WorkingSet) -> dict[str, Any]:
        if kind == "drop":
            return without_text(working, text)
        return with_note(working, kind, text, why)

    problem = context.memory.fold.problem
    await context.memory.bus.working_sets.change(problem, edit, cause=f"call:{context.call}")
    return ToolOutcome("Noted." if kind != "drop" else "Dropped.")


async def _close(arguments: CloseArguments, context: ToolContext) -> ToolOutcome:
    _check_rights(context)
    problems, cause = context.memory.bus.problems, f"call:{context.call}"
    active = await problems.get_active()
    named = arguments.problem
    found = meant(await problems.list_by_state(), named) if named else active
    if found is None:
        raise MemoryRefused(f"there is no problem {named[:60]!r}: see `problem.list`")
    if found.problem_id == GENERAL:
        raise MemoryRefused("general is always there: open another problem instead")
    state = arguments.state
    if found.problem_id == active.problem_id:
        await problems.want(GENERAL, leave=state, cause=cause)
        return ToolOutcome(f"{found.name!r} will be {state} once you have answered; answer now.")
    put = {
        "paused": problems.pause,
        "background": problems.background,
        "completed": problems.complete,
    }[state]
    done = await put(found.problem_id, cause=cause)
    return ToolOutcome(f"{found.name!r} is {state if done else found.state}.")


def _check_text(text: str, context: ToolContext, kind: str = "") -> None:
    """Refuse what is not to stand in every prompt: secrets, and orders that are not the user's."""
    if (what := looks_secret(text)) is not None:
        raise MemoryRefused(f"it looks like {what}")
    refuse_orders(text, context.memory.fold.window.spoken(), drafted=kind == "draft")


def _check_rights(context: ToolContext) -> None:
    if not context.may_clear:
        raise MemoryRefused(_IN_GROUPS)


PROBLEM_TOOLS: tuple[Tool[Any], ...] = (
    Tool("problem.list", "List problems; notes of the current one.", NoArguments, _list),
    Tool(
        "problem.open",
        "Switch to a problem, by id or name, made if new. Only if the user asks.",
        OpenArguments,
        _open,
    ),
    Tool(
        "problem.note",
        "Note what the current problem needs; why: the reason, or a draft's name; drop: this text.",
        NoteArguments,
        _note,
    ),
    Tool(
        "problem.close",
        "Put the current or another problem aside, or end it.",
        CloseArguments,
        _close,
    ),
)
