"""The tools ``memory.save``, ``memory.daily``, ``memory.show`` and ``memory.clear``."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from datetime import tzinfo
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from bot.agent.texts import readers_language
from bot.agent.tools.forget import FORGET_TOOL
from bot.agent.tools.reference import REFERENCE_TOOL
from bot.agent.tools.registry import (
    NoArguments,
    Tool,
    ToolContext,
    ToolOutcome,
    trim_schema,
    unoffered,
)
from bot.agent.tools.save import (
    MemoryChange,
    is_settled,
    make_batch,
    outcome_text,
    quoted_note,
)
from bot.core.errors import MemoryRefused
from bot.core.i18n import _, ngettext
from bot.llm.base import ToolCall
from bot.memory.gate.memory_validation import check_note_date
from bot.memory.records.fact import Fact
from bot.memory.records.fact_words import fact_words
from bot.memory.records.proposals import BatchOutcome
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
    answered: bool = Field(False, description="true: your text beside the call is the answer")


class DailyArguments(_Arguments):
    """Arguments of ``memory.daily``."""

    content: str = Field(min_length=1)
    quote: str = ""
    date: str | None = None


async def _save(arguments: SaveArguments, context: ToolContext) -> ToolOutcome:
    context.check_learning()
    memory = context.memory
    outcome = await memory.apply(make_batch(arguments.changes, context))
    answer = outcome_text(
        outcome, arguments.changes, context.zone.timezone, has_judge=context.has_judge
    )
    question, buttons = ("", ()) if context.has_judge else _ask_to_end(outcome, context)
    return ToolOutcome(
        answer,
        "ok" if is_settled(outcome, whole=arguments.answered) else "error",
        zone_edit=memory.with_current_facts,
        question=question,
        buttons=buttons,
    )


def _ask_to_end(
    outcome: BatchOutcome, context: ToolContext
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the question whether facts ended, which only the person can say without a judge."""
    found = [
        decision.fact
        for decision in outcome.with_verdict("approved")
        if decision.fact is not None and decision.fact.ends and decision.fact.proposes_change
    ]
    if not found:
        return "", ()
    home, waiting = context.memory.home.fold, " ".join(str(fact.id) for fact in found)
    over = [home.get(number) for fact in found for number in fact.replaces]
    with readers_language():
        told = [f"- {fact_words(fact, context.zone.timezone)}" for fact in over if fact is not None]
        question = ngettext("Is this over?", "Are these over?", len(told))
        return "\n".join([question, *told]), (
            (_("Yes, it is over"), f"/memory accept {waiting}"),
            (_("No, keep it"), f"/memory drop {waiting}"),
        )


async def _daily(arguments: DailyArguments, context: ToolContext) -> ToolOutcome:
    context.check_learning()
    zone = context.zone
    day = check_note_date(arguments.date, zone.today(), zone.retention_days)
    content = quoted_note(arguments.content, arguments.quote, context)
    return ToolOutcome(
        f"Added to the notes of {day}: {content}",
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
        "All memory is cleared; /memory undo brings the facts back.",
        zone_edit=lambda snapshot: replace(
            snapshot.without_own_memory(), reference=memory.render_reference()
        ),
    )


def describe(snapshot: MemorySnapshot, facts: list[Fact], timezone: tzinfo | None) -> str:
    """Return all of memory for the model, including facts that did not fit the prompt."""
    lines = [
        numbered_fact_line(
            fact.id,
            fact.told(timezone),
            "" if fact.quoted else format_timestamp_day(fact.valid_from, timezone),
        )
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


def is_answered(call: ToolCall) -> bool:
    """Return whether a model says that its text beside a call is the whole answer, if all is saved."""
    if call.name.replace(".", "_") != SAVE_TOOL.wire_name:
        return False
    with suppress(ValueError, RecursionError):
        arguments = json.loads(call.arguments)
        return isinstance(arguments, dict) and arguments.get("answered") is True
    return False


SAVE_TOOL = Tool(
    "memory.save",
    "Add, change or end facts, each understandable alone, with the user's words as quotes. A change merges the "
    "facts that it names; several of one fact split it.",
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
    unoffered,
    effect="writes_own",
)
SHOW_TOOL = Tool(
    "memory.show", "Show all of memory.", NoArguments, _show, unoffered, effect="reads_own"
)
CLEAR_TOOL = Tool(
    "memory.clear",
    "Clear all memory, only if the user asks.",
    NoArguments,
    _clear,
    unoffered,
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
