"""The tools that every model is offered."""

from __future__ import annotations

from typing import Any

from bot.agent.agent import Agent
from bot.agent.subtask import recall_tool_for
from bot.agent.tools.memory import MEMORY_TOOLS
from bot.agent.tools.problem import PROBLEM_TOOL
from bot.agent.tools.registry import Tool
from bot.agent.tools.schedule import schedule_list_tool, schedule_tool
from bot.agent.tools.skills import skill_tool
from bot.agent.tools.tape import HANDOFF_TOOL


def builtin_tools(agent: Agent) -> list[Tool[Any]]:
    """Return the built-in tools, in the order in which they are offered.

    Args:
        agent: Its model and limits serve recall's sub-tasks; it has the skills.
    """
    return [
        *MEMORY_TOOLS,
        recall_tool_for(agent),
        HANDOFF_TOOL,
        PROBLEM_TOOL,
        schedule_tool(agent.clock.now, agent.timezone_name),
        schedule_list_tool(agent.clock.now, agent.timezone_name),
        skill_tool(agent.skills),
    ]
