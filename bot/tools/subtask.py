"""The tool that works on a sub-task aside, so that its steps do not crowd the conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pydantic import BaseModel, ConfigDict, Field

from bot.tools.registry import Tool, ToolContext, ToolOutcome

LONGEST_INSTRUCTIONS = 8_000
"""Characters."""


class TaskArguments(BaseModel):
    """Arguments of ``task.run``."""

    model_config = ConfigDict(extra="forbid")

    instructions: str = Field(
        min_length=1,
        max_length=LONGEST_INSTRUCTIONS,
        description="What to find out, with all that must be known for it: nothing else is seen.",
    )


RunTask = Callable[[str, ToolContext], Awaitable[ToolOutcome]]
"""Works on instructions, and returns the result with what is to be on the tape of it."""


def subtask_tool(run: RunTask) -> Tool[TaskArguments]:
    """Return the tool, given what works on a sub-task."""

    async def answer(arguments: TaskArguments, context: ToolContext) -> ToolOutcome:
        return await run(arguments.instructions, context)

    return Tool(
        "task.run",
        "Work through a longer search of the tape and memory aside, and get only its result. Its steps "
        "do not fill this conversation; it can read, and changes nothing.",
        TaskArguments,
        answer,
    )
