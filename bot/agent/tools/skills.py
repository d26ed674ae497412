"""``skill.read``: read a skill's text on demand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pydantic import BaseModel, ConfigDict

from bot.agent.tools.registry import Tool, ToolContext, ToolOutcome
from bot.core.errors import TapebotError


class SkillArguments(BaseModel):
    """Arguments of ``skill.read``."""

    model_config = ConfigDict(extra="forbid")

    name: str


def skill_tool(read: Callable[[str], Awaitable[str | None]]) -> Tool[SkillArguments]:
    """Return the tool; ``read`` returns a skill's text by name."""

    async def run(arguments: SkillArguments, _: ToolContext) -> ToolOutcome:
        text = await read(arguments.name)
        if text is None:
            raise TapebotError(f"there is no skill {arguments.name!r}")
        return ToolOutcome(text)

    return Tool(
        "skill.read",
        "Read a skill.",
        SkillArguments,
        run,
        lambda now: now.skills,
        effect="reads_own",
    )
