"""``memory.recall``: search memory, notes, history and the tape.

It returns only results of the active problem to the model; commands, which answer a person, search
all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Literal

import anyio
from pydantic import BaseModel, ConfigDict, Field

from bot.agent.tools.registry import Tool, ToolContext, ToolOutcome, trim_schema
from bot.agent.tools.tape import find_anchors, render_anchors, render_hits, search_tape_entries
from bot.core.errors import MemoryRefused
from bot.memory.session.outdated_entries import outdated_entries
from bot.memory.session.recall import (
    recall_passages,
    recallable_facts,
    render_passages,
)
from bot.tape.search import MAX_QUERY_LENGTH, SearchQuery
from bot.tape.service import TapeService

RunTask = Callable[[str, ToolContext], Awaitable[ToolOutcome]]
"""Run instructions in a sub-task; return the result and the entries that record it."""

LONGEST_INSTRUCTIONS = 8_000
"""Maximum characters of a sub-task's instructions."""

_PATIENCE = 3.0
"""Seconds to wait for the index of a tape that was imported, or has lost its index."""

_PARTLY = (
    "Not all is found yet: the earlier part of this tape is still being indexed. These are from the indexed part and the "
    "newest entries."
)
_LIMIT = 8
_MOST_PHASES = 10
_KINDS: dict[str, frozenset[str]] = {
    "messages": frozenset({"message"}),
    "tools": frozenset({"tool_call", "tool_result"}),
    "history": frozenset({"event"}),
}


class RecallArguments(BaseModel):
    """Arguments of ``memory.recall``."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=trim_schema)

    query: str | None = Field(
        None,
        max_length=LONGEST_INSTRUCTIONS,
        description="none: the newest",
    )
    days: int = Field(7, ge=1, le=36_500, description="default 7")
    kind: Literal["messages", "tools", "history", "phases"] | None = None
    who: str | None = Field(None, description="name, or assistant")


class TaskArguments(RecallArguments):
    """Arguments of ``memory.recall`` where there are sub-tasks."""

    aside: bool = Field(False, description="search at length")


async def _recall(arguments: RecallArguments, context: ToolContext) -> ToolOutcome:
    query = arguments.query or ""
    if len(query) > MAX_QUERY_LENGTH:
        raise MemoryRefused(f"the query is longer than {MAX_QUERY_LENGTH} characters")
    if await _is_indexed(context.tape):
        return await _found(arguments, query, context, at_hand=False)
    if arguments.kind == "phases":
        return ToolOutcome("The tape is still being indexed: ask for phases later.")
    found = await _found(arguments, query, context, at_hand=True)
    return replace(found, content=f"{_PARTLY}\n{found.content}")


async def _is_indexed(tape: TapeService) -> bool:
    """Wait a while for the tape's index; return whether it is complete."""
    with anyio.move_on_after(_PATIENCE):
        await tape.search(SearchQuery(kinds=frozenset({"anchor"}), limit=1))
        return True
    return False


async def _found(
    arguments: RecallArguments, query: str, context: ToolContext, *, at_hand: bool
) -> ToolOutcome:
    timezone = context.zone.timezone
    if arguments.kind == "phases":
        anchors = await find_anchors(context.tape, query, _MOST_PHASES, context.problem)
        return ToolOutcome(render_anchors(anchors, timezone))
    if arguments.kind is not None or arguments.who is not None:
        within = "days" in arguments.model_fields_set
        search_query = SearchQuery(
            query,
            kinds=_KINDS[arguments.kind] if arguments.kind else None,
            senders=frozenset({arguments.who}) if arguments.who else None,
            problem=context.problem,
            since=context.zone.now() - timedelta(days=arguments.days) if within else None,
            # The message that asks cannot contain the answer.
            last=context.turn_start - 1,
            limit=_LIMIT,
            at_hand=at_hand,
        )
        return ToolOutcome(
            render_hits(await search_tape_entries(context.tape, search_query), timezone)
        )
    files = [] if context.files is None else await context.files.passages(context.memory, query)
    passages = await recall_passages(
        context.tape,
        context.zone.read(),
        query,
        days=arguments.days,
        now=context.zone.now(),
        timezone=timezone,
        facts=recallable_facts(context.memory, timezone),
        vectors=context.vectors,
        problem=context.problem,
        files=files,
        outdated=outdated_entries(context.memory),
        at_hand=at_hand,
    )
    await context.memory.note_use(one.fact for one in passages if one.fact)
    # What files say is nobody's word, however they came here.
    outside = any(one.entry is None and one.who.startswith("file:") for one in passages)
    return ToolOutcome(render_passages(passages), from_outside=outside)


_NAME = "memory.recall"
_DESCRIPTION = "Look up what was said, done and noted. phases: handoffs."

RECALL_TOOL = Tool(_NAME, _DESCRIPTION, RecallArguments, _recall, effect="reads_own")


def recall_tool(run: RunTask) -> Tool[TaskArguments]:
    """Return the recall tool with the option to run the search as a sub-task."""

    async def answer(arguments: TaskArguments, context: ToolContext) -> ToolOutcome:
        if not arguments.aside:
            return await _recall(arguments, context)
        if not (arguments.query or "").strip():
            raise MemoryRefused("a sub-task needs a query that says what to find out")
        return await run(arguments.query or "", context)

    return Tool(_NAME, _DESCRIPTION, TaskArguments, answer, effect="reads_own")
