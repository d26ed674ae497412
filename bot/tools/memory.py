"""The memory tools: save, daily, recall, refer, conclude, forget, show, clear."""

from __future__ import annotations

from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field

from bot.errors import MemoryRefused
from bot.memory.bus.clearing import clear_bus
from bot.memory.guards import check_date
from bot.memory.recall import fact_lines, recall, render_passages
from bot.memory.snapshot import MemorySnapshot, check_note
from bot.tools.concluding import CONCLUDE
from bot.tools.forgetting import FORGET
from bot.tools.reference import REFER
from bot.tools.registry import Tool, ToolContext, ToolOutcome
from bot.tools.saving import is_settled, noted, saving, told


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SaveArguments(_Arguments):
    """Arguments of ``memory.save``."""

    content: str = Field(
        description="The whole new long-term memory as Markdown: all facts to keep, and new ones.",
    )
    removed: list[str] = Field(
        default_factory=list,
        description="Lines of the old memory that are dropped or replaced on purpose.",
    )


class DailyArguments(_Arguments):
    """Arguments of ``memory.daily``."""

    content: str = Field(min_length=1, description="What to append to the day's notes.")
    date: str | None = Field(None, description="YYYY-MM-DD; today if left out.")


class RecallArguments(_Arguments):
    """Arguments of ``memory.recall``."""

    query: str | None = Field(None, description="Words to look for; leave out for the newest.")
    days: int = Field(7, ge=1, le=36_500, description="How many days back.")


class NoArguments(_Arguments):
    """For tools that take none."""


async def _save(arguments: SaveArguments, context: ToolContext) -> ToolOutcome:
    context.check_learning()
    memory = context.memory
    if context.zone.read().long_term == arguments.content.strip():
        return ToolOutcome("Long-term memory already says exactly this.")
    outcome = await memory.apply(saving(arguments.content, arguments.removed, context))
    status = "ok" if is_settled(outcome) else "error"
    return ToolOutcome(
        lambda snapshot: told(outcome, snapshot.version), status, change=memory.current
    )


async def _daily(arguments: DailyArguments, context: ToolContext) -> ToolOutcome:
    context.check_learning()
    zone = context.zone
    day = check_date(arguments.date, zone.today(), zone.retention_days)
    content = noted(arguments.content, context)
    return ToolOutcome(
        f"Added to the notes of {day}.",
        change=lambda snapshot: check_note(snapshot.with_daily(day, content), day),
    )


async def _recall(arguments: RecallArguments, context: ToolContext) -> ToolOutcome:
    passages = await recall(
        context.tape,
        context.zone.read(),
        arguments.query,
        days=arguments.days,
        now=context.zone.now(),
        timezone=context.zone.timezone,
        facts=fact_lines(context.memory, context.zone.timezone),
        vectors=context.vectors,
        problem=context.problem,
    )
    return ToolOutcome(render_passages(passages))


async def _show(_: NoArguments, context: ToolContext) -> ToolOutcome:
    return ToolOutcome(describe(context.zone.read()))


async def _clear(_: NoArguments, context: ToolContext) -> ToolOutcome:
    if not context.may_clear:
        raise MemoryRefused("in a group only an owner may clear it, with `/memory clear`")
    memory = context.memory
    if context.zone.read() == MemorySnapshot(context.zone.read().version):
        raise MemoryRefused("memory is empty already")
    await memory.apply(memory.clearing(f"call:{context.call}"))
    await clear_bus(memory, f"call:{context.call}")
    return ToolOutcome(
        lambda snapshot: (
            f"All memory is cleared (version {snapshot.version}); /memory undo brings the facts back."
        ),
        change=lambda snapshot: replace(snapshot.emptied(), reference=memory.reference()),
    )


def describe(snapshot: MemorySnapshot) -> str:
    """Return a summary of the zone for a model or a person."""
    size = len(snapshot.long_term.encode("utf-8", "backslashreplace"))
    parts = [
        f"Memory version {snapshot.version}; long-term {size} bytes, "
        f"daily notes of {len(snapshot.dailies)} days.",
        snapshot.long_term or "(long-term memory is empty)",
    ]
    if snapshot.shared:
        parts.append(f"Shared with everyone:\n{snapshot.shared}")
    if snapshot.reference:
        parts.append(f"Reference:\n{snapshot.reference}")
    parts += [f"### {note.date}\n{note.content}" for note in reversed(snapshot.dailies)]
    return "\n\n".join(parts)


RECALL = Tool(
    "memory.recall",
    "Search what was said before, memory, notes and history; passages come with date, speaker "
    "and entry id.",
    RecallArguments,
    _recall,
)

MEMORY_TOOLS = (
    Tool(
        "memory.save",
        "Replace long-term memory. Give the whole text: every fact that stays, and what is new.",
        SaveArguments,
        _save,
    ),
    Tool("memory.daily", "Append to the daily notes.", DailyArguments, _daily),
    RECALL,
    REFER,
    CONCLUDE,
    FORGET,
    Tool("memory.show", "Show all of the current memory.", NoArguments, _show),
    Tool(
        "memory.clear",
        "Clear all memory. Only when the user asks for it in plain words.",
        NoArguments,
        _clear,
    ),
)
