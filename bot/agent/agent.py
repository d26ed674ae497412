"""What all turns of a program share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import tzinfo

from bot.agent.context import ContextBuilder
from bot.agent.tools.registry import ToolRegistry
from bot.agent.views.registry import DEFAULT_BUILDER
from bot.agent.workspace import Workspace
from bot.core.clock import Clock
from bot.llm.base import Model
from bot.memory.vector_index import VectorIndex

ImageLoader = Callable[[str], Awaitable[bytes | None]]
"""Returns an image by its name in the blob store; None where it is not there."""


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
        builder: Makes the context of a session's entries.
        images: Where images are; None where there are none to show.
        recall_tokens: Of what is recalled unasked for a turn; 0 for nothing.
        vectors: Find by meaning; None finds by words alone.
        judge: Says whether people's words carry what is to be remembered; None leaves that to rules.
    """

    model: Model
    tools: ToolRegistry
    workspace: Workspace
    clock: Clock
    timezone: tzinfo
    timezone_name: str
    max_steps: int
    context_tokens: int
    builder: ContextBuilder = DEFAULT_BUILDER
    images: ImageLoader | None = None
    recall_tokens: int = 400
    vectors: VectorIndex | None = None
    judge: Model | None = None
