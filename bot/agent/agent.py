"""What all turns of a program share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo

from bot.agent.context import ContextBuilder, default_context
from bot.agent.workspace import Workspace
from bot.clock import Clock
from bot.llm.base import Model
from bot.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent: a model, its tools, and its bounds.

    Attributes:
        model: Answers.
        tools: What it may use.
        workspace: Bootstrap files and skills.
        clock: Times the turns.
        timezone: The user's.
        timezone_name: As it stands in the prompt.
        max_steps: Model calls a turn may make.
        context_tokens: The model's window.
        builder_name: Name of the context builder, for ``turn.start``.
        builder: Makes messages of entries.
    """

    model: Model
    tools: ToolRegistry
    workspace: Workspace
    clock: Clock
    timezone: tzinfo
    timezone_name: str
    max_steps: int
    context_tokens: int
    builder_name: str = "default"
    builder: ContextBuilder = default_context
