"""``memory.forget``: find what the user wants forgotten and ask for confirmation."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from bot.agent.tools.registry import Tool, ToolContext, ToolOutcome, trim_schema


class ForgetArguments(BaseModel):
    """Arguments of ``memory.forget``."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=trim_schema)

    what: str = Field(
        min_length=1,
        max_length=500,
        description="words in all of it",
    )


async def _forget(arguments: ForgetArguments, context: ToolContext) -> ToolOutcome:
    # Few conversations erase anything, and what that needs takes more than a megabyte.
    from bot.agent.tools.forget_question import ask_to_forget

    return await ask_to_forget(arguments.what, context)


FORGET_TOOL = Tool(
    "memory.forget",
    "Find what the user wants forgotten, and ask them with buttons.",
    ForgetArguments,
    _forget,
    effect="writes_own",
)
