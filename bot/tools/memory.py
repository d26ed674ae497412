"""The memory tools: save, daily, recall, show, clear."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from bot.errors import MemoryRefused
from bot.memory.guards import check_date, check_rewrite, lines_of, merge_concurrent
from bot.memory.recall import recall, render_passages
from bot.memory.snapshot import MemorySnapshot, check_note
from bot.tools.registry import Tool, ToolContext, ToolOutcome


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
    def change(snapshot: MemorySnapshot) -> MemorySnapshot:
        # What was saved since the model looked must not be undone by what it did not know.
        seen = context.seen.long_term
        if not context.may_clear and not set(lines_of(seen)) <= set(lines_of(arguments.content)):
            raise MemoryRefused(
                "in a group only an owner may take lines away or change them: keep them as they are"
            )
        check_rewrite(seen, arguments.content, arguments.removed, strict=True)
        merged = merge_concurrent(seen, snapshot.long_term, arguments.content)
        if missing := set(lines_of(arguments.content)) - set(lines_of(merged)):
            raise MemoryRefused(
                f"memory was changed meanwhile, and {len(missing)} of these lines were removed from "
                "it: look at it as it is now, and save again what is to stay"
            )
        return snapshot.with_long_term(merged)

    if context.zone.read().long_term == arguments.content.strip():
        return ToolOutcome("Long-term memory already says exactly this.")
    return ToolOutcome(
        lambda snapshot: f"Saved to long-term memory (version {snapshot.version}).", change=change
    )


async def _daily(arguments: DailyArguments, context: ToolContext) -> ToolOutcome:
    zone = context.zone
    day = check_date(arguments.date, zone.today(), zone.retention_days)
    return ToolOutcome(
        f"Added to the notes of {day}.",
        change=lambda snapshot: check_note(snapshot.with_daily(day, arguments.content), day),
    )


async def _recall(arguments: RecallArguments, context: ToolContext) -> ToolOutcome:
    passages = await recall(
        context.tape,
        context.zone.read(),
        arguments.query,
        days=arguments.days,
        now=context.zone.now(),
        timezone=context.zone.timezone,
    )
    return ToolOutcome(render_passages(passages))


async def _show(_: NoArguments, context: ToolContext) -> ToolOutcome:
    return ToolOutcome(describe(context.zone.read()))


async def _clear(_: NoArguments, context: ToolContext) -> ToolOutcome:
    if not context.may_clear:
        raise MemoryRefused("in a group only an owner may clear it, with `/memory clear`")
    if context.zone.read() == MemorySnapshot(context.zone.read().version):
        raise MemoryRefused("memory is empty already")
    return ToolOutcome(
        lambda snapshot: (
            f"All memory is cleared (version {snapshot.version}); /memory undo brings it back."
        ),
        change=lambda snapshot: snapshot.emptied(),
    )


def describe(snapshot: MemorySnapshot) -> str:
    """Return a summary of the zone for a model or a person."""
    size = len(snapshot.long_term.encode("utf-8", "backslashreplace"))
    parts = [
        f"Memory version {snapshot.version}; long-term {size} bytes, "
        f"daily notes of {len(snapshot.dailies)} days.",
        snapshot.long_term or "(long-term memory is empty)",
    ]
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
    Tool("memory.show", "Show all of the current memory.", NoArguments, _show),
    Tool(
        "memory.clear",
        "Clear all memory. Only when the user asks for it in plain words.",
        NoArguments,
        _clear,
    ),
)
