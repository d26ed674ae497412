"""The tools ``memory.save``, ``memory.daily``, ``memory.show`` and ``memory.clear``."""

from __future__ import annotations

from dataclasses import replace
from datetime import tzinfo
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from bot.agent.tools.conclusions import conclude
from bot.agent.tools.forget import FORGET_TOOL
from bot.agent.tools.reference import REFERENCE_TOOL
from bot.agent.tools.registry import NoArguments, Tool, ToolContext, ToolOutcome, trim_schema
from bot.agent.tools.save import (
    CONCLUSION_OPS,
    MemoryChange,
    check_daily_note,
    is_settled,
    make_batch,
    outcome_text,
)
from bot.core.errors import MemoryRefused
from bot.memory.gate.memory_validation import check_note_date
from bot.memory.records.fact import Fact
from bot.memory.records.transcript import format_timestamp_day
from bot.memory.session.memory_clear import clear_memory
from bot.memory.session.state.zone_snapshot import (
    MemorySnapshot,
    check_note_size,
    numbered_fact_line,
)


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra=trim_schema)


class SaveArguments(_Arguments):
    """Arguments of ``memory.save``."""

    changes: list[MemoryChange] = Field(min_length=1)


class DailyArguments(_Arguments):
    """Arguments of ``memory.daily``."""

    content: str = Field(min_length=1)
    date: str | None = None


async def _save(arguments: SaveArguments, context: ToolContext) -> ToolOutcome:
    context.check_learning()
    memory = context.memory
    if not context.may("site") and any(one.op in CONCLUSION_OPS for one in arguments.changes):
        raise MemoryRefused("the token of this program lacks the right site: only add facts")
    # A refused batch refuses the whole call, so conclusions are saved after it.
    batch = make_batch(arguments.changes, context)
    outcome = await memory.apply(batch) if batch.proposals else None
    drawn = [
        memory_change for memory_change in arguments.changes if memory_change.op in CONCLUSION_OPS
    ]
    concluded = [
        await conclude(memory_change, number, context) for number, memory_change in enumerate(drawn)
    ]
    done = any(kept for kept, _ in concluded) or (outcome is not None and is_settled(outcome))

    def answer(snapshot: MemorySnapshot) -> str:
        facts = [] if outcome is None else [outcome_text(outcome, snapshot.version)]
        return "\n".join([*facts, *(said for _, said in concluded)])

    return ToolOutcome(answer, "ok" if done else "error", zone_edit=memory.with_current_facts)


async def _daily(arguments: DailyArguments, context: ToolContext) -> ToolOutcome:
    context.check_learning()
    zone = context.zone
    day = check_note_date(arguments.date, zone.today(), zone.retention_days)
    content = check_daily_note(arguments.content, context)
    return ToolOutcome(
        f"Added to the notes of {day}.",
        zone_edit=lambda snapshot: check_note_size(snapshot.with_daily(day, content), day),
    )


async def _show(_: NoArguments, context: ToolContext) -> ToolOutcome:
    facts = context.memory.facts()
    return ToolOutcome(describe(context.zone.read(), facts, context.zone.timezone))


async def _clear(_: NoArguments, context: ToolContext) -> ToolOutcome:
    context.check_rights("clear it, with `/memory clear`")
    memory = context.memory
    if context.zone.read() == MemorySnapshot(context.zone.read().version):
        raise MemoryRefused("memory is empty already")
    await clear_memory(memory, context.cause)
    return ToolOutcome(
        lambda snapshot: (
            f"All memory is cleared (version {snapshot.version}); /memory undo brings the facts back."
        ),
        zone_edit=lambda snapshot: replace(
            snapshot.without_own_memory(), reference=memory.render_reference()
        ),
    )


def describe(snapshot: MemorySnapshot, facts: list[Fact], timezone: tzinfo | None) -> str:
    """Return all of memory for the model, including facts that did not fit the prompt."""
    lines = [
        numbered_fact_line(fact.id, fact.text, format_timestamp_day(fact.valid_from, timezone))
        for fact in facts
    ]
    parts = [
        f"Memory version {snapshot.version}: {len(facts)} facts, "
        f"daily notes of {len(snapshot.dailies)} days.",
        "\n".join(lines) or snapshot.long_term or "(long-term memory is empty)",
    ]
    if snapshot.shared:
        parts.append(f"Shared with everyone:\n{snapshot.shared}")
    if snapshot.reference:
        parts.append(f"Reference:\n{snapshot.reference}")
    parts += [f"### {note.date}\n{note.content}" for note in reversed(snapshot.dailies)]
    return "\n\n".join(parts)


SAVE_TOOL = Tool(
    "memory.save",
    "Add, change or end facts (to merge: change one, end the others); keep conclusions, heuristics, policies "
    "(if ..., then ...).",
    SaveArguments,
    _save,
    effect="writes_own",
    right="propose",
)
DAILY_TOOL = Tool(
    "memory.daily",
    "Note an event of a day; lasting facts: memory_save.",
    DailyArguments,
    _daily,
    effect="writes_own",
)
SHOW_TOOL = Tool("memory.show", "Show all of memory.", NoArguments, _show, effect="reads_own")
CLEAR_TOOL = Tool(
    "memory.clear",
    "Clear all memory, only if the user asks.",
    NoArguments,
    _clear,
    effect="writes_own",
)

MEMORY_TOOLS: tuple[Tool[Any], ...] = (
    SAVE_TOOL,
    DAILY_TOOL,
    REFERENCE_TOOL,
    FORGET_TOOL,
    SHOW_TOOL,
    CLEAR_TOOL,
)
